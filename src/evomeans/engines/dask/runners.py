"""How requests reach the blocks: through the current client, or Dask's local scheduler."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any

from evomeans.engines.dask.cache import CACHE
from evomeans.engines.dask.steps import Reply, Request, ask_blocks, merge_replies, place_here
from evomeans.engines.protocol import Abandoned

log = logging.getLogger("evomeans")

ANYWHERE = ""
"""In place of a worker."""

Kept = Mapping[str, Sequence[int]]
"""Blocks to be asked, by the worker that has them."""
Visits = Mapping[str, Sequence[Any]]
"""Lazy replies of blocks to be loaded, by the worker where that should happen, or ANYWHERE."""

# More replies than this are merged on the workers, this many at a time.
FAN_IN = 16
# Seconds after which the client looks why there is no reply, and whether it is still wanted.
PATIENCE = 0.5


def current_runner() -> Runner:
    """Return the way that Dask itself would go now."""
    import dask
    from dask.base import get_scheduler

    scheduler = get_scheduler()
    client = getattr(scheduler, "__self__", None)
    if client is not None and hasattr(client, "scheduler_info"):
        if client.asynchronous:
            raise ValueError("fit needs a Dask client that is not asynchronous.")
        return ClientRunner(client)
    is_pool = isinstance(dask.config.get("scheduler", None), ProcessPoolExecutor)
    if is_pool or getattr(scheduler, "__module__", None) == "dask.multiprocessing":
        raise ValueError(
            "Dask is set to scheduler='processes', where blocks cannot stay from one request to "
            "the next. Start a distributed.Client, or set scheduler='threads'."
        )
    return LocalRunner(scheduler)


class LocalRunner:
    """Tasks in this process, on Dask's local scheduler, by default that of threads."""

    def __init__(self, scheduler: Any = None) -> None:
        self._scheduler = scheduler or "threads"

    def workers(self) -> set[str]:
        """Return the only place there is."""
        return {place_here()[0]}

    def compute(self, tasks: Sequence[Any]) -> list[Any]:
        """Compute lazy values."""
        import dask

        return list(dask.compute(*tasks, scheduler=self._scheduler))

    def ask(
        self, request: Request, kept: Kept, visits: Visits, is_abandoned: Callable[[], bool]
    ) -> list[Reply]:
        """Answer a request; see :meth:`ClientRunner.ask`. It is not abandoned half-way."""
        asked = [ask_blocks(blocks, request) for blocks in kept.values()]
        return asked + self.compute([visit for those in visits.values() for visit in those])

    def drop(self, token: str) -> None:
        """Forget a data set."""
        CACHE.drop(token)


class ClientRunner:
    """Tasks on a cluster. Each can be run again anywhere, and Dask does so if a worker dies."""

    def __init__(self, client: Any) -> None:
        self.client = client

    def workers(self) -> set[str]:
        """Return the addresses of all workers."""
        return set(self.client.nthreads())

    def compute(self, tasks: Sequence[Any]) -> list[Any]:
        """Compute lazy values."""
        return list(self.client.gather(self.client.compute(list(tasks))))

    def ask(
        self, request: Request, kept: Kept, visits: Visits, is_abandoned: Callable[[], bool]
    ) -> list[Reply]:
        """Send a request to the blocks and wait for the replies.

        Blocks that were not found do not answer. There are no replies at all if a worker is gone
        and its tasks may wait for it.

        Raises Abandoned soon after ``is_abandoned`` returns True. Tasks that have not begun are
        cancelled.
        """
        futures = self.submit(request, kept, visits)
        asked = {*kept, *visits} - {ANYWHERE}
        replies: list[Reply] = self.client.sync(_gather, self.client, futures, asked, is_abandoned)
        return replies

    def submit(self, request: Request, kept: Kept, visits: Visits) -> list[Any]:
        """Return futures of the replies."""
        submit = self.client.submit
        futures = [
            submit(ask_blocks, blocks, request, pure=False, **_at(worker))
            for worker, blocks in kept.items()
        ]
        for worker, those in visits.items():
            futures += self.client.compute(list(those), **_at(worker))
        while len(futures) > FAN_IN:
            parts = [futures[i : i + FAN_IN] for i in range(0, len(futures), FAN_IN)]
            futures = [submit(merge_replies, part, pure=False) for part in parts]
        return futures

    def drop(self, token: str) -> None:
        """Let workers forget a data set before anything else is asked.

        Workers that are not reached forget it when they need room.
        """
        if self.client.status == "running":
            self.client.run(_drop, token, on_error="ignore")


Runner = LocalRunner | ClientRunner


async def _gather(
    client: Any, futures: list[Any], asked: set[str], is_abandoned: Callable[[], bool]
) -> list[Any]:
    """Wait for results; give up if they are not needed, or a worker that was asked is gone.

    Dask runs the tasks of such a worker elsewhere, but not if there was no other at that moment.
    """
    gathering = asyncio.ensure_future(client.gather(futures, asynchronous=True))
    alone = False
    try:
        while not (await asyncio.wait({gathering}, timeout=PATIENCE))[0]:
            if is_abandoned():
                await client.cancel(futures, asynchronous=True)
                # It ends with an error now, and with it all that it waits for.
                await asyncio.gather(gathering, return_exceptions=True)
                raise Abandoned
            workers = set(await client.nthreads(asynchronous=True))
            if not workers and not alone:
                log.warning("There is no Dask worker; the search waits for one.")
            alone = not workers
            if workers and not asked <= workers:
                return []
        return list(await gathering)
    finally:
        gathering.cancel()


def _at(worker: str) -> dict[str, Any]:
    """Where a task should run if possible."""
    if worker == ANYWHERE:
        return {}
    return {"workers": [worker], "allow_other_workers": True}


async def _drop(token: str) -> None:
    CACHE.drop(token)
