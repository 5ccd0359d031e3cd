"""Rows of logs: as objects of JSON, and as single lines of text."""

import json
import logging
import signal
import socket
import subprocess
from pathlib import Path

from tests.web.serving import COMMAND, PATIENCE_S, serving

from groupkeeper.cli.framework.logs import _TextRows
from groupkeeper.testing.background import BackgroundBroker


def objects(text: str) -> list[dict[str, str]]:
    return [json.loads(line) for line in text.splitlines()]


def test_serve(tmp_path: Path) -> None:
    rules = tmp_path / "rules.toml"
    rules.write_text('[[rule]]\nname = "a\\n<b>"\ncluster_unreachable = true\n')
    with BackgroundBroker() as broker:
        where = ("--bootstrap-server", f"prod={broker.bootstrap_servers}", "--rules", str(rules))
        with serving(*where, "--log-format", "json") as served:
            served.until_ready()
            rules.write_text("[[rule]]")
            served.process.send_signal(signal.SIGHUP)
            served.until(lambda text: "name is missing" in text, "/readyz")
            served.process.terminate()
            assert served.process.stderr is not None
            rows = objects(served.process.stderr.read())
    found = [(row["level"], row["logger"]) for row in rows]
    assert found == [("info", "groupkeeper.serve"), ("warning", "groupkeeper.serve")]
    assert rows[0]["message"] == "cluster prod is up"
    assert f"{rules} is not used as it is now" in rows[1]["message"]
    assert all(row["time"].endswith("Z") for row in rows)


def test_broker(tmp_path: Path) -> None:
    words = [COMMAND, "broker", "--port", "0", "--data", str(tmp_path / "data"), "--log-format", "json"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = process.stdout.readline().rpartition(" ")[2].strip()
        with socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2])), PATIENCE_S) as connection:
            connection.sendall(b"\x7f\xff\xff\xff nonsense")
            assert connection.recv(1) == b""
        process.terminate()
        rows = objects(process.communicate(timeout=PATIENCE_S)[1])
    (row,) = (row for row in rows if row["level"] == "warning")
    assert set(row) == {"time", "level", "logger", "message"}
    assert row["logger"] == "groupkeeper.broker"


def test_a_name_does_not_forge_a_row() -> None:
    row = logging.makeLogRecord({"msg": "%s is behind", "args": ("g\n2026 prod is up\x1b[2J",)})
    assert _TextRows("%(message)s").format(row) == r"g\n2026 prod is up\x1b[2J is behind"
