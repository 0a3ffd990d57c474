"""The course of a refinement, with scripted answers: every step in its place, and no other."""

from __future__ import annotations

import numpy as np
import pytest

from evomeans.engines.course import Begin, Descend, IsOnSamples, Level, Relocate, Snap, Swap, course
from evomeans.engines.protocol import LocalSearch, Order
from evomeans.engines.rules import MAX_REPAIRS, repair_draw

SWAPS = {"local_search": LocalSearch(single_moves=True, swaps=5)}
LIMITED = {"local_search": LocalSearch(max_iter=2, swaps=5, momentum=True)}
BEGIN, KMEANS, FIRST = Begin(), Descend(), Relocate(2, 0.25, 0.125)


def level(inertia: float = 9.0, weights=(1, 1, 1)) -> Level:
    return Level(inertia, np.asarray(weights, dtype=float))


def repaired(cluster: int, repair: int) -> Relocate:
    return Relocate(cluster, *repair_draw(0.25, 0.125, repair))


# What differs from a plain start, the answers to all but Begin and Relocate, and the steps. The
# last answer that is a level is the end.
COURSES = {
    "K-means alone": ({}, [level(7.0)], [BEGIN, KMEANS]),
    "a relocation comes first": ({"removed": 2}, [level()], [BEGIN, FIRST, KMEANS]),
    "empty clusters are refilled one by one, with draws counted over the whole refinement": (
        {},
        [level(9.0, [1, 0, 0]), level(8.0, [2, 1, 0]), level(7.0)],
        [BEGIN, KMEANS, repaired(1, 1), repaired(2, 2), KMEANS, repaired(2, 3), KMEANS],
    ),
    "refilling ends after a fixed number of repairs": (
        {},
        [level(9.0, [1, 1, 0])] * (MAX_REPAIRS * 3 + 1),
        [BEGIN, KMEANS]
        + [step for n in range(MAX_REPAIRS * 3) for step in (repaired(2, n + 1), KMEANS)],
    ),
    "centres are snapped where all samples sit on them": (
        {},
        [level(0.0), True, level(0.0, [3, 0, 0])],
        [BEGIN, KMEANS, IsOnSamples(), Snap()],
    ),
    "empty clusters cannot be helped there": (
        {},
        [level(0.0, [1, 2, 0]), True, True, level(0.0, [3, 0, 0])],
        [BEGIN, KMEANS, IsOnSamples(), IsOnSamples(), Snap()],
    ),
    "a small inertia that is no rounding is left alone": (
        {},
        [level(1e-21), False],
        [BEGIN, KMEANS, IsOnSamples()],
    ),
    "after swaps, K-means goes over all samples": (
        SWAPS,
        [level(9.0), True, level(8.0)],
        [BEGIN, KMEANS, Swap(), KMEANS],
    ),
    "without a success, swaps change nothing": (
        SWAPS,
        [level(9.0), False],
        [BEGIN, KMEANS, Swap()],
    ),
    "if rounding made swaps worse, the start is refined again without them": (
        {"removed": 2, **SWAPS},
        [level(9.0), True, level(9.5), level(9.0)],
        [BEGIN, FIRST, KMEANS, Swap(), KMEANS, BEGIN, FIRST, KMEANS],
    ),
    "limited steps have neither swaps nor momentum": (LIMITED, [level()], [BEGIN, KMEANS]),
    "an engine may run K-means before it asks": (
        {"removed": 2, "reached": level(7.0), **SWAPS},
        [False],
        [Swap()],
    ),
    "then clusters are refilled from there": (
        {"reached": level(7.0, [1, 0, 1])},
        [level(6.0)],
        [repaired(1, 1), KMEANS],
    ),
}


@pytest.mark.parametrize("name", COURSES)
def test_the_steps_of_a_course(name) -> None:
    changes, answers, expected = COURSES[name]
    reached = changes.get("reached")
    changes = {key: value for key, value in changes.items() if key != "reached"}
    start = Order(np.zeros((3, 1)), alpha=0.25, quantile=0.125, **changes)
    asking = course(start, total_weight=3.0, reached=reached)
    given, steps, answer = iter(answers), [], None
    while True:
        try:
            steps.append(asking.send(answer))
        except StopIteration as stop:
            end = stop.value
            break
        answer = None if isinstance(steps[-1], Begin | Relocate) else next(given)
    assert steps == expected
    assert next(given, None) is None, "not all answers were asked for"
    assert end is [one for one in [reached, *answers] if isinstance(one, Level)][-1]
