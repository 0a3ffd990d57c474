"""Which kernels a proof will call, so that they can be compiled before its clock starts."""

from __future__ import annotations

from evomeans.compiled.ready import Call, ready
from evomeans.exact import admm_kernels, anticlusters, fixing, star_cuts


def kernel_calls() -> list[Call]:
    """Return the calls of a proof by relaxation."""
    return [*anticlusters.kernel_calls(), *admm_kernels.kernel_calls(), *star_cuts.kernel_calls(), *fixing.kernel_calls()]


def prepare() -> None:
    """Compile them, unless that was done on this machine before."""
    ready(kernel_calls())
