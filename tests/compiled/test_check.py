"""Where the compiler layer is not trusted, kernels are compiled the plain way: same results."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from evomeans.compiled import check
from evomeans.compiled.check import objection
from evomeans.compiled.jit import REORDER
from evomeans.compiled.kernel import Kernel
from evomeans.compiled.plain import PlainKernel, call_function
from limits import time_limit

FIT = """
import hashlib
import numpy as np
{before}
from evomeans import HGMeans
X = np.random.default_rng(0).normal(size=(200, 3))
model = HGMeans(4, strategy="paper", max_offspring=12, random_state=0).fit(X)
history = [record.inertia for record in model.history_]
print(model.labels_.tolist(), model.inertia_.hex(), history)
"""


@pytest.fixture
def anew(monkeypatch, tmp_path):
    """Try the kernels again, as in the first process on a machine."""
    monkeypatch.setattr("evomeans.compiled.cache.folders_for", lambda _: (tmp_path,))


def test_this_numba_is_trusted_and_that_is_remembered(anew, monkeypatch) -> None:
    """Later processes do not try again."""
    assert objection() is None
    monkeypatch.setattr(check, "sample", None)
    assert objection() is None


@pytest.mark.parametrize("version", [(0, 65), (0, 69), (1, 0)])
def test_a_numba_that_was_not_tried_is_not_trusted(version, monkeypatch) -> None:
    monkeypatch.setattr("numba.version_info", type("", (), {"short": version}))
    assert "was not tried" in str(objection())


def test_a_numba_without_a_name_is_not_trusted(monkeypatch) -> None:
    monkeypatch.setattr("evomeans.compiled.numba_private.MISSING", "cannot import name 'Lower'")
    assert "'Lower'" in str(objection())


def test_another_layout_of_arrays_is_noticed_before_any_kernel_is_called(anew, monkeypatch) -> None:
    monkeypatch.setattr("evomeans.compiled.numba_private.ARRAY_OF_TWO", "{i8*}")
    monkeypatch.setattr(Kernel, "entry", None)
    assert "instead of {i8*}" in str(objection())


def test_a_wrong_result_is_noticed(anew, monkeypatch) -> None:
    """Here, of the kernel that is entered by its address."""

    def wrong_entry(*given):
        enter = entry(*given)
        return lambda first, _, *others: enter(first, 0.25, *others)

    entry = Kernel.entry
    monkeypatch.setattr(Kernel, "entry", wrong_entry)
    assert "A kernel returned" in str(objection())


def test_there_is_one_warning(monkeypatch) -> None:
    monkeypatch.setattr(check, "objection", lambda: "It is too new.")
    with pytest.warns(RuntimeWarning, match=r"the plain way.*too new. Install numba>="):
        assert not check.is_trusted.__wrapped__()


def total(values, scale):
    result = 0.0
    for i in range(values.shape[0]):
        result += scale * values[i]
    return result


def backwards(values, scale):
    result = 0.0
    for i in range(values.shape[0]):
        result += scale * values[values.shape[0] - 1 - i]
    return result


twice = PlainKernel(total, {"fastmath": set(REORDER)})
some = PlainKernel(total, {}, lambda values, scale: backwards if values.ndim == 1 else total)


def calls_both(values, result):
    result[0] = twice(values, 2.0)
    result[1] = some(values, 1.0)


def calls_at(address, values, result):
    call_function(address, values, result)


def test_plain_kernels_call_each_other_also_by_address() -> None:
    values, result = np.arange(5.0), np.zeros(2)
    both, at = (PlainKernel(one, {}) for one in (calls_both, calls_at))
    both(values, result)
    assert result.tolist() == [20.0, 10.0]
    result[:] = 0.0
    at(both.address(values, result), values, result)
    assert result.tolist() == [20.0, 10.0]


def test_a_variant_is_chosen_by_types() -> None:
    """1e16 hides what is added after it."""
    values = np.array([1e16, 1.0, 1.0])
    assert some(values, 1.0) == backwards(values, 1.0) != total(values, 1.0)


def test_plain_entries_take_bundles_and_zeros_for_unused_ones() -> None:
    kernel = PlainKernel(check.add_up, {})
    expected, given = check.sample(), check.sample()
    check.add_up(expected, 0.5, 3, True)
    blank = check.sample()
    enter = kernel.entry(blank, 0.0, 0, False)
    enter(given, 0.5, 3, True)
    np.testing.assert_allclose(given.result, expected.result, rtol=1e-6)
    enter(0, 0.5, 3, True)
    np.testing.assert_allclose(blank.result, expected.result, rtol=1e-6)


@pytest.mark.slow
def test_a_fit_the_plain_way_has_the_same_bits() -> None:
    """Solution by solution; and the reason is given once."""
    fail = "from evomeans.compiled import check\ncheck.objection = lambda: 'Forced.'\n"
    outputs = []
    # Half a minute of compilation, longer on a busy machine.
    with time_limit(600):
        for before in ("", fail):
            command = [sys.executable, "-c", FIT.format(before=before)]
            done = subprocess.run(command, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
            assert done.stderr.count("Forced.") == (1 if before else 0)
            outputs.append(done.stdout)
    assert outputs[0] == outputs[1]
