"""Downloads from a server that fails, truncates, stalls and lies."""

from __future__ import annotations

import errno
import hashlib
import io
import json
import socket
from pathlib import Path

import pytest

from lab.data import DownloadError, WrongContentsError
from lab.data.download import Patience, ProgressLine, download
from servers import chunked, part, resuming, serving, silent, stalling, status, whole

CONTENT = bytes(range(256)) * 2000
OTHER = CONTENT[::-1]
SHA256 = hashlib.sha256(CONTENT).hexdigest()
HALF = len(CONTENT) // 2
TAG, NEWER = '"first"', '"second"'
DATE = "Wed, 21 Oct 2015 07:28:00 GMT"


@pytest.fixture
def server():
    with serving() as started:
        yield started


class Fetcher:
    """Downloads into a folder without waiting, and remembers what it was to wait."""

    def __init__(self, folder: Path) -> None:
        self.target = folder / "deep" / "file.zip"
        self.pauses: list[float] = []
        self.progress: list[tuple[int, int | None]] = []

    def __call__(self, url: str, sha256: str | None = None, **patience: float) -> bytes:
        download(
            url,
            self.target,
            sha256=sha256,
            patience=Patience(**({"attempts": 3, "timeout": 5.0} | patience)),
            progress=lambda done, total: self.progress.append((done, total)),
            sleep=self.pauses.append,
        )
        return self.target.read_bytes()

    def leave_part(self, url: str, content: bytes, validator: str | None = TAG) -> None:
        """Leave what an interrupted download would."""
        self.target.parent.mkdir(parents=True, exist_ok=True)
        Path(f"{self.target}.part").write_bytes(content)
        note = json.dumps({"url": url, "validator": validator})
        Path(f"{self.target}.part.json").write_text(note)

    def names(self) -> list[str]:
        return sorted(path.name for path in self.target.parent.iterdir())


@pytest.fixture
def fetch(tmp_path):
    return Fetcher(tmp_path)


def test_a_file_arrives(server, fetch):
    """Whole, under its name alone, with progress, from a server that was asked plainly."""
    server.answers = [whole(CONTENT, ETag=TAG)]
    assert fetch(server.url, SHA256) == CONTENT
    assert fetch.names() == ["file.zip"]
    assert fetch.pauses == []
    assert fetch.progress[-1] == (len(CONTENT), len(CONTENT))
    (request,) = server.requests
    assert request.path == "/file.zip"
    assert request.headers["Accept-Encoding"] == "identity"
    assert "Range" not in request.headers


@pytest.mark.parametrize("code", [408, 429, 500, 502, 503, 504])
def test_a_server_that_fails_is_asked_again(server, fetch, code):
    """With longer and longer pauses."""
    server.answers = [status(code), status(code), whole(CONTENT)]
    assert fetch(server.url) == CONTENT
    assert fetch.pauses == [1.0, 2.0]


def test_a_server_may_ask_for_a_pause(server, fetch):
    """Retry-After is obeyed within bounds; a date there is not understood, and no harm."""
    server.answers = [status(503, Retry_After="7"), status(503, Retry_After="9999")]
    server.answers += [status(503, Retry_After=DATE), whole(CONTENT)]
    assert fetch(server.url, attempts=5) == CONTENT
    assert fetch.pauses == [7.0, 30.0, 4.0]


@pytest.mark.parametrize("code", [401, 403, 404, 410])
def test_a_server_that_refuses_is_not_asked_again(server, fetch, code):
    server.answers = [status(code)]
    with pytest.raises(DownloadError, match=f"127.0.0.1.*answered {code}"):
        fetch(server.url)
    assert len(server.requests) == 1
    assert fetch.names() == []


def test_attempts_are_bounded(server, fetch):
    """The error says what was tried, how often, and what came each time."""
    server.answers = [status(500), status(502), status(500)]
    with pytest.raises(
        DownloadError, match=r"file.zip .*Tried 3 times: .* 500 .*; .* 502 "
    ) as info:
        fetch(server.url)
    assert str(info.value).count("500") == 1
    assert len(server.requests) == 3
    assert fetch.pauses == [1.0, 2.0]


def test_nobody_listens(fetch):
    """No connection, as without a network."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(DownloadError, match=r"Tried 3 times: no connection \(.*refused"):
        fetch(f"http://127.0.0.1:{port}/file.zip")


def test_a_server_that_hangs_up(server, fetch):
    server.answers = [silent, whole(CONTENT)]
    assert fetch(server.url) == CONTENT
    assert len(fetch.pauses) == 1


def test_a_truncated_file_is_resumed(server, fetch):
    """Content-Length tells; the second request asks for the rest of the same version."""
    server.answers = [resuming(CONTENT, upto=HALF, ETag=TAG), resuming(CONTENT, ETag=TAG)]
    assert fetch(server.url, SHA256) == CONTENT
    assert server.ranges() == [None, f"bytes={HALF}-"]
    assert server.requests[1].headers["If-Range"] == TAG
    assert fetch.progress[-1] == (len(CONTENT), len(CONTENT))


def test_the_next_call_resumes(server, fetch):
    """What had arrived is kept when all attempts fail."""
    server.answers = [resuming(CONTENT, upto=HALF, ETag=TAG), status(500)]
    with pytest.raises(DownloadError, match=f"ended after {HALF} of {len(CONTENT)} bytes; .* 500"):
        fetch(server.url)
    assert fetch.names() == ["file.zip.part", "file.zip.part.json"]
    server.answers = [resuming(CONTENT, ETag=TAG)]
    assert fetch(server.url, SHA256) == CONTENT
    assert server.ranges()[-1] == f"bytes={HALF}-"
    assert fetch.names() == ["file.zip"]


def test_a_date_is_enough_to_resume(server, fetch):
    """A weak tag is not: two files with it may differ (RFC 9110)."""
    dated = {"ETag": f"W/{TAG}", "Last_Modified": DATE}
    server.answers = [resuming(CONTENT, upto=HALF, **dated), resuming(CONTENT, **dated)]
    assert fetch(server.url, SHA256) == CONTENT
    assert server.requests[1].headers["If-Range"] == DATE


def test_without_a_version_a_download_starts_over(server, fetch):
    """Nobody could tell whether the parts belong together."""
    server.answers = [whole(CONTENT, upto=HALF, ETag=f"W/{TAG}"), whole(CONTENT)]
    assert fetch(server.url, SHA256) == CONTENT
    assert server.ranges() == [None, None]


def test_a_server_that_ignores_ranges(server, fetch):
    """It sends the whole file, which replaces the part."""
    fetch.leave_part(server.url, CONTENT[:HALF])
    server.answers = [whole(CONTENT, ETag=TAG)]
    assert fetch(server.url, SHA256) == CONTENT
    assert server.ranges() == [f"bytes={HALF}-"]


def test_a_file_that_changed_between_parts(server, fetch):
    """If-Range makes a good server send the new version whole."""
    fetch.leave_part(server.url, OTHER[:HALF], NEWER)
    server.answers = [resuming(CONTENT, ETag=TAG)]
    assert fetch(server.url, SHA256) == CONTENT


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(part(CONTENT, HALF, ETag=NEWER), id="another version"),
        pytest.param(part(CONTENT, HALF - 7, ETag=TAG), id="another begin"),
        pytest.param(part(CONTENT, HALF, content_range="bytes 1-2/*", ETag=TAG), id="no total"),
        pytest.param(
            part(CONTENT, HALF, content_range=f"bytes {HALF}-{HALF + 9}/{len(CONTENT)}", ETag=TAG),
            id="not to the end",
        ),
        pytest.param(status(416), id="nothing there"),
    ],
)
def test_a_part_that_does_not_fit(server, fetch, answer):
    """It is thrown away with what was there, and the next request asks for the whole."""
    fetch.leave_part(server.url, CONTENT[:HALF])
    server.answers = [answer, whole(CONTENT)]
    assert fetch(server.url, SHA256) == CONTENT
    assert server.ranges() == [f"bytes={HALF}-", None]


def test_a_part_that_nobody_asked_for(server, fetch):
    server.answers = [part(CONTENT, HALF), whole(CONTENT)]
    assert fetch(server.url) == CONTENT


def test_more_than_there_should_be(server, fetch):
    """A part that is longer than its Content-Range says: nothing of it is trusted."""
    fetch.leave_part(server.url, CONTENT[:HALF])
    size = HALF + 10
    lie = f"bytes {HALF}-{size - 1}/{size}"
    server.answers = [part(CONTENT, HALF, content_range=lie, ETag=TAG), whole(CONTENT)]
    assert fetch(server.url, SHA256) == CONTENT
    assert server.ranges() == [f"bytes={HALF}-", None]


def test_parts_that_fit_but_are_wrong(server, fetch):
    """The checksum tells; a file put together from parts gets a second chance as a whole."""
    fetch.leave_part(server.url, OTHER[:HALF])
    server.answers = [resuming(CONTENT, ETag=TAG)]
    assert fetch(server.url, SHA256) == CONTENT
    assert server.ranges() == [f"bytes={HALF}-", None]


def test_wrong_contents_are_refused(server, fetch):
    """The server lies: no file, no part, no second request."""
    server.answers = [whole(OTHER, ETag=TAG)]
    with pytest.raises(
        WrongContentsError, match=rf"SHA-256 is {hashlib.sha256(OTHER).hexdigest()}"
    ):
        fetch(server.url, SHA256)
    assert fetch.names() == []
    assert len(server.requests) == 1


def test_a_server_that_stalls(server, fetch):
    """After the timeout it is asked for the rest."""
    server.answers = [
        stalling(CONTENT, upto=HALF, seconds=1.0, ETag=TAG),
        resuming(CONTENT, ETag=TAG),
    ]
    assert fetch(server.url, SHA256, timeout=0.2) == CONTENT
    assert server.ranges() == [None, f"bytes={HALF}-"]


def test_a_server_that_never_answers(fetch):
    """The connection is made, and no byte comes."""
    with socket.create_server(("127.0.0.1", 0)) as mute:
        url = f"http://127.0.0.1:{mute.getsockname()[1]}/file.zip"
        with pytest.raises(DownloadError, match=r"Tried 3 times: no answer \(.*timed out"):
            fetch(url, timeout=0.1)


def test_a_file_of_unknown_length(server, fetch):
    """Chunks say themselves when they end; progress has no total."""
    server.answers = [chunked(CONTENT, finished=False), chunked(CONTENT, finished=True)]
    assert fetch(server.url, SHA256) == CONTENT
    assert len(fetch.pauses) == 1
    assert fetch.progress[-1] == (len(CONTENT), None)


@pytest.mark.parametrize(
    "note", ["", "[]", "{}", '{"url": "http://elsewhere/", "validator": "x"}', '{"url": 1}']
)
def test_a_part_of_unknown_origin_is_not_resumed(server, fetch, note):
    """Of another address, or with a note that cannot be read."""
    fetch.leave_part(server.url, CONTENT[:HALF])
    Path(f"{fetch.target}.part.json").write_text(note)
    server.answers = [resuming(CONTENT, ETag=TAG)]
    assert fetch(server.url, SHA256) == CONTENT
    assert server.ranges() == [None]


def test_a_full_disk_is_no_reason_to_ask_again(server, fetch, monkeypatch):
    """An error of this machine arrives as it is."""

    def full(*arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    server.answers = [whole(CONTENT)]
    with pytest.raises(OSError, match="No space left"):
        fetch(server.url)
    assert len(server.requests) == 1
    assert not fetch.target.exists()


@pytest.mark.parametrize("url", ["file:///etc/hostname", "ftp://example.org/file", "file.zip"])
def test_only_the_web(fetch, url):
    with pytest.raises(DownloadError, match="no address of HTTP"):
        fetch(url)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_on_a_terminal_is_written_over():
    """One line, which ends when everything is there."""
    stream = Terminal()
    line = ProgressLine("file.zip", stream)
    for done in (0, 5_000_000, 5_000_001, 10_000_000):
        line(done, 10_000_000)
    assert stream.getvalue() == (
        "file.zip:   0 % of 10.0 MB\rfile.zip:  50 % of 10.0 MB\rfile.zip: 100 % of 10.0 MB\n"
    )


def test_progress_in_a_file_has_few_lines():
    """Every tenth, or every ten megabytes of an unknown number."""
    stream = io.StringIO()
    line = ProgressLine("file.zip", stream)
    for done in range(1001):
        line(done * 1000, 1_000_000)
    assert len(stream.getvalue().splitlines()) == 11
    stream = io.StringIO()
    line = ProgressLine("file.zip", stream)
    for done in range(0, 30 << 20, 1 << 20):
        line(done, None)
    assert stream.getvalue().splitlines() == [
        "file.zip: 0.0 MB",
        "file.zip: 10.5 MB",
        "file.zip: 21.0 MB",
    ]


def test_progress_goes_to_the_error_stream(server, tmp_path, capsys):
    server.answers = [whole(CONTENT)]
    download(server.url, tmp_path / "file.zip")
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines()[-1] == "file.zip: 100 % of 0.5 MB"
