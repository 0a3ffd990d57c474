"""Certificates in files, with their proofs; docs/background/file-formats.md has the format."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, replace
from itertools import islice, repeat
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from evomeans.exact.cases import LARGEST_CUTOFF, CasesProof, ProofStep, StepKind
from evomeans.exact.certificate import (
    BOUNDED,
    GAP_REACHED,
    OPTIMAL,
    OPTIMAL_GAP,
    PROVEN,
    STATUSES,
    STOP_REASONS,
    TOLERANCE,
    Certificate,
)
from evomeans.exact.cuts import MOST_MEMBERS
from evomeans.exact.plane_proof import PlaneProof
from evomeans.exact.proofs import DirectProof, Method, PartsProof, Proof, SeparationProof
from evomeans.exact.relaxation import Multipliers, TreeProof
from evomeans.storage.archive import Archive, ArchiveError, Arrays, read_archive, write_archive

FORMAT = "evomeans certificate"
VERSION = 3
KINDS: tuple[type | None, ...] = (None, DirectProof, SeparationProof, TreeProof, PlaneProof)
"""The kinds of proofs of one part, by their numbers in the file."""
FIGURES = {
    one.name: str(one.type) for one in fields(Certificate) if one.name not in ("labels", "proof")
}
"""The fields of a certificate that the JSON object holds, and their types."""
KNOWN = {"status": STATUSES, "method": tuple(Method), "stop_reason": STOP_REASONS}
COUNTS = ("n_clusters", "n_samples", "n_features")  # at least one


class CertificateFileError(ValueError):
    """Raised by :func:`load_certificate` for a file that is damaged, or of another format."""


def save_certificate(certificate: Certificate, path: str | os.PathLike[str]) -> None:
    """Write a certificate and its proof to a file that :func:`load_certificate` reads.

    The file is a ZIP of NumPy arrays and a JSON text, without pickle. It is written atomically.

    Parameters
    ----------
    certificate : Certificate
        With its proof.
    path : path-like
        The file. A proof by relaxation takes some megabytes.
    """
    if certificate.proof is None:
        raise ValueError(
            "This certificate was read from a model file, which keeps the figures only; "
            "certify again to get one with its proof."
        )
    if certificate.contradiction is not None:
        raise ValueError(f"The certificate is not valid: {certificate.contradiction}.")
    arrays = _proof_arrays(certificate.proof)
    if certificate.labels is not None:
        arrays["labels"] = certificate.labels
    write_archive(path, FORMAT, VERSION, certificate_to_meta(certificate), arrays)


def load_certificate(path: str | os.PathLike[str]) -> Certificate:
    """Read a certificate that :func:`save_certificate` wrote.

    A file that contradicts itself is refused. Whether what it says is true of some samples is for
    ``certificate.verify(X)`` to find out.

    Parameters
    ----------
    path : path-like
        The file.

    Returns
    -------
    Certificate

    Raises
    ------
    CertificateFileError
        If the file is not a valid one. It is a ValueError.
    OSError
        If there is no such file, or it cannot be read.
    """
    try:
        archive = read_archive(path, FORMAT, VERSION)
        n_samples = archive.field("n_samples", "int", 1)
        labels = None
        if "labels" in archive.arrays:
            k = archive.field("n_clusters", "int", 1)
            labels = archive.array("labels", "int32", (n_samples,), low=0, high=k - 1)
        is_older = archive.meta["version"] < VERSION
        proof = _proof(archive, n_samples)
        return certificate_from_meta(archive, labels, proof, is_older=is_older)
    except ArchiveError as error:
        text = f"{os.fspath(path)} is not a valid certificate: {error}."
        raise CertificateFileError(text) from error


def certificate_to_meta(certificate: Certificate) -> dict[str, Any]:
    """Return the figures of a certificate, as JSON."""
    return {name: getattr(certificate, name) for name in FIGURES}


def certificate_from_meta(
    archive: Archive,
    labels: NDArray[np.int32] | None = None,
    proof: Proof | None = None,
    *,
    is_older: bool = True,
) -> Certificate:
    """Return the certificate whose figures an archive holds, perhaps of an older version."""
    for name, known in KNOWN.items():
        if archive.field(name, "str") not in known:
            raise ArchiveError(f"its {name} is unknown")
    figures = {
        name: archive.field(name, kind, low=1 if name in COUNTS else 0)
        for name, kind in FIGURES.items()
        # The first versions did not have it.
        if name != "constrained" or name in archive.meta
    }
    certificate = Certificate(**figures, labels=labels, proof=proof)
    is_wide = certificate.gap > OPTIMAL_GAP + TOLERANCE
    if is_older and certificate.status == OPTIMAL and is_wide:
        # Older versions called any gap optimal that was asked for.
        certificate = replace(certificate, status=BOUNDED, stop_reason=GAP_REACHED)
    is_proven = certificate.stop_reason == PROVEN
    if certificate.contradiction is not None or is_proven != (certificate.status == OPTIMAL):
        reason = certificate.contradiction or "its status is not that of its stop_reason"
        raise ArchiveError(reason)
    return certificate


# Proofs


def _proof_arrays(proof: Proof) -> Arrays:
    """Write a proof as arrays: those of its parts one after the other."""
    parts = proof.proofs if isinstance(proof, PartsProof) else (proof,)
    trees = [part for part in parts if isinstance(part, TreeProof)]
    planes = [part for part in parts if isinstance(part, PlaneProof)]
    used = [step.multipliers for tree in trees for step in tree.steps]
    given = [one for one in used if one is not None]
    cuts = [np.zeros((0, MOST_MEMBERS + 1), np.int32), *(one.cuts for one in given)]
    labels = [part.labels for part in parts if isinstance(part, SeparationProof)]
    arrays: Arrays = {
        "kinds": np.array([KINDS.index(None if p is None else type(p)) for p in parts], np.int64),
        **_step_arrays(trees, "cutoffs", "step", lambda one: len(one.slack)),
        "step_cuts": np.array([len(one.cuts) if one else 0 for one in used], np.int64),
        "slack": _joined([one.slack[np.triu_indices(len(one.slack))] for one in given]),
        "cuts": np.concatenate(cuts).astype(np.int32),
        "prices": _joined([one.prices for one in given]),
        **_step_arrays(planes, "plane_cutoffs", "plane", len),
        "plane_prices": _joined(
            [one.multipliers for p in planes for one in p.steps if one.multipliers is not None]
        ),
        "separated_labels": np.concatenate([np.zeros(0, np.int64), *labels]),
    }
    if isinstance(proof, PartsProof):
        arrays["parts"] = proof.parts.astype(np.int64)
    return arrays


def _step_arrays(
    proofs: Sequence[CasesProof], cutoffs: str, prefix: str, n_groups: Callable[[Any], int]
) -> Arrays:
    """Write the steps of proofs without their multipliers, of which the groups are counted."""
    steps = [step for proof in proofs for step in proof.steps]
    groups = [0 if step.multipliers is None else n_groups(step.multipliers) for step in steps]
    return {
        cutoffs: np.array([proof.cutoff for proof in proofs], np.float64),
        f"{prefix}_counts": np.array([len(proof.steps) for proof in proofs], np.int64),
        f"{prefix}_kinds": np.array([int(step.kind) for step in steps], np.int64),
        f"{prefix}_pairs": np.array([step.pair for step in steps], np.int64).reshape(-1, 2),
        f"{prefix}_groups": np.array(groups, np.int64),
    }


def _joined(arrays: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    return np.concatenate([np.zeros(0), *arrays])


class _Reader:
    """Takes so many entries from the front of an array, again and again."""

    def __init__(self, values: NDArray[Any], name: str) -> None:
        self.values, self.name, self.place = values, name, 0

    def take(self, count: int) -> NDArray[Any]:
        if not 0 <= count <= len(self.values) - self.place:
            raise ArchiveError(f"its {self.name} is too short")
        self.place += count
        return self.values[self.place - count : self.place]


def _proof(archive: Archive, n: int) -> Proof:
    """Return the proof in an archive, which speaks of at most n points."""
    kinds = archive.array("kinds", "int64", (None,), low=0, high=len(KINDS) - 1)
    if not 1 <= len(kinds) <= n:
        raise ArchiveError(f"it holds {len(kinds)} proofs for {n} samples")
    found = archive.array("separated_labels", "int64", (None,), low=0, high=n - 1)
    labels = _Reader(found, "separated_labels")
    parts, sizes = None, [len(found), *[0] * (len(kinds) - 1)]
    if "parts" in archive.arrays:
        parts = archive.array("parts", "int64", (None,), low=0, high=len(kinds) - 1)
        sizes = np.bincount(parts, minlength=len(kinds)).tolist()
    known = [KINDS[kind] for kind in kinds.tolist()]
    own = [size for kind, size in zip(known, sizes, strict=True) if kind is SeparationProof]
    sources: dict[type | None, Iterator[Proof | None]] = {
        None: repeat(None),
        DirectProof: repeat(DirectProof()),
        SeparationProof: (SeparationProof(labels.take(size)) for size in own),
        TreeProof: _trees(archive, n),
        PlaneProof: _planes(archive, n),
    }
    proofs = tuple(next(sources[kind], None) for kind in known)
    if any(proof is None and kind is not None for proof, kind in zip(proofs, known, strict=True)):
        raise ArchiveError("it lacks the steps of a proof")
    if parts is not None:
        return PartsProof(parts, proofs)
    if len(proofs) != 1 or proofs[0] is None:
        raise ArchiveError("it does not hold exactly one proof")
    return proofs[0]


def _trees(archive: Archive, n_points: int) -> Iterator[TreeProof]:
    if not len(archive.arrays.get("step_counts", ())):
        return
    slack = _Reader(archive.array("slack", "float64", (None,)), "slack")
    prices = _Reader(archive.array("prices", "float64", (None,), low=0.0), "prices")
    cuts = _Reader(
        archive.array("cuts", "int32", (None, MOST_MEMBERS + 1), low=-1, high=n_points - 1), "cuts"
    )
    n_steps = len(archive.arrays.get("step_kinds", ()))
    cut_counts = _Reader(archive.array("step_cuts", "int64", (n_steps,), low=0), "step_cuts")

    def multipliers(n: int) -> Multipliers | None:
        m = int(cut_counts.take(1)[0])
        if n == 0:
            return None
        triangle = slack.take(n * (n + 1) // 2)
        full = np.zeros((n, n))
        full[np.triu_indices(n)] = triangle
        full += np.triu(full, 1).T
        return Multipliers(full, np.ascontiguousarray(cuts.take(m)), prices.take(m))

    yield from _proofs(TreeProof, archive, "cutoffs", "step", n_points, multipliers)


def _planes(archive: Archive, n_points: int) -> Iterator[PlaneProof]:
    prices = _Reader(archive.array("plane_prices", "float64", (None,)), "plane_prices")
    if archive.meta["version"] == 1:
        # Prices of all points were the whole proof, and no part of a larger one.
        yield PlaneProof(LARGEST_CUTOFF, (ProofStep(StepKind.END, prices.values),))
        return

    def multipliers(n: int) -> NDArray[np.float64] | None:
        return prices.take(n) if n > 0 else None

    yield from _proofs(PlaneProof, archive, "plane_cutoffs", "plane", n_points, multipliers)


P = TypeVar("P", TreeProof, PlaneProof)


def _proofs(
    kind: type[P],
    archive: Archive,
    cutoffs: str,
    prefix: str,
    n_points: int,
    multipliers: Callable[[int], Any],
) -> Iterator[P]:
    """Yield proofs by cases; the multipliers of a step are read by its number of groups."""
    counts = archive.array(f"{prefix}_counts", "int64", (None,), low=1).tolist()
    total, there = sum(counts), len(archive.arrays.get(f"{prefix}_kinds", ()))
    if total != there:
        raise ArchiveError(f"it has {there} steps, and proofs with {total}")
    most, last = max(StepKind), n_points - 1
    known = archive.array(cutoffs, "float64", (len(counts),), low=0.0, high=LARGEST_CUTOFF)
    kinds = archive.array(f"{prefix}_kinds", "int64", (total,), low=0, high=most).tolist()
    pairs = archive.array(f"{prefix}_pairs", "int64", (total, 2), low=-1, high=last).tolist()
    groups = archive.array(f"{prefix}_groups", "int64", (total,), low=0, high=n_points).tolist()
    rows = zip(kinds, groups, pairs, strict=True)
    steps = (ProofStep(StepKind(own), multipliers(n), (a, b)) for own, n, (a, b) in rows)
    for count, cutoff in zip(counts, known.tolist(), strict=True):
        yield kind(cutoff, tuple(islice(steps, count)))
