"""Writes docs/metrics.md from the broker's table of metrics.

Usage: python tools/broker_metrics.py      (`make docs`; a test compares)
"""

from itertools import groupby
from pathlib import Path

from groupkeeper.broker.observing.metrics_table import METRICS

TARGET = Path(__file__).resolve().parent.parent / "docs" / "metrics.md"

INTRODUCTION = """# Metrics of the broker

Written by `make docs` from the table in `src/groupkeeper/broker/observing/metrics_table.py`; do not edit.

The group coordinator's metrics are those of Apache Kafka 4.4.0, with KIP-496's meters among them. Left out are those of
what this broker does not have: background threads, buffers that are kept (`batch-buffer-cache-*`), and plug-ins that
store topology descriptions (`streams-group-topology-description-*`). For Prometheus:

```sh
python3 -m pip install '.[metrics]'    # in a checkout
groupkeeper broker --port 9092 --data /tmp/groupkeeper-data --property groupkeeper.metrics.port=9404
curl http://127.0.0.1:9404/metrics
```

Kafka has them as JMX beans. Here their names are what the JMX exporter makes of those with its usual rules for
Kafka: domain, type and name joined by `_`, in lower case, `.` and `-` turned into `_`; tags become labels.
Dashboards for Kafka find them. Most of Kafka's counts do not end in `_total`, which Prometheus asks of counters: all
are given as untyped, and `rate()` works on them all the same. The endpoint listens on 127.0.0.1 only and is off unless
`groupkeeper.metrics.port` is set.

In Python, without the extra: `broker.metrics.value("offset-commit-count")` or `broker.metrics.value("group-count",
protocol="classic")` inside the event loop of a `Broker`; `broker.metric(...)` with the same arguments for a
`BackgroundBroker` and the pytest fixtures. `broker.metrics.samples()` has all of them, and `await
broker.metrics.serve()` opens another endpoint.

All exist from the start with value 0, except `last-pruned-offset`, which a partition has once its log was cut, and the
counts of dead letters, which a group has once records went to its queue. Rates and times are those of the last 30 to 60
seconds, as with Kafka's defaults (`metrics.sample.window.ms`, `metrics.num.samples`); counts begin with the process.
What Kafka refreshes every minute (groups by state) is counted here at each request.
"""


def document() -> str:
    lines = [INTRODUCTION.rstrip("\n")]
    for mbean, metrics in groupby(METRICS.values(), key=lambda metric: metric.mbean):
        lines += ["", f"## {mbean}", "", "| Kafka's name | for Prometheus | labels | meaning |", "|---|---|---|---|"]
        lines += [f"| {one.name} | `{one.prometheus_name}` | {', '.join(one.labels)} | {one.doc} |" for one in metrics]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    TARGET.write_text(document())
    print(f"wrote {TARGET.name}")
