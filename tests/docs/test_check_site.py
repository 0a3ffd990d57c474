"""The check of the built site finds what a reader would stumble over."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from pages import ROOT


def check(folder: Path, body: str) -> subprocess.CompletedProcess[str]:
    """Check a site of one page."""
    (folder / "index.html").write_text(f"<html><body>{body}</body></html>", encoding="utf-8")
    command = [sys.executable, str(ROOT / "docs" / "check_site.py"), str(folder)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (r"<code>labels\_</code>", r"labels\_"),
        (r"<p>see <em>best_k\_</em></p>", r"best_k\_"),
        ("<p>see :class:`HGMeans`</p>", ":class:`"),
        ("<p>[more](guide/which.md)</p>", "](guide/which.md"),
        ('<a href="gone.html">here</a>', "gone.html: there is no such file"),
        ('<a href="#gone">here</a>', "#gone: the page has no such anchor"),
    ],
)
def test_faults_are_found(tmp_path: Path, body: str, found: str) -> None:
    done = check(tmp_path, body)
    assert done.returncode == 1
    assert found in done.stdout


def test_code_may_contain_anything(tmp_path: Path) -> None:
    text = r"<p id='a'>x_</p><pre>re.sub('a\_', ':class:`')</pre><a href='#a'>a</a>"
    done = check(tmp_path, text)
    assert done.returncode == 0, done.stdout
