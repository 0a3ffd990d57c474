"""One process at a time."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

from lab.data.locking import exclusive

ROOT = Path(__file__).parents[3]
COUNT = """
    import sys, time
    from pathlib import Path
    from lab.data.locking import exclusive

    path = Path(sys.argv[1])
    for _ in range(10):
        with exclusive(path.with_name("lock")):
            count = int(path.read_text())
            time.sleep(0.002)
            path.write_text(str(count + 1))
"""


def test_processes_do_not_disturb_each_other(tmp_path):
    """Three of them count to 30 in a file, reading and writing in two steps."""
    path = tmp_path / "count"
    path.write_text("0")
    command = [sys.executable, "-c", textwrap.dedent(COUNT), str(path)]
    started = [subprocess.Popen(command, cwd=ROOT) for _ in range(3)]
    assert [process.wait(timeout=60) for process in started] == [0, 0, 0]
    assert path.read_text() == "30"


def test_a_lock_is_released_by_an_error(tmp_path):
    """And its folder is made; the file stays."""
    path = tmp_path / "deep" / "lock"
    for _ in range(2):
        try:
            with exclusive(path):
                raise RuntimeError
        except RuntimeError:
            pass
    assert path.exists()
