"""The barrier, the only place where threads wait for each other."""

from __future__ import annotations

import numpy as np
import pytest

from evomeans.compiled.jit import jit
from evomeans.engines.cpu.threads import ABANDONED, ThreadTeam, meet


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
    team = ThreadTeam(n_threads)
    for _ in range(3):
        board[:, :n_threads] = -1
        team.run(relay, barrier, board, rounds)
        assert board[:, n_threads].sum() == 0
        assert (board[:, :n_threads] >= 0).all()


@jit
def wait_for_all(barrier, thread, n_threads):
    while barrier[ABANDONED] == 0:
        meet(barrier, n_threads)


@pytest.mark.parametrize("culprit", [0, 1, 2])
def test_a_thread_that_fails_is_not_waited_for(culprit) -> None:
    """The error comes out, nobody spins for ever, and the team can be used again."""

    def kernel(barrier, thread, n_threads):
        if thread == culprit:
            raise KeyError("out of luck")
        wait_for_all(barrier, thread, n_threads)

    team = ThreadTeam(3)
    for _ in range(2):
        with pytest.raises(KeyError, match="out of luck"):
            team.run(kernel, team.barrier)
    board = np.zeros((5, 4), np.int64)
    team.run(relay, team.barrier, board, 5)
    assert (board[:, 3] == 0).all()
