"""The barrier, the only place where threads wait for each other."""

from __future__ import annotations

import numpy as np
import pytest

from evomeans.engines.cpu.jit import jit
from evomeans.engines.cpu.threads import Crew, meet


@jit
def relay(barrier, board, rounds, thread, n_threads):
    """Every round, each thread writes its number and then reads everybody's."""
    for turn in range(rounds):
        board[turn, thread] = thread + turn
        meet(barrier, n_threads)
        for other in range(n_threads):
            if board[turn, other] != other + turn:
                board[turn, n_threads] += 1
        meet(barrier, n_threads)


@pytest.mark.parametrize("n_threads", [1, 2, 3, 5])
def test_after_meeting_every_thread_sees_what_the_others_wrote(n_threads) -> None:
    rounds = 300
    board = np.full((rounds, n_threads + 1), -1)
    board[:, n_threads] = 0
    barrier = np.zeros(16, np.int64)
    crew = Crew(n_threads)
    for _ in range(3):
        board[:, :n_threads] = -1
        crew.run(relay, barrier, board, rounds)
        assert board[:, n_threads].sum() == 0
        assert (board[:, :n_threads] >= 0).all()
