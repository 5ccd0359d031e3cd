"""Ctrl-C while a job runs."""

import signal
import time
import weakref
from collections.abc import Iterator

import pytest
from py4j.protocol import Py4JError

from groupkeeper.pipeline.jobs import running
from groupkeeper.pipeline.jobs.running import interrupt

OF_PY4J = compile("lambda reference: during()", "site-packages/py4j/java_gateway.py", "eval")


class Thing:
    """May be referred to weakly."""


@pytest.fixture(autouse=True)
def handler() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, interrupt)
    yield
    signal.signal(signal.SIGINT, before)


def test_it_ends_what_runs() -> None:
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_it_is_not_lost_while_an_object_is_forgotten(capsys: pytest.CaptureFixture[str]) -> None:
    seen = []

    def during() -> None:
        signal.raise_signal(signal.SIGINT)
        seen.append("all of it")

    def forget_and_wait() -> None:
        things.clear()
        time.sleep(600)

    things = [Thing()]
    kept = weakref.ref(things[0], eval(OF_PY4J, {"during": during}))
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        forget_and_wait()
    assert time.monotonic() - began < 300
    assert seen == ["all of it"]
    assert kept() is None
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("step", ["quieten", "start_session"])
def test_it_counts_where_py4j_fails_to_clean_up_after_it(monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    def interrupted(*_: object, **__: object) -> None:
        try:
            raise KeyboardInterrupt
        finally:
            raise Py4JError("Gateway must be connected to send cancel cmd.")

    monkeypatch.setattr(running, step, interrupted)
    with pytest.raises(KeyboardInterrupt) as ended, running.session("snapshot", master=None, remote=None):
        pass
    assert ended.value.__cause__ is None
