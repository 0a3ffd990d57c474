"""Certificate files: older versions are read, and files that lie are refused."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evomeans
from evomeans.exact.proofs import InvalidProofError
from evomeans.storage.archive import write_archive
from evomeans.storage.certificate_file import FORMAT, KINDS, VERSION, certificate_to_meta
from tests.fuzz.tampering import contents, rewrite

X = np.random.default_rng(3).normal(size=(26, 2)) + 3 * (np.arange(26) % 2)[:, None]


@pytest.fixture(scope="module", params=["relaxation", "plane", "separation", "parts", "direct"])
def method(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def certificate(method) -> evomeans.Certificate:
    k = 1 if method == "direct" else 2
    labels = evomeans.HGMeans(k, random_state=0).fit(X).labels_
    return evomeans.certify(X, labels, method=method, max_time=5, part_size=13)


@pytest.fixture
def path(certificate, tmp_path) -> Path:
    evomeans.save_certificate(certificate, tmp_path / "proof.evomeans")
    return tmp_path / "proof.evomeans"


def as_written_before(path: Path, **meta: Any) -> None:
    """Turn a file into one of the second version."""
    rewrite(path, {**meta, "version": 2}, without=("n_features", "constrained"))


@pytest.mark.parametrize("version", [2, VERSION])
def test_files_of_the_last_two_versions_are_read_and_verified(certificate, path, version) -> None:
    if version == 2:
        as_written_before(path)
    loaded = evomeans.load_certificate(path)
    assert loaded.n_features == (None if version == 2 else 2)
    assert str(loaded) == str(certificate)
    assert np.array_equal(loaded.labels, certificate.labels)
    assert loaded.verify(X) == certificate.lower_bound
    evomeans.save_certificate(loaded, path)
    assert evomeans.load_certificate(path).verify(X) == loaded.lower_bound


def test_prices_in_a_file_of_the_first_version_are_read(tmp_path) -> None:
    """Prices of all points were the whole proof."""
    labels = evomeans.HGMeans(2, random_state=0).fit(X).labels_
    proven = evomeans.certify(X, labels, method="plane")
    (step,) = proven.proof.steps
    arrays = {name: np.zeros(0, np.int64) for name in ("step_counts", "separated_labels")}
    arrays |= {"kinds": np.array([KINDS.index(type(proven.proof))]), "labels": proven.labels}
    arrays["plane_prices"] = step.multipliers
    write_archive(tmp_path / "x", FORMAT, 1, certificate_to_meta(proven), arrays)
    assert evomeans.load_certificate(tmp_path / "x").verify(X) == proven.lower_bound


def test_a_proof_in_the_plane_with_cases_survives_its_file(tmp_path) -> None:
    """Prices alone do not prove this one: it is split."""
    samples = np.random.default_rng(17).integers(0, 6, size=(30, 2)).astype(float)
    proven = evomeans.ExactKMeans(5, random_state=0).fit(samples).certificate_
    assert (proven.method, proven.is_optimal) == ("plane", True)
    assert proven.n_nodes > 1
    evomeans.save_certificate(proven, tmp_path / "x")
    assert evomeans.load_certificate(tmp_path / "x").verify(samples) == proven.lower_bound


def test_an_older_optimum_within_a_large_gap_is_called_bounded(certificate, path) -> None:
    """That is what was proven; the older word for it was "optimal"."""
    lower = 0.9 * certificate.lower_bound
    told = {"lower_bound": lower, "status": "optimal", "stop_reason": "proven_optimal"}
    as_written_before(path, **told)
    loaded = evomeans.load_certificate(path)
    assert (loaded.status, loaded.stop_reason) == ("bounded", "gap_reached")
    assert loaded.verify(X) >= lower


LIES: list[dict[str, Any]] = [
    {"method": {}},
    {"method": []},
    {"status": ["optimal"]},
    {"stop_reason": {}},
    {"status": "optimal", "stop_reason": "proven_optimal", "lower_bound": 0, "upper_bound": 5},
    {"status": "bounded", "stop_reason": "proven_optimal"},
    {"status": "optimal", "stop_reason": "max_time"},
    {"upper_bound": 0},
    {"lower_bound": 1e300},
    {"n_samples": 5},
    {"n_samples": 2**50},
    {"n_clusters": 0},
    {"n_features": "two"},
    {"constrained": 1},
    {"reason": None},
]


@pytest.mark.parametrize("lie", LIES, ids=str)
def test_figures_that_contradict_themselves_are_refused(path, lie) -> None:
    """They were loaded, or ended in a TypeError."""
    rewrite(path, lie)
    with pytest.raises(evomeans.CertificateFileError, match="is not a valid certificate"):
        evomeans.load_certificate(path)


@pytest.mark.parametrize(
    "labels", [np.full(26, 99), np.arange(7) % 2, np.full(26, -1), np.zeros(0)], ids=len
)
def test_labels_that_do_not_fit_are_refused(path, labels) -> None:
    rewrite(path, arrays={"labels": labels.astype(np.int32)})
    with pytest.raises(evomeans.CertificateFileError):
        evomeans.load_certificate(path)


@contextmanager
def little_memory() -> Iterator[None]:
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < 50 * 2**20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("number", [3 * 10**8, 2**40, 2**62])
def test_numbers_beyond_the_samples_take_no_memory(path, number) -> None:
    """8 TiB were asked for."""
    arrays, original = contents(path)[1], path.read_bytes()
    # Whatever the kind of proof, a file may have parts.
    arrays = {"parts": np.zeros(26, np.int64), **arrays}
    whole = {name for name, values in arrays.items() if values.dtype.kind == "i" and values.size}
    for name in sorted(whole - {"labels"}):
        values = arrays[name].copy()
        values.flat[-1] = min(number, np.iinfo(values.dtype).max)
        rewrite(path, arrays={name: values})
        with little_memory(), pytest.raises((evomeans.CertificateFileError, InvalidProofError)):
            evomeans.load_certificate(path).verify(X)
        path.write_bytes(original)


def test_counts_whose_sum_overflows_are_refused(path) -> None:
    """Four times 2^62 is 0 in 64 bits."""
    counts = dict.fromkeys(("step_counts", "plane_counts"), np.full(4, 2**62))
    for kind in (3, 4):
        kinds = {"kinds": np.array([kind]), "parts": np.zeros(26, np.int64)}
        rewrite(path, arrays={**counts, **kinds})
        with pytest.raises(evomeans.CertificateFileError, match="steps, and proofs with"):
            evomeans.load_certificate(path)


@pytest.mark.parametrize("count", [5 * 10**8, 2**50])
def test_a_number_of_clusters_costs_nothing(path, count) -> None:
    """4 GB and ten seconds in verify."""
    rewrite(path, {"n_clusters": count})
    with little_memory(), pytest.raises((evomeans.CertificateFileError, InvalidProofError)):
        evomeans.load_certificate(path).verify(X)


def test_a_certificate_that_contradicts_itself_is_not_saved(certificate, tmp_path) -> None:
    forged = replace(certificate, upper_bound=certificate.lower_bound / 2)
    with pytest.raises(ValueError, match="its bounds are"):
        evomeans.save_certificate(forged, tmp_path / "x")
    assert not (tmp_path / "x").exists()
