"""How requests reach the blocks: through the current client, or Dask's local scheduler."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from typing import Any, Protocol

from evomeans.engines.dask.cache import drop_here
from evomeans.engines.dask.placement import ANYWHERE, Group, by_thread
from evomeans.engines.dask.questions import Reply, Request, merge_replies
from evomeans.engines.dask.steps import HERE, ask_blocks

log = logging.getLogger("evomeans")

# More replies than this are merged on the workers, so many at a time.
FAN_IN = 16
# If more bytes than this would leave the client, a request goes to one worker, and from there to
# the others; else it is quicker to send it with every task.
DIRECT = 2**25
# Seconds after which somebody looks why there is no reply.
PATIENCE = 2.0


class Pending(Protocol):
    """Replies under way."""

    def result(self) -> list[Reply]:
        """Wait for them."""
        ...


class Runner(Protocol):
    """Somewhere to run tasks."""

    lanes: int
    """Into how many parts a batch is divided: one can travel while others are worked on."""

    sizes: Sequence[int]
    """Rows of all blocks."""

    def places(self) -> list[str]:
        """Return the workers, each as often as it has threads."""
        ...

    def compute(self, tasks: Sequence[Any]) -> list[Any]:
        """Compute lazy values."""
        ...

    def begin(
        self, request: Request, groups: Sequence[Group], visits: Mapping[str, Sequence[Any]]
    ) -> Pending:
        """Begin to answer a request.

        Parameters
        ----------
        groups : sequence of Group
            Blocks to be asked where they are.
        visits : mapping of str to sequence of lazy replies
            Of blocks to be loaded, by the worker where that should happen, or ANYWHERE.
        """
        ...

    def drop(self, token: str) -> None:
        """Let workers forget a data set."""
        ...


def current_runner() -> Runner:
    """Return the way that Dask itself would go now."""
    from dask.base import get_scheduler

    scheduler = get_scheduler()
    client = getattr(scheduler, "__self__", None)
    if client is not None and hasattr(client, "scheduler_info"):
        if client.asynchronous:
            raise ValueError("fit needs a Dask client that is not asynchronous.")
        return ClientRunner(client)
    _refuse_processes(scheduler)
    return LocalRunner(scheduler)


def _refuse_processes(scheduler: Any) -> None:
    """Refuse Dask's pool of processes, which have no names: nobody could be asked again."""
    import dask

    executor = dask.config.get("scheduler", None)
    if getattr(scheduler, "__module__", None) == "dask.multiprocessing" or isinstance(
        executor, ProcessPoolExecutor
    ):
        raise ValueError(
            "Dask is set to scheduler='processes', where blocks cannot stay from one request to "
            "the next. Start a distributed.Client, or set scheduler='threads'."
        )


# ---- in this process -----------------------------------------------------------------------------


class _Done:
    def __init__(self, replies: list[Reply]) -> None:
        self._replies = replies

    def result(self) -> list[Reply]:
        return self._replies


class LocalRunner:
    """Dask's local scheduler: threads of this process, unless configured otherwise.

    Parameters
    ----------
    scheduler : callable, optional
        The ``get`` of a scheduler.
    """

    lanes = 1

    def __init__(self, scheduler: Callable[..., Any] | None = None) -> None:
        from dask.threaded import get

        self.sizes: Sequence[int] = ()
        self._get = scheduler or get

    def places(self) -> list[str]:
        """One for each thread."""
        import dask
        from dask.system import CPU_COUNT

        pool = dask.config.get("pool", None)
        n_threads = getattr(pool, "_max_workers", None) or dask.config.get("num_workers", None)
        return [HERE] * int(n_threads or CPU_COUNT)

    def compute(self, tasks: Sequence[Any]) -> list[Any]:
        """Compute lazy values."""
        import dask

        return list(dask.compute(*tasks, scheduler=self._get))

    def begin(
        self, request: Request, groups: Sequence[Group], visits: Mapping[str, Sequence[Any]]
    ) -> Pending:
        """Answer a request, and be done when this returns."""
        # Dask has the threads here, so each gets a task.
        shares = [share for group in groups for share in by_thread(group, self.sizes)]
        graph = {
            f"ask-{number}": (_ask, _Call(share.blocks, request))
            for number, share in enumerate(shares)
        }
        replies = list(self._get(graph, list(graph))) if graph else []
        loaded = [visit for those in visits.values() for visit in those]
        return _Done([*replies, *(self.compute(loaded) if loaded else [])])

    def drop(self, token: str) -> None:
        """Forget a data set."""
        drop_here(token)


class _Call:
    """Keeps Dask from looking for tasks in the arguments of a call."""

    def __init__(self, blocks: tuple[int, ...], request: Request) -> None:
        self.blocks = blocks
        self.request = request


def _ask(call: _Call) -> Reply:
    return ask_blocks(call.blocks, call.request)


# ---- on a cluster --------------------------------------------------------------------------------


class _Futures:
    """Replies that workers are making.

    Parameters
    ----------
    runner : ClientRunner
    request, groups, visits
        What was asked of whom; see :meth:`Runner.begin`.
    """

    def __init__(
        self,
        runner: ClientRunner,
        request: Request,
        groups: Sequence[Group],
        visits: Mapping[str, Sequence[Any]],
    ) -> None:
        self._runner = runner
        self._request = request
        self._groups = groups
        self._visits = visits
        self._alone = False
        self._send()

    def _send(self) -> None:
        client = self._runner.client
        sent = self._runner.send(self._request, self._groups, self._visits)
        self._futures, self._inputs = sent
        # From now on: replies that are ready come while the search is busy with others.
        self._gathering = client.sync(_begin_to_gather, client, self._futures)

    def result(self) -> list[Reply]:
        client = self._runner.client
        while not client.sync(_is_done, self._gathering):
            workers = set(client.nthreads())
            if not workers and not self._alone:
                log.warning("There is no Dask worker; the search waits for one.")
            self._alone = not workers
            if self._is_stranded(workers):
                self._begin_again()
        replies: list[Reply] = self._gathering.result()
        return replies

    def _is_stranded(self, workers: set[str]) -> bool:
        """Whether tasks may be waiting for a worker that is gone.

        Dask lets them run elsewhere, but not if there was nobody else at that moment.
        """
        asked = {group.worker for group in self._groups} | set(self._visits)
        return not asked - {ANYWHERE} <= workers

    def _begin_again(self) -> None:
        self._runner.client.sync(_cancel, self._gathering)
        for future in (*self._futures, *self._inputs):
            future.release()
        self._groups = [replace(group, worker=ANYWHERE) for group in self._groups]
        self._visits = {ANYWHERE: [visit for those in self._visits.values() for visit in those]}
        self._send()


async def _begin_to_gather(client: Any, futures: list[Any]) -> asyncio.Task[Any]:
    async def gather() -> Any:
        return await client.gather(futures, asynchronous=True)

    task = asyncio.create_task(gather())
    # Asked for, so that asyncio does not complain of an error that a search has no use for: it was
    # given up, or another request has failed before.
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    return task


async def _is_done(task: asyncio.Task[Any]) -> bool:
    """Wait for a while."""
    done, _ = await asyncio.wait({task}, timeout=PATIENCE)
    return bool(done)


async def _cancel(task: asyncio.Task[Any]) -> None:
    task.cancel()


class ClientRunner:
    """Tasks on a cluster. Each can be run again anywhere, and Dask does so if a worker dies.

    Parameters
    ----------
    client : distributed.Client
    """

    # While the sums of one half travel, workers are busy with the other.
    lanes = 2

    def __init__(self, client: Any) -> None:
        self.client = client
        self.sizes: Sequence[int] = ()

    def places(self) -> list[str]:
        """One for each thread of each worker."""
        threads = self.client.nthreads()
        return [worker for worker in sorted(threads) for _ in range(threads[worker])]

    def compute(self, tasks: Sequence[Any]) -> list[Any]:
        """Compute lazy values."""
        return list(self.client.gather(self.client.compute(list(tasks))))

    def begin(
        self, request: Request, groups: Sequence[Group], visits: Mapping[str, Sequence[Any]]
    ) -> Pending:
        """Send a request to the workers that have the blocks, or may load them."""
        return _Futures(self, request, groups, visits)

    def send(
        self, request: Request, groups: Sequence[Group], visits: Mapping[str, Sequence[Any]]
    ) -> tuple[list[Any], list[Any]]:
        """Submit the tasks; return futures of the replies, and those of what they are made of."""
        submit = self.client.submit
        sent: Any = request
        inputs = []
        if len(groups) * request.nbytes > DIRECT:
            sent = submit(_same, request, pure=False)
            inputs.append(sent)
        futures = [
            submit(ask_blocks, group.blocks, sent, group.n_threads, pure=False, **_at(group.worker))
            for group in groups
        ]
        for worker, those in visits.items():
            futures += self.client.compute(list(those), **_at(worker))
        while len(futures) > FAN_IN:
            inputs += futures
            parts = [futures[i : i + FAN_IN] for i in range(0, len(futures), FAN_IN)]
            futures = [submit(merge_replies, part, pure=False) for part in parts]
        return futures, inputs

    def drop(self, token: str) -> None:
        """Let workers forget a data set; whoever does not hear of it will when it needs room."""
        if self.client.status == "running":
            self.client.run(_drop, token, wait=False)


def _at(worker: str) -> dict[str, Any]:
    """Where a task should run if possible."""
    if worker == ANYWHERE:
        return {}
    return {"workers": [worker], "allow_other_workers": True}


def _same(request: Request) -> Request:
    return request


async def _drop(token: str) -> None:
    drop_here(token)
