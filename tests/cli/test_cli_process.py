"""The command as a process: what it loads, pipes, and signals."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from blobs import write_blobs

if os.name != "nt":
    import pty

COMMAND = [sys.executable, "-m", "evomeans"]
FOREVER = ["--max-offspring", "1000000000", "--n-iter-no-change", "1000000000"]
HEAVY = {"numpy", "scipy", "sklearn", "numba", "polars", "pyarrow", "matplotlib", "jinja2"}


@pytest.fixture(autouse=True)
def _signals_end_processes():
    """Also if the tests run under nohup, which processes inherit."""
    if os.name == "nt":
        yield
        return
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("arguments", [["--help"], ["fit", "--help"], ["fit", "x.csv"]])
def test_help_loads_nothing_heavy(arguments):
    """So it answers at once; a mistake in the command does too."""
    code = (
        "import sys; from evomeans.cli import main; "
        f"main({arguments!r}); print(*sys.modules, file=sys.stderr)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60
    )
    loaded = set(result.stderr.split())
    assert "evomeans.cli.app" in loaded
    assert not loaded & HEAVY


@pytest.mark.parametrize(
    ("package", "command"),
    [
        ("cyclopts", ["--help"]),
        ("rich", ["--help"]),
        ("polars", ["fit", "blobs.csv", "-k", "3", "-o", "out"]),
        ("polars", ["path", "blobs.npy", "-k", "3", "-o", "out"]),
    ],
)
def test_without_the_extra_it_says_what_to_install(tmp_path, package, command):
    """A package that cannot be imported, as if it were not there; before the search."""
    np.save(tmp_path / "blobs.npy", write_blobs(tmp_path / "blobs.csv"))
    code = (
        f"import sys; sys.modules[{package!r}] = None\n"
        f"from evomeans.cli import main; sys.exit(main({command!r}))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, cwd=tmp_path
    )
    assert result.returncode == 1
    assert "pip install 'evomeans[cli]'" in result.stderr
    assert "Traceback" not in result.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"blobs.csv", "blobs.npy"}


@pytest.mark.skipif(os.name == "nt", reason="POSIX pipes")
def test_standard_input_and_a_broken_pipe(run):
    """A reader that stops early is no error worth a word."""
    with Path("blobs.csv").open("rb") as file:
        process = subprocess.Popen(
            [*COMMAND, "predict", "out", "-"],
            stdin=file,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait(60) == 141


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
@pytest.mark.parametrize(
    ("number", "code", "quiet", "background"),
    [
        (signal.SIGINT, 130, [], False),
        (signal.SIGTERM, 143, ["-q"], True),
        (getattr(signal, "SIGHUP", None), 129, [], False),
    ],
)
def test_a_signal_keeps_the_best_and_says_how_to_go_on(
    evomeans, blobs, tmp_path, number, code, quiet, background
):
    """The run is written, the checkpoint stays, and the command shown continues it.

    Shells start background jobs with SIGINT ignored; SIGTERM must work there too.
    """
    command = ["fit", "blobs.csv", "-k", "3", "--exclude", "name,w", "--seed", "1", "--no-report"]
    command += ["-o", "my out"]
    process = subprocess.Popen(
        [*COMMAND, *command, *quiet, *FOREVER],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        preexec_fn=ignore_ctrl_c if background else None,
    )
    wait_for(tmp_path / "my out.checkpoint", process)
    time.sleep(0.3)
    if background:
        process.send_signal(signal.SIGINT)
        time.sleep(0.1)
        assert process.poll() is None
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == code
    assert "Traceback" not in err
    assert ("interrupted" in out) is not bool(quiet)
    record = json.loads((tmp_path / "my out" / "run.json").read_text(encoding="utf-8"))
    assert record["result"]["stop_reason"] == "interrupted"
    told = err.splitlines()[-1].strip()
    assert told.startswith("evomeans fit blobs.csv -k 3")
    assert "-o 'my out'" in told
    assert told.endswith("--max-offspring 1000000000 --n-iter-no-change 1000000000 --resume")

    patience = FOREVER[2:]
    resumed = evomeans(*command, "--resume", "--max-offspring", 1, *patience, "--json")
    assert resumed.code == 0
    result = json.loads(resumed.out)["result"]
    # On a busy machine the signal may arrive before the first offspring.
    assert result["n_iter"] == max(1, record["result"]["n_iter"])
    assert result["inertia"] == record["result"]["inertia"]
    assert {path.name for path in tmp_path.iterdir()} == {"blobs.csv", "my out"}


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="POSIX terminals")
def test_a_closed_terminal_loses_nothing(evomeans, blobs, tmp_path):
    """The best so far and the state are written, though there is no place left to say so."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(tmp_path)
        names = ["--exclude", "name,w", "--seed", "1", "--no-report", "-o", "out"]
        os.execv(COMMAND[0], [*COMMAND, "fit", "blobs.csv", "-k", "3", *names, *FOREVER])
    deadline = time.monotonic() + 60
    while not (tmp_path / "out.checkpoint").exists():
        assert time.monotonic() < deadline
        read_some(terminal)
    read_some(terminal)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 129
    record = json.loads((tmp_path / "out" / "run.json").read_text(encoding="utf-8"))
    assert record["result"]["stop_reason"] == "interrupted"
    assert (tmp_path / "out.checkpoint").exists()


def read_some(terminal: int) -> None:
    """Let a process go on that would wait for its output to be read."""
    if select.select([terminal], [], [], 0.3)[0]:
        os.read(terminal, 65536)


def ignore_ctrl_c() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def wait_for(path: Path, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 60
    while not path.exists():
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < deadline
        time.sleep(0.02)
