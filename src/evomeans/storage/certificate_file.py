"""Certificates in files, with their proofs; docs/guide/proof.md describes the format."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
from evomeans.exact.plane_proof import PlaneProof, PlaneStep
from evomeans.exact.proofs import (
    DirectProof,
    Method,
    PartsProof,
    Proof,
    SeparationProof,
)
from evomeans.exact.subproblem import LARGEST, Multipliers
from evomeans.exact.tree import LARGEST_CUTOFF, Step, StepKind, TreeProof
from evomeans.storage.archive import Archive, ArchiveError, read_archive, write_archive

FORMAT = "evomeans certificate"
VERSION = 3
KINDS: tuple[type | None, ...] = (None, DirectProof, SeparationProof, TreeProof, PlaneProof)
"""The kinds of proofs of one part, by their numbers in the file."""
Arrays = dict[str, NDArray[Any]]


class CertificateFileError(ValueError):
    """A file that :func:`load_certificate` refuses: damaged, or of another format."""


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
        n_samples = archive.integer("n_samples", 1)
        labels = None
        if "labels" in archive.arrays:
            k = archive.integer("n_clusters", 1)
            labels = archive.array("labels", "int32", (n_samples,), low=0, high=k - 1)
        is_older = archive.meta["version"] < VERSION
        proof = _proof(archive, n_samples)
        return certificate_from_meta(archive, labels, proof, is_older=is_older)
    except ArchiveError as error:
        text = f"{os.fspath(path)} is not a valid certificate: {error}."
        raise CertificateFileError(text) from error


def certificate_to_meta(certificate: Certificate) -> dict[str, Any]:
    """Return the figures of a certificate, as JSON."""
    return {
        "lower_bound": certificate.lower_bound,
        "upper_bound": certificate.upper_bound,
        "status": certificate.status,
        "method": certificate.method,
        "reason": certificate.reason,
        "n_clusters": certificate.n_clusters,
        "n_samples": certificate.n_samples,
        "n_features": certificate.n_features,
        "n_nodes": certificate.n_nodes,
        "n_cuts": certificate.n_cuts,
        "seconds": certificate.seconds,
        "stop_reason": certificate.stop_reason,
        "confidence": certificate.confidence,
        "improved": certificate.improved,
        "constrained": certificate.constrained,
    }


def certificate_from_meta(
    archive: Archive,
    labels: NDArray[np.int32] | None = None,
    proof: Proof | None = None,
    *,
    is_older: bool = True,
) -> Certificate:
    """Return the certificate whose figures an archive holds, perhaps of an older version."""
    meta = archive.meta
    for name, known in (
        ("status", STATUSES),
        ("method", list(Method)),
        ("stop_reason", STOP_REASONS),
    ):
        if not isinstance(meta.get(name), str) or meta[name] not in known:
            raise ArchiveError(f"its {name} is unknown")
    if not isinstance(meta.get("reason"), str):
        raise ArchiveError("its reason is not a text")
    certificate = Certificate(
        lower_bound=archive.number("lower_bound"),
        upper_bound=archive.number("upper_bound"),
        status=meta["status"],
        method=meta["method"],
        reason=meta["reason"],
        n_clusters=archive.integer("n_clusters", 1),
        n_samples=archive.integer("n_samples", 1),
        n_nodes=archive.integer("n_nodes"),
        n_cuts=archive.integer("n_cuts"),
        seconds=archive.number("seconds"),
        stop_reason=meta["stop_reason"],
        confidence=None if meta.get("confidence") is None else archive.number("confidence"),
        improved=archive.flag("improved"),
        n_features=None if meta.get("n_features") is None else archive.integer("n_features", 1),
        constrained="constrained" in meta and archive.flag("constrained"),
        labels=labels,
        proof=proof,
    )
    if is_older:
        certificate = _in_words_of_today(certificate)
    is_proven = certificate.stop_reason == PROVEN
    if certificate.contradiction is not None or is_proven != (certificate.status == OPTIMAL):
        reason = certificate.contradiction or "its status is not that of its stop_reason"
        raise ArchiveError(reason)
    return certificate


def _in_words_of_today(certificate: Certificate) -> Certificate:
    """Return what is called bounded today if an older version called it optimal.

    Any gap that was asked for was called optimal then.
    """
    if certificate.status == OPTIMAL and certificate.gap > OPTIMAL_GAP + TOLERANCE:
        return replace(certificate, status=BOUNDED, stop_reason=GAP_REACHED)
    return certificate


# Proofs


def _proof_arrays(proof: Proof) -> Arrays:
    """Write a proof as arrays: those of its parts one after the other."""
    parts = proof.proofs if isinstance(proof, PartsProof) else (proof,)
    trees = [part for part in parts if isinstance(part, TreeProof)]
    steps = [step for tree in trees for step in tree.steps]
    used = [step.multipliers for step in steps if step.multipliers is not None]
    arrays: Arrays = {
        "kinds": np.array([KINDS.index(None if p is None else type(p)) for p in parts], np.int64),
        "cutoffs": np.array([tree.cutoff for tree in trees]),
        "step_counts": np.array([len(tree.steps) for tree in trees], np.int64),
        "step_kinds": np.array([int(step.kind) for step in steps], np.int64),
        "step_pairs": np.array([step.pair for step in steps], np.int64).reshape(-1, 2),
        "step_groups": np.array([_groups(step) for step in steps], np.int64),
        "step_cuts": np.array(
            [len(step.multipliers.cuts) if step.multipliers else 0 for step in steps], np.int64
        ),
        "slack": _joined([one.slack[np.triu_indices(len(one.slack))] for one in used]),
        "cuts": np.concatenate(
            [np.zeros((0, LARGEST + 1), np.int32), *(one.cuts for one in used)]
        ).astype(np.int32),
        "prices": _joined([one.prices for one in used]),
        **_plane_arrays([part for part in parts if isinstance(part, PlaneProof)]),
        "separated_labels": np.concatenate(
            [np.zeros(0, np.int64), *(p.labels for p in parts if isinstance(p, SeparationProof))]
        ),
    }
    if isinstance(proof, PartsProof):
        arrays["parts"] = proof.parts.astype(np.int64)
    return arrays


def _plane_arrays(proofs: Sequence[PlaneProof]) -> Arrays:
    steps = [step for proof in proofs for step in proof.steps]
    prices = [step.prices for step in steps if step.prices is not None]
    counts = [0 if step.prices is None else len(step.prices) for step in steps]
    return {
        "plane_cutoffs": np.array([proof.cutoff for proof in proofs], np.float64),
        "plane_counts": np.array([len(proof.steps) for proof in proofs], np.int64),
        "plane_kinds": np.array([int(step.kind) for step in steps], np.int64),
        "plane_pairs": np.array([step.pair for step in steps], np.int64).reshape(-1, 2),
        "plane_groups": np.array(counts, np.int64),
        "plane_prices": _joined(prices),
    }


def _groups(step: Step) -> int:
    return len(step.multipliers.slack) if step.multipliers is not None else 0


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
    sources: dict[type | None, Iterator[Proof]] = {
        TreeProof: _trees(archive, n),
        PlaneProof: _planes(archive, n),
        DirectProof: repeat(DirectProof()),
    }
    found = archive.array("separated_labels", "int64", (None,), low=0, high=n - 1)
    labels = _Reader(found, "separated_labels")
    parts, sizes = None, [len(found)]
    if "parts" in archive.arrays:
        parts = archive.array("parts", "int64", (None,), low=0, high=len(kinds) - 1)
        sizes = np.bincount(parts, minlength=len(kinds)).tolist()
    proofs: list[Proof | None] = []
    for number, kind in enumerate(KINDS[kind] for kind in kinds.tolist()):
        if kind is None:
            proofs.append(None)
        elif kind is SeparationProof:
            count = sizes[number] if number < len(sizes) else 0
            proofs.append(SeparationProof(labels.take(count)))
        else:
            proof = next(sources[kind], None)
            if proof is None:
                raise ArchiveError("it lacks the steps of a proof")
            proofs.append(proof)
    if parts is not None:
        return PartsProof(parts, tuple(proofs))
    if len(proofs) != 1 or proofs[0] is None:
        raise ArchiveError("it does not hold exactly one proof")
    return proofs[0]


def _trees(archive: Archive, n_points: int) -> Iterator[TreeProof]:
    counts = _counts(archive, "step_counts", "step_kinds")
    if not counts:
        return
    total = sum(counts)
    cutoffs = archive.array("cutoffs", "float64", (len(counts),), low=0.0, high=LARGEST_CUTOFF)
    kinds = archive.array("step_kinds", "int64", (total,), low=0, high=max(StepKind))
    pairs = archive.array("step_pairs", "int64", (total, 2), low=-1, high=n_points - 1)
    groups = archive.array("step_groups", "int64", (total,), low=0, high=n_points)
    cut_counts = archive.array("step_cuts", "int64", (total,), low=0)
    slack = _Reader(archive.array("slack", "float64", (None,)), "slack")
    prices = _Reader(archive.array("prices", "float64", (None,), low=0.0), "prices")
    cuts = _Reader(
        archive.array("cuts", "int32", (None, LARGEST + 1), low=-1, high=n_points - 1), "cuts"
    )
    place = 0
    for count, cutoff in zip(counts, cutoffs.tolist(), strict=True):
        steps = []
        for index in range(place, place + count):
            n, multipliers = int(groups[index]), None
            if n > 0:
                triangle = slack.take(n * (n + 1) // 2)
                full = np.zeros((n, n))
                full[np.triu_indices(n)] = triangle
                full += np.triu(full, 1).T
                m = int(cut_counts[index])
                multipliers = Multipliers(full, np.ascontiguousarray(cuts.take(m)), prices.take(m))
            pair = int(pairs[index, 0]), int(pairs[index, 1])
            steps.append(Step(StepKind(int(kinds[index])), multipliers, pair))
        place += count
        yield TreeProof(cutoff, tuple(steps))


def _planes(archive: Archive, n_points: int) -> Iterator[PlaneProof]:
    prices = _Reader(archive.array("plane_prices", "float64", (None,)), "plane_prices")
    if archive.meta["version"] == 1:
        # Prices of all points were the whole proof, and no part of a larger one.
        yield PlaneProof(LARGEST_CUTOFF, (PlaneStep(StepKind.END, prices.values),))
        return
    counts = _counts(archive, "plane_counts", "plane_kinds")
    total = sum(counts)
    high = LARGEST_CUTOFF
    cutoffs = archive.array("plane_cutoffs", "float64", (len(counts),), low=0.0, high=high)
    kinds = archive.array("plane_kinds", "int64", (total,), low=0, high=max(StepKind))
    pairs = archive.array("plane_pairs", "int64", (total, 2), low=-1, high=n_points - 1)
    groups = archive.array("plane_groups", "int64", (total,), low=0, high=n_points)
    place = 0
    for count, cutoff in zip(counts, cutoffs.tolist(), strict=True):
        steps = []
        for index in range(place, place + count):
            n = int(groups[index])
            pair = int(pairs[index, 0]), int(pairs[index, 1])
            found = prices.take(n) if n > 0 else None
            steps.append(PlaneStep(StepKind(int(kinds[index])), found, pair))
        place += count
        yield PlaneProof(cutoff, tuple(steps))


def _counts(archive: Archive, name: str, steps: str) -> list[int]:
    """Return how many steps each proof has; they are all the steps that there are."""
    counts: list[int] = archive.array(name, "int64", (None,), low=1).tolist()
    there = len(archive.arrays.get(steps, ()))
    if sum(counts) != there:
        raise ArchiveError(f"it has {there} steps, and proofs with {sum(counts)}")
    return counts
