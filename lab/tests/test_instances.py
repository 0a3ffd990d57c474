"""The library of instances: its values are exact, its page is in step, bad files are refused."""

from __future__ import annotations

import itertools
import re
import shutil
import subprocess
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from fractions import Fraction
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest

import evomeans
from lab.instances import library
from lab.instances.catalogue import canonical, samples_of
from lab.instances.compaction import compact
from lab.instances.exact import ExactSamples, rounded
from lab.instances.improvement import Effort, improve
from lab.instances.merging import merge
from lab.instances.page import PAGE, found_by, is_in_step
from lab.instances.records import Records
from lab.instances.submission import SubmissionError, submit
from lab.instances.verification import faults


def slow_inertia(X: np.ndarray, labels: np.ndarray) -> Fraction:
    total = Fraction(0)
    for label, column in itertools.product(set(labels.tolist()), X.T):
        values = [Fraction(x) for x in column[labels == label].tolist()]
        mean = sum(values) / len(values)
        total += sum((value - mean) ** 2 for value in values)
    return total


@pytest.mark.parametrize("scale", [1e-12, 0.1, 1.0, 1e9])
def test_the_inertia_is_exact(scale: float) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3)) * scale + rng.integers(-5, 5)
    labels = rng.integers(4, size=40)
    assert ExactSamples(X).inertia(labels) == slow_inertia(X, labels)


def test_the_page_is_in_step_with_the_files() -> None:
    assert is_in_step(), "run python -m lab instances table"


def test_the_files_are_true_of_a_small_data_set() -> None:
    assert list(faults("german_towns")) == []


def test_the_library_is_small() -> None:
    """Programs included, and samples that lie beside the library."""
    names = ("solutions", "certificates", "samples")
    folders = [library.FOLDER, *(library.FOLDER / name for name in names)]
    files = [path for folder in folders for path in folder.iterdir() if path.is_file()]
    assert sum(path.stat().st_size for path in files) <= 12_000_000


def test_no_file_of_a_certificate_is_left_over() -> None:
    found = {path.stem for path in (library.FOLDER / "certificates").iterdir()}
    files = [library.read(name) for name in library.names()]
    stated = {f"{d.name}-{k}" for d in files for k, one in d.instances.items() if one.certificate}
    assert found == stated


def test_a_bound_above_the_value_is_found(copied: Path) -> None:
    data = library.read("german_towns", copied)
    one = replace(data.instances[5], certificate=False, bound=data.instances[5].inertia * 1.5)
    library.write(data.with_instance(one), copied)
    [fault] = faults("german_towns", copied)
    assert "k=5: the bound" in fault


def copy_to(folder: Path) -> Path:
    """Copy the smallest data set of the library."""
    for name in ("solutions", "certificates"):
        (folder / name).mkdir(parents=True)
    for path in ("german_towns.json", "solutions/german_towns.npz"):
        shutil.copy(library.FOLDER / path, folder / path)
    for path in (library.FOLDER / "certificates").glob("german_towns-*.xz"):
        shutil.copy(path, folder / "certificates")
    return folder


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    return copy_to(tmp_path / "library")


def test_a_false_value_is_found(copied: Path) -> None:
    path = copied / "german_towns.json"
    true = repr(library.read("german_towns", copied).instances[3].inertia)
    path.write_text(path.read_text().replace(true, repr(float(true) * (1 - 1e-12))))
    [fault] = faults("german_towns", copied)
    assert f"k=3: the solution has the inertia {true}" in fault


def test_a_certificate_of_another_instance_is_found(copied: Path) -> None:
    folder = copied / "certificates"
    shutil.copy(folder / "german_towns-5.xz", folder / "german_towns-6.xz")
    found = list(faults("german_towns", copied))
    assert any("k=6: the certificate does not prove an optimum for k=6" in one for one in found)


def test_a_damaged_certificate_is_found(copied: Path) -> None:
    (copied / "certificates" / "german_towns-6.xz").write_bytes(b"nonsense")
    [fault] = faults("german_towns", copied)
    assert "k=6: the certificate does not hold" in fault


def test_a_submission_in_the_order_of_the_data_is_recognised(copied: Path, tmp_path: Path) -> None:
    """Labels are permuted back, whatever they are called."""
    samples = samples_of("german_towns")
    solution = library.read_solutions("german_towns", copied)[3][samples.places]
    labels = np.empty(len(solution), int)
    labels[samples.order] = 7 - 2 * solution.astype(int)
    np.savetxt(tmp_path / "labels.csv", labels, fmt="%d")
    said = submit("german_towns", 3, tmp_path / "labels.csv", "test", folder=copied)
    assert "is the best known value" in said


def test_a_record_is_kept_and_true(copied: Path, tmp_path: Path) -> None:
    data = library.read("german_towns", copied)
    samples = samples_of("german_towns")
    solutions = library.read_solutions("german_towns", copied)
    best = solutions[4]
    worse = np.where(np.arange(len(best)) == 0, (best[0] + 1) % 4, best).astype(np.uint8)
    inertia = rounded(ExactSamples(samples.X).inertia(worse[samples.places]))
    library.write_solutions("german_towns", {**solutions, 4: worse}, copied)
    library.write(data.with_instance(library.Instance(4, inertia, "test", "test")), copied)
    labels = np.empty(len(samples.X), int)
    labels[samples.order] = best[samples.places]
    np.save(tmp_path / "labels.npy", labels)
    file = tmp_path / "labels.npy"
    said = submit("german_towns", 4, file, "test", accept=True, folder=copied)
    assert said.startswith("A record")
    assert library.read("german_towns", copied).instances[4].inertia == data.instances[4].inertia
    assert list(faults("german_towns", copied)) == []


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.zeros(58, int), "has the shape"),
        (np.arange(59), "59 clusters; expected at most 3"),
        (np.full(59, 0.5), "must be integers"),
        (np.full(59, np.nan), "NaN or infinity"),
        (np.zeros((4, 2)), "at most 3 centres"),
        (np.full((3, 2), 1e300), "too large for distances"),
        (np.array(["a"] * 59), "must hold numbers"),
        (np.array([{}] * 59), "cannot be read"),
    ],
)
def test_bad_submissions_are_refused(values: np.ndarray, message: str, tmp_path: Path) -> None:
    np.save(tmp_path / "bad.npy", values, allow_pickle=True)
    with pytest.raises(SubmissionError, match=message):
        submit("german_towns", 3, tmp_path / "bad.npy", "test")


def test_texts_and_unknown_instances_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "bad.csv"
    for text in ("<script>", "", "label\n1\n2", "1,2\n3"):
        file.write_text(text)
        with pytest.raises(SubmissionError, match=r"cannot be read.*numbers without a heading"):
            submit("german_towns", 3, file, "test")
    with pytest.raises(SubmissionError, match=r"no data set '\.\./iris'"):
        submit("../iris", 3, file, "test")
    with pytest.raises(SubmissionError, match="no instance of german_towns with k=59"):
        submit("german_towns", 59, file, "test")


def test_the_canonical_order_does_not_depend_on_the_order_of_the_copy() -> None:
    X = np.array([[1.0, 2.0], [0.0, 5.0], [1.0, 1.0], [-0.0, 5.0]])
    one, other = canonical(X), canonical(X[::-1])
    assert np.array_equal(one.X, other.X)
    assert one.places.tolist() == [0, 0, 1, 2]


def keep_all(folder: Path, clusters: list[int]) -> int:
    """Keep the solutions of the library in an empty copy, as a process of its own would."""
    records, known = Records.of("german_towns", folder), library.read_solutions("german_towns")
    return sum(records.keep(k, known[k][records.samples.places], "test", "test") for k in clusters)


def test_two_processes_lose_no_record(tmp_path: Path) -> None:
    """Both change the same two files dozens of times."""
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        halves = [list(range(2, 51, 2)), list(range(3, 51, 2))]
        found = list(pool.map(keep_all, [tmp_path] * 2, halves))
    assert found == [25, 24]
    assert list(library.read("german_towns", tmp_path).instances) == list(range(2, 51))
    assert list(faults("german_towns", tmp_path)) == []


def test_a_bound_for_a_solution_that_was_replaced_has_no_certificate(copied: Path) -> None:
    records = Records.of("german_towns", copied)
    data = records.read()
    library.certificate_path("german_towns", 5, copied).unlink()
    library.write(data.with_instance(replace(data.instances[5], certificate=False)), copied)
    higher = {"bound": data.instances[5].inertia, "bound_method": "test"}
    records.keep_bound(5, data.instances[5].inertia * 1.1, higher, b"of another solution")
    found = records.read().instances[5]
    assert (found.bound_method, found.certificate) == ("test", False)
    assert list(faults("german_towns", copied)) == []


def test_improve_tries_all_seeds_and_strategies_and_proves(copied: Path, capsys) -> None:
    effort = Effort(seconds=5, proof_seconds=20, seeds=(3, 4), strategies=("paper", "deep"))
    path = copied / "german_towns.json"
    lines = [line for line in path.read_text().splitlines() if '{"k": 6,' not in line]
    path.write_text("\n".join(lines))
    assert improve(["german_towns:6"], effort, minutes=5, folder=copied) >= 1
    found = library.read("german_towns", copied).instances[6]
    assert found.status == library.PROVEN
    assert re.search(r"strategy='(deep|paper)', random_state=[34], max_time=5", found.found_by)
    assert "german_towns:6 30535.39" in capsys.readouterr().out
    with pytest.raises(ValueError, match="no data set 'nowhere'"):
        improve(["nowhere:3"], effort, minutes=1, folder=copied)


@pytest.mark.parametrize(("name", "k"), [("iris", 3), ("bavaria1", 10), ("german_towns", 34)])
def test_a_compact_proof_is_smaller_and_still_one(name: str, k: int) -> None:
    """With one case, with several, and in the plane."""
    records = Records.of(name)
    X, labels = records.samples.X, records.labels(k)
    whole = evomeans.certify(X, labels, n_clusters=k, max_time=600, gap=5e-7)
    small, content = compact(whole, X)
    assert content is not None
    assert len(content) < len(library.packed(whole)) * (0.9 if name == "german_towns" else 0.5)
    assert library.unpacked(content).verify(X) >= small.lower_bound * (1 - 1e-9)
    assert small.upper_bound - small.lower_bound <= 1e-6 * small.upper_bound


def test_a_proof_that_is_no_optimum_is_not_made_smaller() -> None:
    """Of a bound that is too far below, nothing that reaches the goal can be kept."""
    records = Records.of("bavaria1")
    X, labels = records.samples.X, records.labels(10)
    whole = evomeans.certify(X, labels, n_clusters=10, max_time=600, gap=0.05)
    assert not whole.is_optimal
    assert compact(whole, X) == (whole, None)


def test_searches_that_find_nothing_better_are_counted(copied: Path) -> None:
    improve(["german_towns:6"], Effort(2, seeds=(1, 2)), minutes=5, folder=copied)
    before = library.read("german_towns").instances[6]
    assert library.read("german_towns", copied).instances[6] == replace(
        before, searches=before.searches + 2
    )


def emptied(copied: Path, k: int) -> None:
    """Make the solution of an instance worse, and forget its proof."""
    data, records = library.read("german_towns", copied), Records.of("german_towns", copied)
    solutions = library.read_solutions("german_towns", copied)
    worse = solutions[k].copy()
    worse[0] = (worse[0] + 1) % k
    inertia = records.inertia(worse[records.samples.places])
    library.write_solutions("german_towns", {**solutions, k: worse}, copied)
    library.write(data.with_instance(library.Instance(k, inertia, "test", "test")), copied)
    library.certificate_path("german_towns", k, copied).unlink()


def test_what_another_copy_has_found_is_taken_over(copied: Path, tmp_path: Path) -> None:
    data = library.read("german_towns")
    emptied(copied, 5)
    said = list(merge(copy_to(tmp_path / "other"), copied))
    assert said == [f"german_towns:5 {data.instances[5].inertia!r}", "german_towns:5 proven"]
    assert library.read("german_towns", copied) == data
    assert list(faults("german_towns", copied)) == []


def test_a_certificate_of_another_copy_is_checked(copied: Path, tmp_path: Path) -> None:
    other = copy_to(tmp_path / "other")
    shutil.copy(*(other / "certificates" / f"german_towns-{k}.xz" for k in (7, 5)))
    emptied(copied, 5)
    with pytest.raises(ValueError, match="k=5: the certificate does not prove an optimum for k=5"):
        list(merge(other, copied))
    assert library.read("german_towns", copied).instances[5].status == library.OPEN


@pytest.mark.slow
def test_tables_unfold_and_sort_in_a_browser(tmp_path: Path) -> None:
    """Numbers by size, and rows without a gap at the end; a second click turns it round."""
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("no chromium here")
    [script] = re.findall(r"<script>.*?</script>", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    cells = ["1,797", "", "5.9e-06", "89", "0.2"]
    rows = "".join(f"<tr><td>{cell}</td></tr>" for cell in cells)
    table = f"<table><thead><tr><th>gap</th></tr></thead><tbody>{rows}</tbody></table>"
    folded = f'<details id="set-iris">{table}</details><details id="set-wine"></details>'
    click = "<script>document.querySelector('th').click()</script>"
    for clicks, expected in [
        (1, ["5.9e-06", "0.2", "89", "1,797", ""]),
        (2, ["", "1,797", "89", "0.2", "5.9e-06"]),
    ]:
        file = tmp_path / "page.html"
        file.write_text(f"<article>{folded}</article>{script}{click * clicks}", encoding="utf-8")
        command = [program, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"]
        command += [f"--user-data-dir={tmp_path}/profile", f"{file.as_uri()}#set-iris"]
        shown = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
        assert re.findall(r"<td>(.*?)</td>", shown.stdout) == expected
        assert re.findall(r"<details.*?>", shown.stdout) == [
            '<details id="set-iris" open="">',
            '<details id="set-wine">',
        ]


def test_a_search_is_shown_in_a_few_words() -> None:
    by = "HGMeans, strategy='deep', random_state=3, max_time=20"
    shown = [found_by(library.Instance(3, 1.0, one, "abc")) for one in (by, "by hand, seed 3")]
    assert shown == ["deep, seed 3, at most 20 s", "by hand, seed 3"]
