"""The first Ctrl-C waits for a complete answer, the second raises; SIGTERM is left alone."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from itertools import repeat

import numpy as np
import pytest

from evomeans.search import SearchResult, SearchSettings, StopReason, solve
from fakes import ScriptedEngine


@pytest.fixture(autouse=True)
def _default_handler() -> Iterator[None]:
    """Python's own handler, whatever the test runner has installed."""
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, previous)


def ctrl_c() -> None:
    signal.raise_signal(signal.SIGINT)


def search(engine: ScriptedEngine, max_offspring: int = 20) -> SearchResult:
    settings = SearchSettings(2, 4, max_offspring=max_offspring)
    return solve(engine, 2, settings, np.random.default_rng(0))


@pytest.mark.parametrize("number", [0, 2, 4, 9])
def test_ctrl_c_is_deferred_until_the_solution_is_complete(number: int) -> None:
    """In the first founder, in the initial population and among the offspring."""
    engine = ScriptedEngine(repeat(3.0), during={number: ctrl_c})
    result = search(engine)
    assert result.stop_reason is StopReason.INTERRUPTED
    assert len(engine.starts) == len(result.history) == number + 1
    assert result.n_offspring == max(0, number - 3)
    assert result.best.inertia == 3.0
    assert result.population


def test_a_second_ctrl_c_raises_at_once_and_restores_the_handler() -> None:
    def twice() -> None:
        ctrl_c()
        ctrl_c()

    engine = ScriptedEngine(repeat(3.0), during={5: twice})
    with pytest.raises(KeyboardInterrupt):
        search(engine)
    assert len(engine.starts) == 6
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="ends by a signal")
def test_sigterm_ends_a_program_in_the_middle_of_a_fit() -> None:
    """It belongs to the program: no statement after the fit is reached."""
    code = """
        import signal
        import numpy as np
        from evomeans import HGMeans

        def terminate(record):
            if record.number == 3:
                print("fitting", flush=True)
                signal.raise_signal(signal.SIGTERM)

        HGMeans(2, engine="reference", observers=terminate).fit(np.random.rand(20, 2))
        print("never")
    """
    command = [sys.executable, "-c", textwrap.dedent(code)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (result.stdout, result.returncode) == ("fitting\n", -signal.SIGTERM)


def test_a_round_that_was_interrupted_is_kept_whole() -> None:
    engine = ScriptedEngine(repeat(3.0), batch=4, during={5: ctrl_c})
    result = search(engine)
    assert result.stop_reason is StopReason.INTERRUPTED
    assert result.n_offspring == 4


def test_the_next_search_begins_uninterrupted() -> None:
    search(ScriptedEngine(repeat(3.0), during={1: ctrl_c}))
    assert search(ScriptedEngine(repeat(3.0)), 2).stop_reason is StopReason.MAX_OFFSPRING


def test_a_handler_of_someone_else_stays_in_charge() -> None:
    """A program that handles SIGINT itself goes on doing so during a search."""
    heard = []
    signal.signal(signal.SIGINT, lambda signum, frame: heard.append(signum))
    handler = signal.getsignal(signal.SIGINT)
    result = search(ScriptedEngine(repeat(3.0), during={5: ctrl_c}), max_offspring=3)
    assert heard == [signal.SIGINT]
    assert result.stop_reason is StopReason.MAX_OFFSPRING
    assert signal.getsignal(signal.SIGINT) is handler


def test_where_ctrl_c_is_ignored_it_stays_so_and_the_program_can_interrupt() -> None:
    """As a background job does that treats SIGTERM like Ctrl-C."""

    def terminate() -> None:
        handler = signal.getsignal(signal.SIGINT)
        assert callable(handler)
        handler(signal.SIGTERM, None)

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    engine = ScriptedEngine(repeat(3.0), during={5: ctrl_c, 7: terminate})
    assert search(engine).stop_reason is StopReason.INTERRUPTED
    assert len(engine.starts) == 8
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_an_error_in_the_engine_restores_the_handler() -> None:
    def broken() -> None:
        raise LookupError

    with pytest.raises(LookupError):
        search(ScriptedEngine(repeat(3.0), during={5: broken}))
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_search_runs_in_any_thread() -> None:
    """Only the main thread may install handlers; elsewhere the search does without."""
    results: list[SearchResult] = []
    thread = threading.Thread(
        target=lambda: results.append(search(ScriptedEngine(repeat(3.0)), max_offspring=3))
    )
    thread.start()
    thread.join()
    assert results[0].stop_reason is StopReason.MAX_OFFSPRING
