"""Which worker has which block."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

ANYWHERE = ""
"""In place of a worker."""

# A worker may have this much more than its share before blocks move.
TOLERANCE = 1.25


@dataclass(frozen=True, slots=True)
class Group:
    """Blocks that one task asks.

    Parameters
    ----------
    worker : str
        Where they are, or ANYWHERE.
    blocks : tuple of int
    n_threads : int
        How many threads share the work.
    """

    worker: str
    blocks: tuple[int, ...]
    n_threads: int = 1


def by_worker(homes: Mapping[int, str], places: Sequence[str]) -> list[Group]:
    """Make one group of the blocks of each worker.

    Parameters
    ----------
    homes : mapping of int to str
        The worker of each block.
    places : sequence of str
        The workers, each as often as it has threads.
    """
    blocks: dict[str, list[int]] = {}
    for block in sorted(homes):
        blocks.setdefault(homes[block], []).append(block)
    return [
        Group(worker, tuple(own), max(1, places.count(worker))) for worker, own in blocks.items()
    ]


def by_thread(group: Group, sizes: Sequence[int]) -> list[Group]:
    """Divide a group into one for each of its threads, of about as many rows.

    Parameters
    ----------
    group : Group
    sizes : sequence of int
        Rows of all blocks.
    """
    shares: list[list[int]] = [[] for _ in range(group.n_threads)]
    loads = [0] * len(shares)
    for block in sorted(group.blocks, key=lambda block: -sizes[block]):
        lightest = loads.index(min(loads))
        shares[lightest].append(block)
        loads[lightest] += sizes[block]
    return [Group(group.worker, tuple(sorted(share))) for share in shares if share]


def moves(homes: Mapping[int, str], sizes: Sequence[int], places: Sequence[str]) -> dict[int, str]:
    """Return blocks that should move, and to which worker, for all to have about their share.

    Homes on workers that are gone do not count.
    """
    if not places:
        return {}
    share = {worker: places.count(worker) / len(places) for worker in places}
    blocks: dict[str, list[int]] = {worker: [] for worker in share}
    for block in sorted(homes):
        if homes[block] in blocks:
            blocks[homes[block]].append(block)
    loads = {worker: sum(sizes[block] for block in own) for worker, own in blocks.items()}
    total = sum(loads.values())
    result: dict[int, str] = {}
    while True:
        fullest = max(loads, key=lambda worker: loads[worker] / share[worker])
        emptiest = min(loads, key=lambda worker: loads[worker] / share[worker])
        if loads[fullest] <= TOLERANCE * share[fullest] * total:
            return result
        block = blocks[fullest].pop()
        after = (loads[emptiest] + sizes[block]) / share[emptiest]
        if after >= loads[fullest] / share[fullest]:
            return result
        blocks[emptiest].append(block)
        loads[fullest] -= sizes[block]
        loads[emptiest] += sizes[block]
        result[block] = emptiest
