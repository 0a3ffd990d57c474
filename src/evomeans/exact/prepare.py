"""Which kernels a proof will call, so that they can be compiled before its clock starts."""

from __future__ import annotations

from evomeans.compiled.ready import Call, ready
from evomeans.exact import (
    bound,
    cut_search,
    parts,
    plane_boxes,
    plane_case,
    plane_master,
    plane_proof,
    projection,
    subproblem,
)

MODULES = (
    projection,
    parts,
    cut_search,
    bound,
    plane_boxes,
    plane_case,
    plane_proof,
    plane_master,
    subproblem,
)


def kernel_calls() -> list[Call]:
    """Return the calls of all kinds of proofs."""
    return [call for module in MODULES for call in module.kernel_calls()]


def prepare() -> None:
    """Compile them, unless that was done on this machine before."""
    ready(kernel_calls())
