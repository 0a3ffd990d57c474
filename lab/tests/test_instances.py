"""The library of instances: its values are exact, its page is in step, bad files are refused."""

from __future__ import annotations

import itertools
import shutil
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from lab.instances import library
from lab.instances.catalogue import canonical, samples_of
from lab.instances.exact import ExactSamples, rounded
from lab.instances.page import PAGE, rendered
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
    text = PAGE.read_text(encoding="utf-8")
    assert rendered(text) == text, "run python -m lab instances table"


def test_the_files_are_true_of_a_small_data_set() -> None:
    assert list(faults("german_towns")) == []


def test_the_library_is_small() -> None:
    folders = [library.FOLDER, library.FOLDER / "solutions", library.FOLDER / "certificates"]
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


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    (tmp_path / "solutions").mkdir()
    (tmp_path / "certificates").mkdir()
    for path in ("german_towns.json", "solutions/german_towns.npz"):
        shutil.copy(library.FOLDER / path, tmp_path / path)
    for path in (library.FOLDER / "certificates").glob("german_towns-*.xz"):
        shutil.copy(path, tmp_path / "certificates")
    return tmp_path


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
    file.write_text("<script>")
    with pytest.raises(SubmissionError, match="cannot be read"):
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
