"""Every experiment at its smallest size: it runs, resumes, and writes a page with its tables."""

import pickle
import subprocess
import sys
import textwrap
from functools import partial
from pathlib import Path

import pytest

from evomeans import HGMeans
from evomeans.wording import how_to_install
from lab.__main__ import main as laboratory
from lab.baselines import SAGA
from lab.measure import read_rows
from lab.paper import methods, pages, tasks
from lab.paper.catalogue import EXPERIMENTS
from lab.paper.command import main
from lab.paper.experiment import Size
from lab.paper.pages import run_experiment
from lab.paper.runner import completed_tasks, run_tasks, task_name

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
HEADINGS = {
    "comparison": ["## Table 2", "## HG-means compared with each method"],
    "population": ["## Table 4"],
    "termination": ["## Table 5"],
    "scalability": ["## Table 6", "## Table 7", "power of the number of clusters", "](scal"],
    "validity": ["## Table 8", "## Table 9", "## Wilcoxon", "## Correlation"],
    "anytime": ["20 Y", "](anytime.png)"],
    "early": ["50 Y", "A rival is ahead in"],
    "reliability": ["success", "](reliability.png)"],
    "pace": ["to its value", "2 of 2"],
    "readings": ["as written", "matching by squares"],
    "ablation": ["deep, no single moves", "one by one", "](ablation.png)"],
    "equal-time": ["deep", "one by one", "](equal-time.png)"],
}


def stop_early(record):
    return record.number >= 10


@pytest.fixture(autouse=True)
def quick_searches(monkeypatch):
    """Let searches end after ten offspring, whatever their settings say."""
    monkeypatch.setattr(methods, "HGMeans", partial(HGMeans, observers=stop_early))
    monkeypatch.setattr(methods, "SAGA", partial(SAGA, population_size=4, n_generations=2))


@pytest.fixture(autouse=True)
def no_proposals(monkeypatch, tmp_path):
    """Whatever is found here stays out of the list of best known values."""
    monkeypatch.delenv("EVOMEANS_DATA", raising=False)
    proposed = []
    monkeypatch.setattr(pages, "propose", lambda *value: bool(proposed.append(value)))
    return proposed


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda experiment: experiment.name)
def test_smoke(experiment, tmp_path, capsys):
    page = run_experiment(experiment, Size.SMOKE, tmp_path, processes=1)
    text = page.read_text()
    machine = (tmp_path / f"{experiment.name}.json").read_text()
    for heading in HEADINGS[experiment.name]:
        assert heading in text
    assert "nan" not in text
    for picture in tmp_path.glob("*.png"):
        assert picture.stat().st_size > 5000
    rows = read_rows(tmp_path / f"{experiment.name}.csv")
    planned = {task_name(task) for task in experiment.plan(Size.SMOKE).tasks}
    assert completed_tasks(tmp_path / f"{experiment.name}.csv") == planned
    # A second run writes the same page, and measures nothing.
    run_experiment(experiment, Size.SMOKE, tmp_path, processes=1)
    assert read_rows(tmp_path / f"{experiment.name}.csv") == rows
    assert page.read_text() == text
    assert (tmp_path / f"{experiment.name}.json").read_text() == machine
    assert f"{len(planned)} of {len(planned)} tasks are in" in capsys.readouterr().out


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda experiment: experiment.name)
@pytest.mark.parametrize("size", list(Size))
def test_tasks_have_names_of_their_own_and_can_be_sent_to_processes(experiment, size, monkeypatch):
    monkeypatch.setattr(tasks, "is_available", lambda name: True)
    plan = experiment.plan(size)
    names = [task_name(task) for task in plan.tasks]
    assert names
    assert len(set(names)) == len(names)
    assert all(name.startswith("the package ") for name in plan.missing)
    sent = pickle.loads(pickle.dumps(plan.tasks))
    assert [task_name(task) for task in sent] == names


def test_pages_can_be_written_without_running_anything(tmp_path):
    experiment = named("termination")
    with pytest.raises(SystemExit, match="no results"):
        run_experiment(experiment, Size.SMOKE, tmp_path, 1, only_render=True)
    text = run_experiment(experiment, Size.SMOKE, tmp_path, 1).read_text()
    (tmp_path / "termination.md").unlink()
    assert run_experiment(experiment, Size.SMOKE, tmp_path, 1, only_render=True).read_text() == text


def test_pages_do_not_depend_on_the_data_at_hand(tmp_path, monkeypatch, capsys):
    experiment = named("reliability")
    text = run_experiment(experiment, Size.SMOKE, tmp_path, 1).read_text()
    monkeypatch.setattr(tasks, "is_available", lambda name: False)
    page = run_experiment(experiment, Size.SMOKE, tmp_path, 1, only_render=True)
    assert page.read_text() == text
    assert "not available, left out: german_towns, iris" in capsys.readouterr().out


def test_without_data_there_is_nothing_to_run(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(tasks, "is_available", lambda name: False)
    folder = tmp_path / "new" / "results"
    with pytest.raises(SystemExit, match=r"nothing to run: .*liver.* are missing; .* fetch "):
        run_experiment(named("reliability"), Size.SMALL, folder, 1)
    assert not folder.exists()


def test_a_proposal_that_cannot_be_written_is_a_warning(tmp_path, monkeypatch, capsys):
    def refuse(*value):
        assert (tmp_path / "termination.md").exists()
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(pages, "propose", refuse)
    run_experiment(named("termination"), Size.SMOKE, tmp_path, 1)
    assert "warning: no value could be proposed" in capsys.readouterr().out


def named(name):
    [experiment] = [one for one in EXPERIMENTS if one.name == name]
    return experiment


def test_lower_values_than_the_best_known_are_proposed(no_proposals):
    rows = [
        {"dataset": "iris", "m": 3, "method": "A", "inertia": 79.0},
        {"dataset": "iris", "m": 3, "method": "B", "inertia": 78.0},
        {"dataset": "mixture-n9-m3-d2-s0", "m": 3, "method": "B", "inertia": 1.0},
    ]
    pages.propose_values(rows)
    assert no_proposals == [("iris", 3, 78.0, "B")]


def test_a_document_takes_in_the_pages(tmp_path):
    folder, document = tmp_path / "results", tmp_path / "docs" / "paper.md"
    folder.mkdir()
    document.parent.mkdir()
    (folder / "one.md").write_text("# Title\n\n## Table\n\n[rows](one.csv)\n")
    document.write_text("Before.\n<!-- one -->\nold\n<!-- end of one -->\nAfter.\n")
    pages.insert_pages(document, folder)
    assert document.read_text() == (
        "Before.\n<!-- one -->\n"
        "\n### Table\n\n[rows](../results/one.csv)\n"
        "<!-- end of one -->\nAfter.\n"
    )
    document.write_text("<!-- one -->\n")
    with pytest.raises(SystemExit, match="end of one"):
        pages.insert_pages(document, folder)


def test_pages_go_into_a_document_without_running_anything(tmp_path):
    arguments = ["--document", str(tmp_path / "paper.md"), "--results", str(tmp_path)]
    (tmp_path / "paper.md").write_text("<!-- one -->\n<!-- end of one -->\n")
    with pytest.raises(SystemExit, match="no pages"):
        main(arguments)
    (tmp_path / "small").mkdir()
    (tmp_path / "small" / "one.md").write_text("# Title\n\nText.\n")
    main(arguments)
    assert "Text." in (tmp_path / "paper.md").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing"], "'nothing' is none of comparison, population,"),
        (["--size", "huge"], "'smoke', 'small', 'paper'"),
        (["validity", "--processes", "0"], "--processes 0 must be at least 1"),
    ],
)
def test_wrong_arguments_are_told_what_is_right(arguments, message, capsys):
    with pytest.raises(SystemExit):
        main(arguments)
    said = capsys.readouterr().err
    assert message in said
    assert "[]" not in said
    assert said.startswith("usage: python -m lab ")


def test_folders_that_cannot_be_used_take_one_line(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    with pytest.raises(SystemExit, match=r"^error: .*file"):
        main(["termination", "--size", "smoke", "--results", str(tmp_path / "file")])
    monkeypatch.setenv("EVOMEANS_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(SystemExit, match=r"^error: EVOMEANS_DATA=.*nowhere"):
        laboratory(["paper", "reliability", "--size", "smoke", "--results", str(tmp_path)])


def test_one_experiment_that_cannot_be_shown_keeps_no_other_from_it(tmp_path):
    folder = tmp_path / "smoke"
    run_experiment(named("termination"), Size.SMOKE, folder, 1)
    (folder / "termination.md").unlink()
    with pytest.raises(SystemExit, match=r"population: There are no results"):
        main(["all", "--size", "smoke", "--render", "--results", str(tmp_path)])
    assert (folder / "termination.md").exists()


WITHOUT_MATPLOTLIB = """
    import sys
    sys.modules["matplotlib"] = None
    from pathlib import Path
    from lab.paper.command import main
    from lab.paper.figures import panels
    try:
        main(["--help"])
    except SystemExit as end:
        assert end.code == 0
    panels(["one"], Path("none.png")).__enter__()
"""


def test_matplotlib_is_needed_only_for_figures():
    command = [sys.executable, "-c", textwrap.dedent(WITHOUT_MATPLOTLIB)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout.startswith("usage: python -m lab ")
    assert done.returncode == 1
    assert done.stderr == f"Figures need matplotlib: {how_to_install('plot')}.\n"


def test_the_command_runs_several_experiments(tmp_path, monkeypatch):
    asked = []

    def run_here(tasks, path, processes):
        asked.append(processes)
        return run_tasks(tasks, path, 1)

    monkeypatch.setattr(pages, "run_tasks", run_here)
    arguments = ["--size", "smoke", "--processes", "2", "--results", str(tmp_path)]
    main(["termination", "population", *arguments])
    assert asked == [2, 2]
    for name in ("termination", "population"):
        planned = {task_name(task) for task in named(name).plan(Size.SMOKE).tasks}
        assert completed_tasks(tmp_path / "smoke" / f"{name}.csv") == planned
        assert (tmp_path / "smoke" / f"{name}.md").exists()
