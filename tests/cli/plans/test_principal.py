"""Plans and the journal say who made a change for the brokers, beside who did for the machine."""

import json
from pathlib import Path

import pytest

from groupkeeper import SyncAdmin
from groupkeeper.cli.main import main
from groupkeeper.client.admin.types import NewTopic, OffsetAndMetadata, TopicPartition
from groupkeeper.testing.background import BackgroundBroker


def test_who_made_a_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("GROUPKEEPER_JOURNAL", str(tmp_path / "journal"))
    config, plan = tmp_path / "alice.properties", tmp_path / "plan.json"
    with BackgroundBroker(users={"alice": "alice-secret"}) as broker:
        properties = broker.client_properties("alice")
        with SyncAdmin(broker.bootstrap_servers, properties=properties) as admin:
            assert admin.principal == "User:alice"
            admin.create_topics([NewTopic("orders", 1, 1)]).all()
            admin.alter_consumer_group_offsets("billing", {TopicPartition("orders", 0): OffsetAndMetadata(3)}).all()
        config.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
        cluster = ["--bootstrap-server", broker.bootstrap_servers, "--command-config", str(config)]
        arguments = ["plan", "reset", "billing", "--topic", "orders", "--to-latest", "--save", str(plan), *cluster]
        assert main(arguments) == 0
        assert json.loads(plan.read_text())["principal"] == "User:alice"
        assert main(["apply", str(plan), "--execute", *cluster]) == 0
        capsys.readouterr()
        assert main(["history", "--output", "json"]) == 0
        (change,) = json.loads(capsys.readouterr().out)["changes"]
        assert change["principal"] == "User:alice"
        assert main(["history", change["id"]]) == 0
        assert f" on {change['host']} as User:alice: " in capsys.readouterr().err
        assert main(["undo", "--if-out-of-range", "exact", "--execute", *cluster]) == 0
        assert " as User:alice at " in capsys.readouterr().err
