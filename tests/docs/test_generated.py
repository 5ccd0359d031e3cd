"""Generated references are what their generators write today."""

from pathlib import Path

from tools import broker_metrics, broker_settings

ROOT = Path(__file__).resolve().parents[2]


def test_every_setting_of_the_broker_is_documented() -> None:
    assert (ROOT / "docs/broker-settings.md").read_text() == broker_settings.document(), "run `make docs`"


def test_every_metric_of_the_broker_is_documented() -> None:
    assert (ROOT / "docs/metrics.md").read_text() == broker_metrics.document(), "run `make docs`"
