"""Every command line that README and docs show exists, with its options."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from pages import (
    PAGES,
    ROOT,
    fenced_lines,
    laboratory_commands,
    make_targets,
    name_of,
    shown_commands,
)

from lab.__main__ import COMMANDS, FOLDERS

EXISTING = [page for page in PAGES if page.exists()]


@pytest.mark.parametrize("page", EXISTING, ids=name_of)
def test_evomeans_knows_the_commands_of_a_page(page: Path) -> None:
    """Each is parsed as if it were typed, and not run."""
    app = pytest.importorskip("evomeans.cli.app").app
    for arguments in shown_commands(page, "evomeans"):
        command, *rest = arguments
        if "…" in rest or command.startswith("--") or "--help" in rest:
            continue
        app.parse_args(arguments, exit_on_error=False, print_error=False)


@pytest.mark.parametrize("page", EXISTING, ids=name_of)
def test_commands_of_the_laboratory_exist(page: Path) -> None:
    """Each is listed, and every option is written in its module, folder or what these import."""
    for name, *arguments in filter(None, laboratory_commands(page)):
        if name == "--help":
            continue
        folder, module = ROOT / "lab" / name, ROOT / "lab" / f"{name}.py"
        assert any(name in commands for commands in COMMANDS.values()), name
        files = [*folder.rglob("*.py")] if name in FOLDERS else [module]
        files += imported_modules(files)
        source = "".join(file.read_text(encoding="utf-8") for file in files)
        for argument in arguments:
            if argument.startswith("--") and argument != "--help":
                option = argument.rstrip(".,;:)").partition("=")[0]
                assert f'"{option}"' in source, f"{name} {option}"


def imported_modules(files: list[Path]) -> list[Path]:
    """Return the modules of the folder lab that files import: several share a parser."""
    pattern = re.compile(r"^from lab\.(\w+) import", re.MULTILINE)
    names = {name for file in files for name in pattern.findall(file.read_text(encoding="utf-8"))}
    candidates = [ROOT / "lab" / f"{name}.py" for name in sorted(names)]
    return [file for file in candidates if file.exists()]


@pytest.mark.parametrize("page", EXISTING, ids=name_of)
def test_make_has_the_targets_of_a_page(page: Path) -> None:
    """``make help`` would list them."""
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    assert set(make_targets(page)) <= targets


def test_readme_is_short() -> None:
    """It is the first page, not the manual."""
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 100


SHELF = [page for page in EXISTING if page.parent.name == "guide"]
PLAIN = [*SHELF, ROOT / "docs" / "index.md", *(ROOT / "docs" / "background").glob("*.md")]
MOST_WORDS, WIDEST = 12_000, 78


def test_the_guide_is_short() -> None:
    """A reader has an evening for it; what is longer belongs to background or laboratory."""
    words = {name_of(page): count_words(page.read_text(encoding="utf-8")) for page in SHELF}
    assert sum(words.values()) <= MOST_WORDS, words


def count_words(text: str) -> int:
    """Count what has a letter or a digit, which the lines of tables do not."""
    return sum(re.search(r"\w", word) is not None for word in text.split())


@pytest.mark.parametrize(
    "page", [ROOT / "README.md", ROOT / "docs" / "index.md", *SHELF], ids=name_of
)
def test_blocks_fit_into_the_column_of_the_site(page: Path) -> None:
    """Longer lines are cut off on a screen of 1,400 pixels."""
    assert [line for line in fenced_lines(page) if len(line) > WIDEST] == []


@pytest.mark.parametrize("page", PLAIN, ids=name_of)
def test_only_the_laboratory_names_its_commands_and_commits(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert re.findall(r"`python\s+-m\s+lab\b[^`]*`|\bcommit [0-9a-f]{7,}", text) == []


@pytest.mark.parametrize("page", EXISTING, ids=name_of)
def test_links_of_a_page_lead_to_files(page: Path) -> None:
    """On GitHub, that is; the build of the site checks anchors as well."""
    text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if not re.match(r"[a-z]+:|#", target):
            assert (page.parent / target.partition("#")[0]).exists(), target


def test_pages_that_the_code_names_exist() -> None:
    """Docstrings and comments send their readers to them."""
    sources = [
        path for folder in ("src", "lab", "examples") for path in (ROOT / folder).rglob("*.py")
    ]
    named = {
        (path.name, page)
        for path in sources
        for page in re.findall(r"docs/[\w/-]+\.md", path.read_text(encoding="utf-8"))
    }
    assert {(name, page) for name, page in named if not (ROOT / page).exists()} == set()


# The check of the built site finds what a reader would stumble over


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
