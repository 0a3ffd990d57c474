"""A web server on this machine that does what it is told: fails, truncates, stalls and lies."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Request:
    """What the server was asked."""

    path: str
    headers: dict[str, str]


Answer = Callable[[BaseHTTPRequestHandler], None]


@dataclass
class Server:
    """Gives one scripted answer after the other, the last one again and again."""

    url: str
    answers: list[Answer] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        place = min(len(self.requests), len(self.answers) - 1)
        self.requests.append(Request(handler.path, dict(handler.headers)))
        self.answers[place](handler)

    def ranges(self) -> list[str | None]:
        """Return the ranges that were asked for."""
        return [request.headers.get("Range") for request in self.requests]


@contextmanager
def serving() -> Iterator[Server]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            script.answer(self)

        def log_message(self, *arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    script = Server(f"http://127.0.0.1:{server.server_address[1]}/file.zip")
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield script
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def status(code: int, **headers: str) -> Answer:
    """Answer with an error and no content."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(code)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    return answer


def whole(
    content: bytes, *, upto: int | None = None, length: bool = True, **headers: str
) -> Answer:
    """Answer with the whole file, ranges ignored; break off ``upto`` some byte."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        if length:
            handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        handler.wfile.write(content[:upto])

    return answer


def resuming(content: bytes, *, upto: int | None = None, **headers: str) -> Answer:
    """Answer as a good server: ranges, unless If-Range names another version."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        wanted = handler.headers.get("Range")
        version = handler.headers.get("If-Range")
        if wanted is None or version not in headers.values():
            whole(content, upto=upto, **headers)(handler)
            return
        begin = int(wanted.removeprefix("bytes=").removesuffix("-"))
        part(content, begin, **headers)(handler)

    return answer


def part(content: bytes, begin: int, *, content_range: str | None = None, **headers: str) -> Answer:
    """Answer with what follows a byte, whatever was asked for."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        size = len(content)
        handler.send_response(206)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.send_header("Content-Range", content_range or f"bytes {begin}-{size - 1}/{size}")
        handler.send_header("Content-Length", str(size - begin))
        handler.end_headers()
        handler.wfile.write(content[begin:])

    return answer


def stalling(content: bytes, *, upto: int, seconds: float, **headers: str) -> Answer:
    """Send the first bytes, and then nothing for a while."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        whole(content, upto=upto, **headers)(handler)
        handler.wfile.flush()
        time.sleep(seconds)

    return answer


def chunked(content: bytes, *, finished: bool) -> Answer:
    """Send the content in one chunk of unknown total, with or without the last, empty one."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.protocol_version = "HTTP/1.1"
        handler.send_response(200)
        handler.send_header("Transfer-Encoding", "chunked")
        handler.send_header("Connection", "close")
        handler.end_headers()
        handler.wfile.write(b"%x\r\n%s\r\n" % (len(content), content))
        if finished:
            handler.wfile.write(b"0\r\n\r\n")
        handler.close_connection = True

    return answer


def silent(handler: BaseHTTPRequestHandler) -> None:
    """Hang up without a word."""
    handler.close_connection = True
