"""A headless Chromium, spoken to by its DevTools protocol over a pipe: no driver, no port."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

__all__ = ["COMMAND", "Chromium"]

_NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
COMMAND = os.environ.get("CHROMIUM") or next((found for name in _NAMES if (found := shutil.which(name))), None)
"""The browser of this machine, or $CHROMIUM; None: there is none."""

_PATIENCE_S = 60.0


class Chromium:
    """One page. What it complained about is in `complaints`, what it asked the network for in `requests`."""

    def __init__(
        self, folder: Path, *, width: int = 1280, height: int = 900, is_dark: bool = False, scale: int = 1
    ) -> None:
        assert COMMAND is not None
        to_read, self._write = os.pipe()
        self._read, to_write = os.pipe()
        self._rest = b""
        self._number = 0
        self._session: str | None = None
        self.complaints: list[str] = []
        self.requests: list[str] = []
        words = [
            "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
            "--disable-background-networking", "--remote-debugging-pipe", f"--user-data-dir={folder}",
        ]  # fmt: skip
        # The browser reads from its descriptor 3 and writes to 4; the shell puts the pipes there.
        command = f'exec "$@" 3<&{to_read} 4>&{to_write}'
        self._browser = subprocess.Popen(
            ["bash", "-c", command, "bash", COMMAND, *words],
            pass_fds=(to_read, to_write), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(to_read)
        os.close(to_write)
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=scale,
            mobile=width < 600,
        )
        if is_dark:
            dark = {"name": "prefers-color-scheme", "value": "dark"}
            self.send("Emulation.setEmulatedMedia", features=[dark])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._write)
        os.close(self._read)
        self._browser.terminate()
        self._browser.wait(_PATIENCE_S)

    def send(self, method: str, **params: Any) -> dict[str, Any]:
        """A command, and its result. Raises AssertionError when it fails or takes too long."""
        answer = self._ask(method, params)
        assert "error" not in answer, f"{method}: {answer['error']}"
        result: dict[str, Any] = answer["result"]
        return result

    def _ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next(method)
            if answer.get("id") == self._number:
                return answer
            self._hear(answer)

    def open(self, url: str) -> None:
        """Open a page, and wait until it is loaded."""
        self.send("Page.navigate", url=url)
        deadline = time.monotonic() + _PATIENCE_S
        while self.run("document.readyState + location.href") != f"complete{url}":
            assert time.monotonic() < deadline, f"{url} is not loaded"

    def run(self, script: str) -> Any:
        """The value of an expression in the page."""
        found = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def until(self, script: str) -> None:
        """Wait until an expression holds; while another page is being loaded it doesn't."""
        deadline = time.monotonic() + _PATIENCE_S
        while True:
            answer = self._ask("Runtime.evaluate", {"expression": f"Boolean({script})", "returnByValue": True})
            if answer.get("result", {}).get("result", {}).get("value") is True:
                return
            if time.monotonic() > deadline:
                raise AssertionError(f"{script} does not come about: {self.run('document.body.innerText')}")
            time.sleep(0.02)

    def press(self, key: str) -> None:
        """Press a key, and let go of it."""
        text = {"Enter": "\r", " ": " "}.get(key, "")
        code = {"Tab": 9, "Enter": 13, " ": 32, "ArrowUp": 38, "ArrowDown": 40}[key]
        named = {"key": key, "code": "Space" if key == " " else key, "windowsVirtualKeyCode": code}
        self.send("Input.dispatchKeyEvent", type="keyDown", text=text, **named)
        self.send("Input.dispatchKeyEvent", type="keyUp", **named)

    def type(self, text: str) -> None:
        """Type into what has the focus."""
        self.send("Input.insertText", text=text)

    def picture(self, path: Path, *, is_whole: bool = True) -> None:
        """Save what the page looks like."""
        found = self.send("Page.captureScreenshot", captureBeyondViewport=is_whole)
        path.write_bytes(base64.b64decode(found["data"]))

    def _hear(self, event: dict[str, Any]) -> None:
        params = event.get("params", {})
        match event.get("method"):
            case "Runtime.exceptionThrown":
                self.complaints.append(str(params["exceptionDetails"]))
            case "Log.entryAdded":
                self.complaints.append(params["entry"]["text"])
            case "Runtime.consoleAPICalled" if params["type"] in ("error", "warning"):
                self.complaints.append(str(params["args"]))
            case "Network.requestWillBeSent":
                self.requests.append(params["request"]["url"])

    def _next(self, doing: str) -> dict[str, Any]:
        deadline = time.monotonic() + _PATIENCE_S
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._read], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, f"{doing}: the browser does not answer"
            more = os.read(self._read, 1 << 16)
            assert more, f"{doing}: the browser has ended"
            self._rest += more
        text, _, self._rest = self._rest.partition(b"\0")
        found: dict[str, Any] = json.loads(text)
        return found
