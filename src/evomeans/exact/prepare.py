"""Which kernels a proof will call, so that they can be compiled before its clock starts."""

from __future__ import annotations

from evomeans.compiled.ready import Call, ready
from evomeans.exact import (
    admm_kernels,
    anticlusters,
    cut_search,
    fixing,
    plane_boxes,
    plane_descent,
    plane_fixing,
    plane_master,
    star_cuts,
)

MODULES = (
    admm_kernels,
    anticlusters,
    cut_search,
    fixing,
    plane_boxes,
    plane_descent,
    plane_fixing,
    plane_master,
    star_cuts,
)


def kernel_calls() -> list[Call]:
    """Return the calls of all kinds of proofs."""
    return [call for module in MODULES for call in module.kernel_calls()]


def prepare() -> None:
    """Compile them, unless that was done on this machine before."""
    ready(kernel_calls())
