"""Two machines share a journal in a topic of Apache Kafka, and of the broker here."""

from __future__ import annotations

import pytest
from tests.conformance.brokers import RunningBroker
from tests.team_journal import check_two_machines

pytestmark = [pytest.mark.conformance, pytest.mark.timeout(180)]


def test_one_machine_is_killed_and_the_other_takes_the_change_back(
    broker: RunningBroker, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    check_two_machines(broker.bootstrap_servers, 1, monkeypatch, capsys)
