"""Files from the web: resumed where they were interrupted, and never half a file under its name."""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from lab.data.errors import DownloadError, WrongContentsError

HEADERS = {"User-Agent": "evomeans-benchmarks", "Accept-Encoding": "identity"}
# Request timeout, too many requests, and what servers say while something is wrong with them.
TEMPORARY = frozenset({408, 425, 429, 500, 502, 503, 504})
CHUNK = 1 << 16

Progress = Callable[[int, int | None], None]
"""Is told the bytes that are there and the bytes that there will be, if known."""


@dataclass(frozen=True)
class Patience:
    """How long to try.

    Parameters
    ----------
    attempts : int
        Requests at most, after errors that may pass.
    timeout : float
        Seconds without a byte, after which a request has failed.
    first_pause, longest_pause : float
        Seconds before the second request, doubled before each further one up to the longest.
    """

    attempts: int = 4
    timeout: float = 30.0
    first_pause: float = 1.0
    longest_pause: float = 30.0

    def pause(self, failures: int, wanted: float | None) -> float:
        """Seconds to wait after a number of failures; a server may want more, within bounds."""
        doubled = self.first_pause * 2.0 ** (failures - 1)
        return min(max(doubled, wanted or 0.0), self.longest_pause)


class _TemporaryError(Exception):
    """A request failed, and the next one may not."""

    def __init__(self, reason: str, wait: float | None = None) -> None:
        super().__init__(reason)
        self.wait = wait


def download(
    url: str,
    target: Path,
    *,
    sha256: str | None = None,
    patience: Patience | None = None,
    progress: Progress | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Download a file; it appears under its name once it is complete.

    What has arrived is kept beside it (``.part``) and resumed by the next request, or the next
    call, if the server says that its file is still the same. Only one process at a time may
    download to a target.

    Parameters
    ----------
    url : str
        Of HTTP or HTTPS.
    target : Path
    sha256 : str or None
        Of the whole file, if it is known.
    patience : Patience or None
    progress : callable or None
        By default a line on the standard error stream.
    sleep : callable
        Waits for a number of seconds.

    Raises
    ------
    DownloadError
        If the server refuses, or all attempts fail; says what was tried.
    WrongContentsError
        If the file has another SHA-256.
    """
    if not url.startswith(("http://", "https://")):
        raise DownloadError(f"{url} is no address of HTTP or HTTPS.")
    patience = patience or Patience()
    progress = progress or ProgressLine(target.name)
    part = _Part(target, url)
    failures: list[str] = []
    while True:
        try:
            resumed = _transfer(part, patience.timeout, progress)
            _check(part, sha256, resumed)
            break
        except _TemporaryError as error:
            failures.append(str(error))
            if len(failures) >= patience.attempts:
                raise DownloadError(
                    f"{url} could not be downloaded. Tried {len(failures)} times: "
                    f"{'; '.join(dict.fromkeys(failures))}."
                ) from error
            sleep(patience.pause(len(failures), error.wait))
    part.finish()


def _transfer(part: _Part, timeout: float, progress: Progress) -> bool:
    """Make one request and keep what arrives; return whether it continued an older part."""
    size, validator = part.resumable()
    headers = dict(HEADERS)
    if validator:
        headers |= {"Range": f"bytes={size}-", "If-Range": validator}
    with _open(Request(part.url, headers=headers), timeout, part) as response:
        found = _validator(response.headers)
        if response.status == 206:
            total = _total_after(response.headers.get("Content-Range"), size)
            if not validator or total is None or found not in (None, validator):
                part.discard()
                raise _TemporaryError("the server sent a part that does not fit what was there")
        else:
            size, total = 0, _length(response.headers.get("Content-Length"))
            part.restart(found)
        with part.path.open("ab") as file:
            for chunk in _chunks(response):
                file.write(chunk)
                size += len(chunk)
                progress(size, total)
            file.flush()
            os.fsync(file.fileno())
    if total is not None and size != total:
        if size > total:
            part.discard()
        raise _TemporaryError(f"the connection ended after {size} of {total} bytes")
    return response.status == 206


def _open(request: Request, timeout: float, part: _Part) -> http.client.HTTPResponse:
    """Send a request; tell errors that may pass from those that will not."""
    try:
        response: http.client.HTTPResponse = urlopen(request, timeout=timeout)
    except HTTPError as error:
        reason = f"the server answered {error.code} {error.reason}"
        error.close()
        if error.code == 416:
            part.discard()
            raise _TemporaryError(reason) from error
        if error.code in TEMPORARY:
            raise _TemporaryError(reason, _length(error.headers.get("Retry-After"))) from error
        raise DownloadError(f"{part.url} could not be downloaded: {reason}.") from error
    except URLError as error:
        raise _TemporaryError(f"no connection ({error.reason})") from error
    except (OSError, http.client.HTTPException) as error:
        raise _TemporaryError(f"no answer ({_described(error)})") from error
    return response


def _chunks(response: http.client.HTTPResponse) -> Iterator[bytes]:
    """Yield what arrives. Errors while reading may pass, unlike those of a full disk."""
    while True:
        try:
            # Unlike read, read1 does not lose what came before an error.
            chunk = response.read1(CHUNK)
        except (OSError, http.client.HTTPException) as error:
            raise _TemporaryError(f"the connection broke ({_described(error)})") from error
        if not chunk:
            return
        yield chunk


def _check(part: _Part, sha256: str | None, resumed: bool) -> None:
    if sha256 is None:
        return
    with part.path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found == sha256:
        return
    part.discard()
    if resumed:
        raise _TemporaryError("the parts did not fit together")
    raise WrongContentsError(
        f"{part.url} is not the file that is known: its SHA-256 is {found}, and {sha256} was "
        "expected."
    )


class _Part:
    """What has arrived of a file, and what is needed to go on: address and validator.

    A validator names the version of a file (RFC 9110, section 8.8). Without one, nobody can tell
    whether two parts belong together, and a download starts over.
    """

    def __init__(self, target: Path, url: str) -> None:
        self.url = url
        self._target = target
        self.path = target.with_name(f"{target.name}.part")
        self._note = target.with_name(f"{target.name}.part.json")
        target.parent.mkdir(parents=True, exist_ok=True)

    def resumable(self) -> tuple[int, str | None]:
        """Return the bytes that are there and their validator; None if they are of no use."""
        try:
            size = self.path.stat().st_size
            note: dict[str, Any] = json.loads(self._note.read_text(encoding="utf-8"))
            validator = note["validator"] if note["url"] == self.url and size else None
        except (FileNotFoundError, ValueError, TypeError, KeyError):
            return 0, None
        return (size, validator) if isinstance(validator, str) else (0, None)

    def restart(self, validator: str | None) -> None:
        """Begin an empty part."""
        self.path.write_bytes(b"")
        note = json.dumps({"url": self.url, "validator": validator})
        self._note.write_text(note, encoding="utf-8")

    def discard(self) -> None:
        """Forget what has arrived."""
        self.path.unlink(missing_ok=True)
        self._note.unlink(missing_ok=True)

    def finish(self) -> None:
        """Give the file its name."""
        self.path.replace(self._target)
        self._note.unlink(missing_ok=True)


def _validator(headers: http.client.HTTPMessage) -> str | None:
    """Return what If-Range may carry: a strong entity tag, or else the time of the last change."""
    tag = headers.get("ETag")
    if tag and not tag.startswith("W/"):
        return tag
    return headers.get("Last-Modified")


def _total_after(content_range: str | None, begin: int) -> int | None:
    """Return the size of the whole file, if a part continues at ``begin`` and goes to the end."""
    match = re.fullmatch(r"bytes (\d+)-(\d+)/(\d+)", content_range or "")
    if match is None:
        return None
    first, last, total = map(int, match.groups())
    return total if first == begin and last == total - 1 else None


def _length(header: str | None) -> int | None:
    return int(header) if header is not None and header.isdecimal() else None


def _described(error: Exception) -> str:
    return str(error) or type(error).__name__


class ProgressLine:
    """A line on the standard error stream that tells how much has arrived.

    On a terminal it is written over; in a file every tenth of the whole is a line.

    Parameters
    ----------
    name : str
    stream : file or None
        By default the standard error stream.
    """

    def __init__(self, name: str, stream: IO[str] | None = None) -> None:
        self._name = name
        self._stream = sys.stderr if stream is None else stream
        self._over = self._stream.isatty()
        self._shown: str | None = None

    def __call__(self, done: int, total: int | None) -> None:
        """Write the line, if it would say something new."""
        if total:
            steps = 100 if self._over else 10
            share = done * steps // total * 100 // steps
            text = f"{self._name}: {share:3d} % of {_megabytes(total)}"
        else:
            step = 1 << 20 if self._over else 10 << 20
            text = f"{self._name}: {_megabytes(done // step * step)}"
        if text == self._shown:
            return
        self._shown = text
        last = bool(total) and done >= (total or 0)
        end = "\r" if self._over and not last else "\n"
        print(text, end=end, file=self._stream, flush=True)


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB"
