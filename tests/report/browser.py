"""A real browser for the tests: chromium without a window, told what to do through a pipe.

It speaks the DevTools protocol (https://chromedevtools.github.io/devtools-protocol/): JSON
messages that end in a zero byte, over the file descriptors 3 and 4 of the browser.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
SECONDS = 60.0


def find_browser() -> str | None:
    """Path of an installed chromium, or None."""
    return next(filter(None, map(shutil.which, NAMES)), None)


@contextlib.contextmanager
def open_browser(program: str) -> Iterator[Browser]:
    """Start a browser with an empty profile, and end it with all of its processes."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = Browser(program, profile)
        try:
            yield browser
        finally:
            browser.close()


class Browser:
    """One browser process."""

    def __init__(self, program: str, profile: str) -> None:
        theirs_in, self._out = _far_pipe()
        self._in, theirs_out = _far_pipe()
        command = [
            program,
            "--headless=new",
            "--remote-debugging-pipe",
            f"--user-data-dir={profile}",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--disable-background-networking",
            "--no-first-run",
            "--hide-scrollbars",
            # Its sandbox does not work for root, and not in most containers.
            "--no-sandbox",
            "about:blank",
        ]
        null = os.open(os.devnull, os.O_RDWR)
        actions = [(os.POSIX_SPAWN_DUP2, null, fd) for fd in (0, 1, 2)]
        actions += [(os.POSIX_SPAWN_DUP2, theirs_in, 3), (os.POSIX_SPAWN_DUP2, theirs_out, 4)]
        self._process = os.posix_spawn(
            program, command, os.environ, file_actions=actions, setpgroup=0
        )
        for fd in (theirs_in, theirs_out, null):
            os.close(fd)
        self._buffer = b""
        self._number = 0
        self._events: list[dict[str, Any]] = []

    def call(self, method: str, session: str | None = None, **params: Any) -> dict[str, Any]:
        """Call a method of the protocol and return its result; events are kept."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if session is not None:
            message["sessionId"] = session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        limit = time.monotonic() + SECONDS
        while True:
            answer = self._receive(limit)
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self._events.append(answer)

    def wait_for(self, method: str, session: str) -> dict[str, Any]:
        """Return the parameters of an event that has come or is to come."""
        limit = time.monotonic() + SECONDS
        seen = 0
        while True:
            for event in self._events[seen:]:
                if event.get("method") == method and event.get("sessionId") == session:
                    return event["params"]
            seen = len(self._events)
            self._events.append(self._receive(limit))

    def events(self, method: str, session: str) -> list[dict[str, Any]]:
        """Return the parameters of all events of a kind so far."""
        return [
            event["params"]
            for event in self._events
            if event.get("method") == method and event.get("sessionId") == session
        ]

    def _receive(self, limit: float) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._in], [], [], max(0.0, limit - time.monotonic()))
            if not ready:
                raise TimeoutError(f"the browser did not answer within {SECONDS} seconds")
            chunk = os.read(self._in, 1 << 20)
            if not chunk:
                raise RuntimeError("the browser has ended by itself")
            self._buffer += chunk
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)

    def open(
        self,
        path: Path,
        *,
        width: int = 1200,
        height: int = 900,
        dark: bool = False,
        script: str = "",
    ) -> Tab:
        """Open a file in a tab of its own, after a script, and wait until it is complete."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        tab = Tab(self, target, attached["sessionId"])
        for domain in ("Page", "Runtime", "Log", "Network"):
            tab.call(f"{domain}.enable")
        tab.resize(width, height)
        tab.prefer("dark" if dark else "light")
        tab.call("Page.addScriptToEvaluateOnNewDocument", source=script)
        tab.call("Page.navigate", url=path.resolve().as_uri())
        self.wait_for("Page.loadEventFired", tab.session)
        return tab

    def close(self) -> None:
        """End the browser and everything it has started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process, signal.SIGKILL)
        os.waitpid(self._process, 0)
        os.close(self._in)
        os.close(self._out)


class Tab:
    """One page in the browser."""

    def __init__(self, browser: Browser, target: str, session: str) -> None:
        self.browser = browser
        self.target = target
        self.session = session

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Call a method of the protocol in this tab."""
        return self.browser.call(method, self.session, **params)

    def evaluate(self, code: str) -> Any:
        """Return the value of a JavaScript expression in the page."""
        answer = self.call(
            "Runtime.evaluate", expression=code, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in answer:
            raise RuntimeError(json.dumps(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def resize(self, width: int, height: int) -> None:
        """Give the page a size in CSS pixels."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def prefer(self, scheme: str, media: str = "") -> None:
        """Pretend that the system is light or dark, or that the medium is ``print``."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", media=media, features=features)

    def press(self, key: str, code: int, text: str = "") -> None:
        """Press and release a key, e.g. Enter."""
        shared = {"key": key, "code": key, "windowsVirtualKeyCode": code}
        self.call("Input.dispatchKeyEvent", type="keyDown", text=text, **shared)
        self.call("Input.dispatchKeyEvent", type="keyUp", **shared)

    def click(self, selector: str) -> None:
        """Click the middle of an element with the mouse."""
        x, y = self.place(selector)
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def hover(self, selector: str) -> None:
        """Move the mouse to the middle of an element."""
        x, y = self.place(selector)
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def place(self, selector: str) -> tuple[float, float]:
        """Scroll an element into view, and return its middle."""
        return tuple(
            self.evaluate(
                f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
                " e.scrollIntoView({block: 'center', behavior: 'instant'});"
                " const r = e.getBoundingClientRect();"
                " return [r.x + r.width / 2, r.y + r.height / 2]; })()"
            )
        )

    def complaints(self) -> list[str]:
        """Everything that the console would show, exceptions and violations of the policy too."""
        said = [
            json.dumps(params)
            for method in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded")
            for params in self.browser.events(method, self.session)
        ]
        dialogs = self.browser.events("Page.javascriptDialogOpening", self.session)
        return said + [json.dumps(dialog) for dialog in dialogs]

    def requests(self) -> list[str]:
        """Addresses of everything the page has asked for."""
        asked = self.browser.events("Network.requestWillBeSent", self.session)
        return [params["request"]["url"] for params in asked]

    def pdf(self, path: Path) -> None:
        """Print the page."""
        path.write_bytes(base64.b64decode(self.call("Page.printToPDF")["data"]))

    def close(self) -> None:
        """Close the tab."""
        self.browser.call("Target.closeTarget", targetId=self.target)


def _far_pipe() -> tuple[int, int]:
    """Make a pipe whose ends are neither 3 nor 4, which the browser will have as its own."""
    ends = os.pipe()
    import fcntl  # here, so that Windows can skip what needs it

    far = tuple(fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10) for fd in ends)
    for fd in ends:
        os.close(fd)
    return far
