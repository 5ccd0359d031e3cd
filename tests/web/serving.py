"""`groupkeeper serve` as its own process, and requests to it."""

import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.patience import until

COMMAND = str(Path(sys.executable).with_name("groupkeeper"))
PATIENCE_S = 20.0


class Answer(NamedTuple):
    """`headers` have lower-case names."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()


class Served(NamedTuple):
    """A running server."""

    process: subprocess.Popen[str]
    address: str

    @property
    def port(self) -> int:
        return int(self.address.rpartition(":")[2])

    def get(self, path: str, method: str = "GET", **headers: str) -> Answer:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        request = urllib.request.Request(f"http://{self.address}{path}", headers=named, method=method)
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
                found = {name.lower(): value for name, value in answer.headers.items()}
                return Answer(answer.status, found, answer.read())
        except urllib.error.HTTPError as error:
            return Answer(error.code, {name.lower(): value for name, value in error.headers.items()}, error.read())

    def until(self, is_there: Callable[[str], bool], path: str = "/metrics", **headers: str) -> str:
        """The text once it is as wanted."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            text = self.get(path, **headers).text
            if is_there(text):
                return text
            assert time.monotonic() < deadline, text
            time.sleep(0.02)

    def until_ready(self) -> None:
        until(lambda: self.get("/readyz").status == 200)


@contextmanager
def serving(*words: str) -> Iterator[Served]:
    """Started with these words, at a free port and without a history unless these are among them."""
    command = [COMMAND, "serve", *words]
    for option, value in (("--port", "0"), ("--history", "off")):
        if option not in words:
            command += [option, value]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        line = process.stderr.readline()
        if not line.startswith("serving "):
            process.kill()  # it may run all the same
            raise AssertionError(line + process.communicate()[1])
        yield Served(process, line.split("http://")[1].partition("/")[0])
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()
