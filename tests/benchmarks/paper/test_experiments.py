"""Every experiment at its smallest size: it runs, resumes, and writes a page with its tables."""

import pytest

from benchmarks.measure import read_rows
from benchmarks.paper import command
from benchmarks.paper.catalogue import EXPERIMENTS
from benchmarks.paper.command import run_experiment
from benchmarks.paper.experiment import Size
from benchmarks.paper.runner import completed_tasks, task_name

HEADINGS = {
    "comparison": ["## Table 2", "## HG-means beside each method"],
    "population": ["## Table 4"],
    "termination": ["## Table 5"],
    "scalability": ["## Table 6", "## Table 7", "power of the number of clusters", "](scal"],
    "validity": ["## Table 8", "## Table 9", "## Wilcoxon", "## Correlation"],
    "anytime": ["20 Y", "](anytime.png)"],
    "reliability": ["success", "](reliability.png)"],
}


@pytest.fixture(autouse=True)
def no_proposals(monkeypatch, tmp_path):
    """Whatever is found here stays out of the list of best known values."""
    monkeypatch.delenv("EVOMEANS_DATA", raising=False)
    proposed = []
    monkeypatch.setattr(command, "propose", lambda *value: bool(proposed.append(value)))
    return proposed


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda experiment: experiment.name)
def test_smoke(experiment, tmp_path, capsys):
    page = run_experiment(experiment, Size.SMOKE, tmp_path, processes=1)
    text = page.read_text()
    for heading in HEADINGS[experiment.name]:
        assert heading in text
    assert "nan" not in text
    for picture in tmp_path.glob("*.png"):
        assert picture.stat().st_size > 5000
    rows = read_rows(tmp_path / f"{experiment.name}.csv")
    planned = {task_name(task) for task in experiment.plan(Size.SMOKE).tasks}
    assert completed_tasks(tmp_path / f"{experiment.name}.csv") == planned
    # Whoever asks again gets the same page, and nothing is measured twice.
    run_experiment(experiment, Size.SMOKE, tmp_path, processes=1)
    assert read_rows(tmp_path / f"{experiment.name}.csv") == rows
    assert page.read_text() == text
    assert f"{len(planned)} of {len(planned)} tasks are in" in capsys.readouterr().out


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda experiment: experiment.name)
@pytest.mark.parametrize("size", list(Size))
def test_tasks_have_names_of_their_own(experiment, size):
    names = [task_name(task) for task in experiment.plan(size).tasks]
    assert len(set(names)) == len(names)


def test_pages_can_be_written_without_running_anything(tmp_path):
    [experiment] = [one for one in EXPERIMENTS if one.name == "termination"]
    with pytest.raises(SystemExit, match="no results"):
        run_experiment(experiment, Size.SMOKE, tmp_path, 1, only_render=True)
    text = run_experiment(experiment, Size.SMOKE, tmp_path, 1).read_text()
    (tmp_path / "termination.md").unlink()
    assert run_experiment(experiment, Size.SMOKE, tmp_path, 1, only_render=True).read_text() == text


def test_lower_values_than_the_best_known_are_proposed(no_proposals):
    rows = [
        {"dataset": "iris", "m": 3, "method": "A", "inertia": 79.0},
        {"dataset": "iris", "m": 3, "method": "B", "inertia": 78.0},
        {"dataset": "mixture-n9-m3-d2-s0", "m": 3, "method": "B", "inertia": 1.0},
    ]
    command.propose_values(rows)
    assert no_proposals == [("iris", 3, 78.0, "B")]


def test_a_document_takes_in_the_pages(tmp_path):
    folder, document = tmp_path / "results", tmp_path / "docs" / "paper.md"
    folder.mkdir()
    document.parent.mkdir()
    (folder / "one.md").write_text("# Title\n\n## Table\n\n[rows](one.csv)\n")
    document.write_text("Before.\n<!-- one -->\nold\n<!-- end of one -->\nAfter.\n")
    command.insert_pages(document, folder)
    assert document.read_text() == (
        "Before.\n<!-- one -->\n"
        "\n### Table\n\n[rows](../results/one.csv)\n"
        "<!-- end of one -->\nAfter.\n"
    )
    document.write_text("<!-- one -->\n")
    with pytest.raises(SystemExit, match="end of one"):
        command.insert_pages(document, folder)
