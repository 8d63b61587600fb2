"""Headless Chromium over its debugging pipe: JSON between NUL bytes, on descriptors 3 and 4."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser")
DEADLINE_S = 60.0
_PUT_AND_RUN = """
import fcntl, os, sys
ends = [fcntl.fcntl(int(end), fcntl.F_DUPFD, 10) for end in sys.argv[1:3]]
for there, end in zip((3, 4), ends):
    os.dup2(end, there)
os.execv(sys.argv[3], sys.argv[3:])
"""
"""Puts the ends of the pipes where the browser looks for them."""


class Browser:
    """A browser with one page; a context manager."""

    def __init__(self) -> None:
        assert PROGRAM is not None
        self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        to_browser, self._out = os.pipe()
        self._in, from_browser = os.pipe()
        self._asked = 0
        self._session = ""
        self._left = b""
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-c",
                _PUT_AND_RUN,
                str(to_browser),
                str(from_browser),
                PROGRAM,
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--remote-debugging-pipe",
                "--window-size=1200,800",
                f"--user-data-dir={self._profile.name}",
            ],
            pass_fds=(to_browser, from_browser),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)

    def __enter__(self) -> Self:
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        attached = self._call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._in)
        os.close(self._out)
        self._profile.cleanup()

    def open(self, url: str) -> None:
        """Show a page."""
        self._call("Page.navigate", url=url)

    def evaluate(self, script: str) -> Any:
        """The value of an expression on the page."""
        answer = self._call("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def wait_for(self, script: str) -> Any:
        """Wait until an expression on the page is true; its value."""
        deadline = time.monotonic() + DEADLINE_S
        while not (value := self.evaluate(script)):
            assert time.monotonic() < deadline, f"{script} has not come true"
            time.sleep(0.1)
        return value

    def screenshot(self, path: Path) -> None:
        """Write what the page looks like, as PNG."""
        path.write_bytes(base64.b64decode(self._call("Page.captureScreenshot")["data"]))

    def _call(self, method: str, **parameters: object) -> Any:
        self._asked += 1
        message: dict[str, object] = {"id": self._asked, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = json.loads(self._receive())
            if answer.get("id") == self._asked:
                assert "error" not in answer, answer
                return answer["result"]

    def _receive(self) -> bytes:
        while b"\0" not in self._left:
            more = os.read(self._in, 1 << 16)
            assert more, "the browser has ended"
            self._left += more
        message, _, self._left = self._left.partition(b"\0")
        return message
