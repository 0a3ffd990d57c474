"""The course of a refinement, with scripted answers: every step in its place, and no other."""

from __future__ import annotations

import numpy as np
import pytest

from evomeans.engines.course import Begin, Descend, IsOnSamples, Level, Relocate, Snap, Swap, course
from evomeans.engines.protocol import LocalSearch, Order
from evomeans.engines.rules import MAX_REPAIRS, repair_draw

FULL = np.ones(3)
SWAPS = LocalSearch(single_moves=True, swaps=5)


def level(inertia: float = 9.0, weights=FULL) -> Level:
    return Level(inertia, np.asarray(weights, dtype=float))


def follow(start: Order, *answers):
    """Return the steps of a course and its end, given the answers to all but Begin and Relocate."""
    steps, given = [], iter(answers)
    asking = course(start, total_weight=3.0)
    answer = None
    while True:
        try:
            step = asking.send(answer)
        except StopIteration as end:
            assert next(given, None) is None, "not all answers were asked for"
            return steps, end.value
        steps.append(step)
        answer = None if isinstance(step, Begin | Relocate) else next(given)


def start(**changes) -> Order:
    return Order(np.zeros((3, 1)), alpha=0.25, quantile=0.125, **changes)


def test_k_means_alone() -> None:
    steps, end = follow(start(), level(7.0))
    assert steps == [Begin(), Descend()]
    assert end.inertia == 7.0


def test_a_relocation_comes_before_k_means() -> None:
    steps, _ = follow(start(removed=2), level())
    assert steps == [Begin(), Relocate(2, 0.25, 0.125), Descend()]


def test_empty_clusters_are_refilled_one_by_one_and_k_means_follows() -> None:
    """The draws are those of the rule, counted over the whole refinement."""
    steps, end = follow(
        start(), level(9.0, [1, 0, 0]), level(8.0, [2, 1, 0]), level(7.0, [1, 1, 1])
    )
    draws = [repair_draw(0.25, 0.125, repair) for repair in (1, 2, 3)]
    assert steps == [
        Begin(),
        Descend(),
        Relocate(1, *draws[0]),
        Relocate(2, *draws[1]),
        Descend(),
        Relocate(2, *draws[2]),
        Descend(),
    ]
    assert end.inertia == 7.0


def test_refilling_ends_after_a_fixed_number_of_repairs() -> None:
    always_empty = [level(9.0, [1, 1, 0])] * (MAX_REPAIRS * 3 + 1)
    steps, _ = follow(start(), *always_empty)
    assert sum(isinstance(step, Relocate) for step in steps) == MAX_REPAIRS * 3


@pytest.mark.parametrize("weights", [FULL, [1, 2, 0]])
def test_centres_are_snapped_where_all_samples_sit_on_them(weights) -> None:
    """Then empty clusters cannot be helped; the last answer is the end."""
    asked = [True, True] if not np.all(weights) else [True]
    steps, end = follow(start(), level(0.0, weights), *asked, level(0.0, [3, 0, 0]))
    assert steps == [Begin(), Descend(), *[IsOnSamples() for _ in asked], Snap()]
    assert end.weights.tolist() == [3, 0, 0]


def test_a_small_inertia_that_is_no_rounding_is_left_alone() -> None:
    steps, _ = follow(start(), level(1e-21), False)
    assert steps == [Begin(), Descend(), IsOnSamples()]


def test_swaps_follow_and_k_means_goes_over_all_samples_after_them() -> None:
    steps, end = follow(start(local_search=SWAPS), level(9.0), True, level(8.0))
    assert steps == [Begin(), Descend(), Swap(), Descend()]
    assert end.inertia == 8.0


def test_without_a_success_swaps_change_nothing() -> None:
    steps, end = follow(start(local_search=SWAPS), level(9.0), False)
    assert steps == [Begin(), Descend(), Swap()]
    assert end.inertia == 9.0


def test_if_rounding_made_swaps_worse_the_start_is_refined_again_without_them() -> None:
    answers = level(9.0), True, level(9.5), level(9.0)
    steps, end = follow(start(removed=1, local_search=SWAPS), *answers)
    assert steps == [
        Begin(),
        Relocate(1, 0.25, 0.125),
        Descend(),
        Swap(),
        Descend(),
        Begin(),
        Relocate(1, 0.25, 0.125),
        Descend(),
    ]
    assert end.inertia == 9.0


def test_limited_steps_have_no_swaps() -> None:
    steps, _ = follow(start(local_search=LocalSearch(max_iter=2, swaps=5)), level())
    assert steps == [Begin(), Descend()]
