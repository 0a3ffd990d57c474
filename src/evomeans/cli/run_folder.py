"""The folder of a run: there complete, or not there."""

from __future__ import annotations

import json
import os
import secrets
import shutil
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from evomeans.cli.terminal import CommandError
from evomeans.files import replace, write_atomically
from evomeans.wording import how_to_install

HEADER = {"format": "evomeans run", "version": 1}
"""With this, every record begins."""
RECORD = "run.json"
MODEL = "model.evomeans"
REPORT_DATA = "report.json"
REPORT = "report.html"
CERTIFICATE = "certificate.evomeans"
TABLES = ("labels", "centers", "history", "path")
RUN_FILES = frozenset(
    [RECORD, MODEL, REPORT_DATA, REPORT, CERTIFICATE]
    + [f"{name}.{suffix}" for name in TABLES for suffix in ("csv", "parquet")]
)

Content = bytes | Callable[[Path], object]
"""What a file holds, or what writes it."""


def read_record(folder: Path) -> dict[str, Any]:
    """Return what a run says about itself."""
    if not folder.is_dir():
        raise CommandError(f"There is no folder {folder}; name the --output of a run.")
    path = folder / RECORD
    record = read_json(path, f"{folder} is not a run of evomeans: it has no {RECORD}.")
    if not isinstance(record, dict) or record.get("format") != HEADER["format"]:
        raise CommandError(f"{path} is not the record of a run of evomeans.")
    return record


def as_json(data: Any) -> bytes:
    """Write a record for people and programs."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, indent=1)
    # File names may hold bytes that are not text; JSON has the same escapes for them as Python.
    return text.encode("utf-8", errors="backslashreplace") + b"\n"


def read_json(path: Path, missing: str) -> Any:
    """Return what a JSON file holds; ``missing`` is the text of the error if there is no file."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise CommandError(missing) from None
    except (ValueError, RecursionError) as error:
        raise damaged(path, error) from error


def damaged(path: Path, error: Exception) -> CommandError:
    """Return the error that says so."""
    return CommandError(f"{path} is damaged: {str(error).rstrip('.')}.")


def files_in_the_way(folder: Path) -> list[str]:
    """Return the files of a run that are in a folder."""
    return sorted(name for name in RUN_FILES if os.path.lexists(folder / name))


def check_new_file(path: Path, force: bool) -> None:
    """Refuse to replace a file, or to write through a link, unless that is forced."""
    if path.is_symlink() and not force:
        target = os.path.realpath(path)
        raise CommandError(f"{path} is a symbolic link to {target}; --force writes to {target}.")
    if os.path.lexists(path) and not force:
        raise CommandError(f"{path} exists; replace it with --force.")
    folder = path.absolute().parent
    if not folder.is_dir():
        raise CommandError(f"{path} cannot be written: there is no folder {folder}.")
    check_writable(folder)


def check_writable(folder: Path) -> None:
    """Refuse a folder that cannot be written, before anything is computed for it."""
    if folder.exists() and not folder.is_dir():
        raise CommandError(f"{folder} is a file; the output is a folder.")
    nearest = folder.absolute()
    while not nearest.exists():
        nearest = nearest.parent
    try:
        # Tried rather than asked: permissions say nothing of a file system that takes no files.
        with TemporaryFile(dir=nearest):
            pass
    except OSError as error:
        raise CommandError(
            f"{folder} cannot be written: no file can be created in {nearest} ({error.strerror})."
        ) from error


def write_run(folder: Path, files: Mapping[str, Content], *, others_stay: bool = False) -> None:
    """Write all files of a run, or none of them.

    They are written into a folder of their own, which then becomes the run. If the folder exists,
    the files are moved into it one by one, the record last: a folder with a record is complete.
    Of what was there, only files of a run are replaced, and removed unless the others stay.
    """
    parent = folder if folder.is_dir() else folder.absolute().parent
    parent.mkdir(parents=True, exist_ok=True)
    stage = parent / f".evomeans-{secrets.token_hex(6)}.tmp"
    stage.mkdir()
    try:
        for name, content in files.items():
            if isinstance(content, bytes):
                write_atomically(stage / name, content)
            else:
                content(stage / name)
        if not folder.exists():
            replace(stage, folder)
            return
        if not others_stay:
            for name in [RECORD, *sorted(RUN_FILES - files.keys())]:
                (folder / name).unlink(missing_ok=True)
        for name in sorted(files, key=lambda name: name == RECORD):
            replace(stage / name, folder / name)
    finally:
        shutil.rmtree(stage, ignore_errors=True)


def can_report() -> bool:
    """Return whether the packages are installed that the page needs."""
    return all(find_spec(name) for name in ("jinja2", "matplotlib"))


def report_page(data: Any, path: Path) -> bytes:
    """Return the page of a report; ``path`` is the file that its data came from."""
    from evomeans.report import render_report

    try:
        return render_report(data).encode("utf-8", errors="backslashreplace")
    except (ValueError, RecursionError) as error:
        raise damaged(path, error) from error


def write_report(folder: Path, output: Path | None, *, force: bool) -> int:
    """Write the page of a run again; no other file is replaced unless that is forced."""
    if not can_report():
        raise CommandError(f"The report needs jinja2 and matplotlib: {how_to_install('report')}.")
    target = output or folder / REPORT
    if output is not None or target.is_symlink():
        check_new_file(target, force)
    read_record(folder)
    path = folder / REPORT_DATA
    advice = "A model of directions has no report; for any other model, run the fit again."
    data = read_json(path, f"{folder} has no {REPORT_DATA}. {advice}")
    write_atomically(target, report_page(data, path))
    print(target)
    return 0
