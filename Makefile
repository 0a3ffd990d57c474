# Everything here needs only make and Python 3.11 or later; `make help` lists the targets.

PYTHON ?= python3
VENV ?= .venv
PY := $(VENV)/bin/python
PIP := $(PY) -m pip --disable-pip-version-check

# Passed through to the commands: `make test PYTEST_ARGS="-k crossover -x"`.
DEMO_ARGS ?=
PYTEST_ARGS ?=
SPHINX_ARGS ?=
# One process per core; more than 8 only wait for each other while the kernels compile.
PYTEST_PARALLEL ?= -n auto --maxprocesses 8 --dist worksteal
# The commands of the laboratory that `make bench` runs, in order.
BENCHMARKS ?= speed kmeans line first_use
BENCH_ARGS ?=
# How long `make fuzz` runs, and the seed of its random numbers; a new one by default.
MINUTES ?= 30
SEED ?=
# How much of the paper's experiments `make paper` runs.
SIZE ?= small
PAPER_ARGS ?=

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
# Two pips at once would spoil the environment.
.NOTPARALLEL:
.PHONY: help demo test test-slow fuzz lint docs bench bench-full paper picture clean

help: ## show this list
	@echo "usage: make TARGET [VARIABLE=value ...]"
	@echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo
	@echo "variables:"
	@echo "  PYTHON         the interpreter the virtual environment is made with ($(PYTHON))"
	@echo "  VENV           where the virtual environment lives ($(VENV))"
	@echo "  DEMO_ARGS      arguments for the demo, e.g. DEMO_ARGS=\"--clusters 40\""
	@echo "  PYTEST_ARGS    arguments for pytest, e.g. PYTEST_ARGS=\"-k crossover -x\""
	@echo "  SPHINX_ARGS    arguments for sphinx, e.g. SPHINX_ARGS=\"-D plot_gallery=0\" to leave the gallery unexecuted"
	@echo "  BENCHMARKS     what bench runs ($(BENCHMARKS)); BENCH_ARGS are arguments, for one of them"
	@echo "  MINUTES        for which fuzz runs ($(MINUTES)); SEED is that of its random numbers (a new one)"
	@echo "  SIZE           of the experiments that paper runs ($(SIZE)); PAPER_ARGS are arguments, e.g. --processes 8"
	@echo "  EVOMEANS_DATA  a folder with data sets (.npz files); others are downloaded into a cache"

demo: $(VENV)/.installed ## cluster the handwritten digits: HG-means next to KMeans
	@$(PY) examples/demo.py $(DEMO_ARGS)

test: $(VENV)/.installed-test ## run the tests of package and laboratory in parallel, but for the slow ones
	@$(PY) -m lab warmup
	$(PY) -m pytest $(PYTEST_PARALLEL) -m "not slow" $(PYTEST_ARGS)

test-slow: $(VENV)/.installed-test ## run the slow tests: clusters, killed processes, compilation, GPU steps on a CPU
	@$(PY) -m lab warmup
	$(PY) -m pytest $(PYTEST_PARALLEL) -m slow $(PYTEST_ARGS)

fuzz: $(VENV)/.installed-test ## look for crashes, hangs and false answers with random cases, for MINUTES on all cores
	$(PY) -m tests.fuzz --minutes $(MINUTES) $(if $(SEED),--seed $(SEED))

lint: $(VENV)/.installed-lint ## ruff check, ruff format --check, mypy --strict on the package
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy

docs: $(VENV)/.installed-docs ## build the site into docs/_build/html: pages, gallery, API reference; check its links
	$(PY) -m sphinx --fail-on-warning --keep-going -b html docs docs/_build/html $(SPHINX_ARGS)
	$(PY) docs/check_site.py docs/_build/html

bench: $(VENV)/.installed ## what an offspring and a K-means run cost, on the data in EVOMEANS_DATA (minutes)
	@set -e; for name in $(BENCHMARKS); do \
	    echo "$(PY) -m lab $$name $(BENCH_ARGS)"; $(PY) -m lab $$name $(BENCH_ARGS); \
	done

bench-full: $(VENV)/.installed-plot ## all problems, scaling, memory, into lab/results (40 minutes or so)
	$(PY) -m lab speed --full
	$(PY) -m lab scaling
	@set -e; for name in kmeans memory; do \
	    echo "$(PY) -m lab $$name"; \
	    $(PY) -m lab $$name > lab/results/$$name.txt; \
	    cat lab/results/$$name.txt; \
	done

paper: $(VENV)/.installed-plot ## the paper's experiments, ours next to theirs: SIZE=smoke (a minute), small (an hour), paper (days)
	@if [ "$(SIZE)" != smoke ]; then \
	    echo "Fetching the data sets that are missing; what cannot be downloaded is left out"; \
	    $(PY) -m lab data fetch all || true; \
	fi
	$(PY) -m lab paper all --size $(SIZE) $(PAPER_ARGS)

picture: $(VENV)/.installed-plot ## draw the pictures of the README and of the docs again
	@set -e; for name in readme_picture how_far search_pictures proof_picture model_pictures choosing_k architecture; do \
	    echo "$(PY) docs/pictures/$$name.py"; $(PY) docs/pictures/$$name.py; \
	done

clean: ## remove caches, builds and the virtual environment that make created
	rm -rf build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	rm -rf docs/_build docs/gallery docs/api/generated docs/api/backreferences docs/sg_execution_times.rst
	find src tests lab examples docs -name __pycache__ -type d -prune -exec rm -rf {} +
	@if [ -e "$(VENV)/.created" ]; then echo "rm -rf $(VENV)"; rm -rf "$(VENV)"; fi

# The virtual environment: one stamp per set of packages, renewed when pyproject.toml changes.

ANOTHER = echo "Name another interpreter: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1;

$(VENV)/.created:
	@command -v $(PYTHON) >/dev/null || { \
	    echo "There is no '$(PYTHON)' here; evomeans needs Python 3.11 or later." >&2; $(ANOTHER) }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	    echo "evomeans needs Python 3.11 or later; '$(PYTHON)' is $$($(PYTHON) --version 2>&1)." >&2; $(ANOTHER) }
	@echo "Creating the virtual environment $(VENV)"
	@$(PYTHON) -m venv "$(VENV)"
	@touch $@

$(VENV)/.installed: pyproject.toml | $(VENV)/.created
	@echo "Installing evomeans and what it needs; this happens once and may take a minute"
	@$(PIP) install --quiet --editable .
	@touch $@

# `pip install --group` exists since pip 25.1.
$(VENV)/.pip: | $(VENV)/.created
	@$(PIP) install --quiet --upgrade "pip>=25.1"
	@touch $@

$(VENV)/.installed-test $(VENV)/.installed-lint: $(VENV)/.installed-%: pyproject.toml $(VENV)/.installed | $(VENV)/.pip
	@echo "Installing the packages of the group '$*'"
	@$(PIP) install --quiet --group $*
	@touch $@

$(VENV)/.installed-plot $(VENV)/.installed-docs: $(VENV)/.installed-%: pyproject.toml | $(VENV)/.created
	@echo "Installing evomeans with the extra '$*'"
	@$(PIP) install --quiet --editable ".[$*]"
	@touch $@
