"""Chromium, which the tests drive by its protocol over a pipe."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager

PROGRAM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))),
    None,
)
FLAGS = (
    "--headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run "
    "--disable-extensions --remote-debugging-pipe"
)
# Starts a program that reads from file 3 and writes to file 4.
START = """
import os, sys
from fcntl import F_DUPFD, fcntl
ends = [fcntl(int(end), F_DUPFD, 10) for end in sys.argv[1:3]]
os.dup2(ends[0], 3), os.dup2(ends[1], 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


class Page:
    """A page in a browser. complaints : what its console and the browser have said"""

    def __init__(self, send):
        self._send, self.complaints = send, []

    def call(self, method, **params):
        """Return the answer to a command of the protocol."""
        return self._send(method, params, self)

    def open(self, path, width=1280, hash=""):
        """Load a file in a window of some width."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=900,
            deviceScaleFactor=1,
            mobile=False,
        )
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=path.as_uri() + hash)
        there = f"location.href.startsWith({path.as_uri()!r}) && document.readyState"
        for _ in range(200):
            if self.run(there) == "complete":
                return
            time.sleep(0.05)
        raise TimeoutError(f"the page does not load: {self.complaints}")

    def run(self, code):
        """Return the value of a JavaScript expression in the page, of a promise what it gives."""
        answer = self.call(
            "Runtime.evaluate", expression=code, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")


@contextmanager
def open_browser():
    """Yield a `Page` of a new browser."""
    to_read, to_write = os.pipe(), os.pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        ends = map(str, (to_read[0], to_write[1]))
        command = [PROGRAM, *FLAGS.split(), f"--user-data-dir={folder}"]
        browser = subprocess.Popen(
            [sys.executable, "-c", START, *ends, *command],
            pass_fds=(to_read[0], to_write[1]),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_read[0])
        os.close(to_write[1])
        try:
            with os.fdopen(to_read[1], "wb") as pipe, os.fdopen(to_write[0], "rb") as answers:
                yield _first_page(pipe, answers)
        finally:
            browser.kill()
            browser.wait()


def _first_page(pipe, answers):
    """Return a new page of the browser at the other ends of two pipes."""
    number, session = 0, None

    def send(method, params, page=None):
        nonlocal number
        number += 1
        message = {"id": number, "method": method, "params": params}
        message |= {"sessionId": session} if page is not None else {}
        pipe.write(json.dumps(message).encode() + b"\0")
        pipe.flush()
        while (answer := _read(answers)).get("id") != number:
            _note(page, answer)
        assert "error" not in answer, answer["error"]
        return answer["result"]

    target = send("Target.createTarget", {"url": "about:blank"})["targetId"]
    session = send("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
    page = Page(send)
    for domain in ("Page", "Runtime", "Log", "Network"):
        page.call(f"{domain}.enable")
    return page


def _read(answers):
    """Return the next message of the browser."""
    text = bytearray()
    while (byte := answers.read(1)) != b"\0":
        assert byte, "the browser has ended"
        text += byte
    return json.loads(text)


def _note(page, event):
    """Note what a page complains of, and whatever it asks of others."""
    method, params = event.get("method"), event.get("params", {})
    if page is None:
        return
    if method in ("Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled"):
        page.complaints.append(params)
    elif method == "Network.requestWillBeSent":
        url = params["request"]["url"]
        if not url.startswith(("file:", "about:")):
            page.complaints.append(url)
