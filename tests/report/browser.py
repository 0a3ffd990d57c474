"""A real browser for the tests: chromium without a window, told what to do through a pipe.

It speaks the DevTools protocol (https://chromedevtools.github.io/devtools-protocol/): JSON
messages that end in a zero byte, over the file descriptors 3 and 4 of the browser.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
SECONDS = 60.0
OPTIONS = (
    "--headless=new",
    "--remote-debugging-pipe",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--no-first-run",
    "--hide-scrollbars",
    # Its sandbox does not work for root, and not in most containers.
    "--no-sandbox",
    "about:blank",
)


def find_browser() -> str | None:
    """Path of an installed chromium, or None."""
    return next(filter(None, map(shutil.which, NAMES)), None)


@contextlib.contextmanager
def open_browser(program: str) -> Iterator[Browser]:
    """Start a browser with an empty profile, and end it with all of its processes."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = Browser([program, f"--user-data-dir={profile}", *OPTIONS])
        try:
            yield browser
        finally:
            browser.close()


class Browser:
    """One browser process."""

    def __init__(self, command: list[str]) -> None:
        as_pipe = 'exec "$@" 3<&0 4>&1 </dev/null >/dev/null 2>&1'
        self._process = subprocess.Popen(
            ["sh", "-c", as_pipe, "sh", *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        self._buffer = b""
        self._number = 0
        self._events: list[dict[str, Any]] = []

    def call(self, method: str, session: str | None = None, **params: Any) -> dict[str, Any]:
        """Call a method of the protocol and return its result; events are kept."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if session is not None:
            message["sessionId"] = session
        self._process.stdin.write(json.dumps(message).encode() + b"\0")
        self._process.stdin.flush()
        limit = time.monotonic() + SECONDS
        while (answer := self._receive(limit)).get("id") != self._number:
            self._events.append(answer)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer["result"]

    def wait_for(self, method: str, session: str) -> None:
        """Wait for an event, unless it has come already."""
        limit = time.monotonic() + SECONDS
        while not self.events(method, session):
            self._events.append(self._receive(limit))

    def events(self, method: str, session: str) -> list[dict[str, Any]]:
        """Return the parameters of all events of a kind so far."""
        return [
            event["params"]
            for event in self._events
            if event.get("method") == method and event.get("sessionId") == session
        ]

    def _receive(self, limit: float) -> dict[str, Any]:
        pipe = self._process.stdout.fileno()
        while b"\0" not in self._buffer:
            if not select.select([pipe], [], [], max(0.0, limit - time.monotonic()))[0]:
                raise TimeoutError(f"the browser did not answer within {SECONDS} seconds")
            chunk = os.read(pipe, 1 << 20)
            if not chunk:
                raise RuntimeError("the browser has ended by itself")
            self._buffer += chunk
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)

    def open(self, path: Path, width=1200, height=900, dark=False, script="") -> Tab:
        """Open a file in a tab of its own, after a script, and wait until it is complete."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        tab = Tab(self, target, attached["sessionId"])
        for domain in ("Page", "Runtime", "Log", "Network"):
            tab.call(f"{domain}.enable")
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        tab.call("Emulation.setDeviceMetricsOverride", **size)
        tab.prefer("dark" if dark else "light")
        tab.call("Page.addScriptToEvaluateOnNewDocument", source=script)
        tab.call("Page.navigate", url=path.resolve().as_uri())
        self.wait_for("Page.loadEventFired", tab.session)
        return tab

    def close(self) -> None:
        """End the browser and everything it has started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.communicate()


@dataclass
class Tab:
    """One page in the browser."""

    browser: Browser
    target: str
    session: str

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Call a method of the protocol in this tab."""
        return self.browser.call(method, self.session, **params)

    def evaluate(self, code: str) -> Any:
        """Return the value of a JavaScript expression in the page."""
        how = {"returnByValue": True, "awaitPromise": True}
        answer = self.call("Runtime.evaluate", expression=code, **how)
        if "exceptionDetails" in answer:
            raise RuntimeError(json.dumps(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def all(self, selector: str, code: str = "e.textContent", where: str = "true") -> list[Any]:
        """Return the value of an expression for each element ``e`` that a selector finds."""
        found = f"[...document.querySelectorAll({json.dumps(selector)})]"
        return self.evaluate(f"{found}.filter(e => {where}).map(e => {code})")

    def one(self, selector: str, code: str = "e.textContent") -> Any:
        """Return the value of an expression for the first element that a selector finds."""
        return self.evaluate(f"(e => {code})(document.querySelector({json.dumps(selector)}))")

    def prefer(self, scheme: str, media: str = "") -> None:
        """Pretend that the system is light or dark, or that the medium is ``print``."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", media=media, features=features)

    def press(self, key: str, code: int, text: str = "") -> None:
        """Press and release a key, e.g. Enter."""
        shared = {"key": key, "code": key, "windowsVirtualKeyCode": code}
        self.call("Input.dispatchKeyEvent", type="keyDown", text=text, **shared)
        self.call("Input.dispatchKeyEvent", type="keyUp", **shared)

    def write(self, text: str) -> None:
        """Type a text where the cursor is."""
        self.call("Input.insertText", text=text)

    def click(self, selector: str) -> None:
        """Click the middle of an element with the mouse."""
        for kind in ("mousePressed", "mouseReleased"):
            self._mouse(selector, type=kind, button="left", clickCount=1)

    def hover(self, selector: str) -> None:
        """Move the mouse to the middle of an element."""
        self._mouse(selector, type="mouseMoved")

    def _mouse(self, selector: str, **event: Any) -> None:
        middle = (
            "(e.scrollIntoView({block: 'center', behavior: 'instant'}),"
            " [e.getBoundingClientRect()].map(r => [r.x + r.width / 2, r.y + r.height / 2])[0])"
        )
        x, y = self.one(selector, middle)
        self.call("Input.dispatchMouseEvent", x=x, y=y, **event)

    def complaints(self) -> list[str]:
        """Everything that the console would show, exceptions and violations of the policy too."""
        kinds = ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded")
        return [
            json.dumps(params)
            for kind in (*kinds, "Page.javascriptDialogOpening")
            for params in self.browser.events(kind, self.session)
        ]

    def requests(self) -> list[str]:
        """Addresses of everything the page has asked for."""
        asked = self.browser.events("Network.requestWillBeSent", self.session)
        return [params["request"]["url"] for params in asked]

    def close(self) -> None:
        """Close the tab."""
        self.browser.call("Target.closeTarget", targetId=self.target)
