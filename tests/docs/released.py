"""The names that users type and read. Those of the last release are in released.txt: `python -m tests.docs.released`
writes them, once CHANGELOG.md has the date of a release.
"""

import inspect
import re
from pathlib import Path

from tests.docs.test_admin import CALLS, GUIDE
from tools import cli_reference
from tools.broker_settings import of_broker

from groupkeeper.api import admin
from groupkeeper.api.admin import Admin
from groupkeeper.broker.api_table import TABLE
from groupkeeper.broker.observing.metrics_table import METRICS
from groupkeeper.broker.settings.group_overrides import GroupConfig
from groupkeeper.broker.settings.topic import TopicConfig
from groupkeeper.cli.framework.commands import parser
from groupkeeper.cli.framework.reports import Schema
from groupkeeper.client.admin import streams_types, types
from groupkeeper.client.admin.resources import access_types
from groupkeeper.client.admin.resources import types as resource_types
from groupkeeper.pipeline.storage.ledger import SCHEMA
from groupkeeper.pipeline.tables import TABLES
from groupkeeper.protocol.index import APIS
from groupkeeper.security.mechanisms import MECHANISMS
from groupkeeper.web import series
from groupkeeper.web.exporter import PROGRAM_METRICS

ROOT = Path(__file__).resolve().parents[2]
_SCHEMA = "schema of the tables"
RELEASED = Path(__file__).with_name("released.txt")


def paths_in(page: str) -> list[str]:
    """Those in the first cells of a page's tables."""
    cells = re.findall(r"^\| (.*?) \|", (ROOT / "docs" / page).read_text(), re.M)
    return [path for cell in cells for path in re.findall(r"`(?:[A-Z]+ )?(/[^`?]*)", cell)]


def columns_of(schema: Schema) -> list[str]:
    """In their order, after the key of the rows in JSON."""
    return [schema.kind, *(each.name for each in schema.columns)]


def names() -> dict[str, list[str]]:
    """Of today: names by what they are of, columns in their order."""
    series_metrics = (
        *series.CLUSTER_METRICS, *series.GROUP_METRICS, *series.TOPIC_METRICS, *series.PARTITION_METRICS,
        *series.MEMBER_METRICS, *PROGRAM_METRICS,
    )  # fmt: skip
    return {
        "call of Admin": CALLS,
        "mechanism": [*MECHANISMS],
        "metric of the broker": [each.prometheus_name for each in METRICS.values()],
        "metric of serve": [each.name for each in series_metrics],
        "path of serve": paths_in("serve.md"),
        "path of the API": paths_in("api.md"),
        "setting of a broker": [each.name for each in of_broker()],
        "setting of a group": [each.name for each in GroupConfig.settings()],
        "setting of a topic": [each.name for each in TopicConfig.settings()],
        _SCHEMA: [str(SCHEMA)],
        "table": [each.name for each in TABLES],
        "version": [f"{APIS[key][0]} v{each}" for key, api in TABLE.items() for each in range(api.highest + 1)],
        **{f"argument of {each}": [*inspect.signature(getattr(Admin, each)).parameters] for each in CALLS},
        **{
            f"field of {name}": [*of._fields]
            for module in (admin, access_types, streams_types, types, resource_types)
            for name, of in vars(module).items()
            if hasattr(of, "_fields")
        },
        **{f"column of {each.name}": [*each.names] for each in TABLES},
        **{f"column of {each.name}": columns_of(each) for _, each, _ in cli_reference.SCHEMAS},
        **{f"option of {each.tool}": [f"--{name}" for name in each.options] for each in cli_reference.DROP_INS},
        **{
            f"option of {each.prog}": [name for action in each._actions for name in action.option_strings]
            for each in cli_reference.leaves(parser())
        },
    }


def least_schema() -> int:
    """The least SCHEMA of today's tables: it rises once with tables that come or go, and with columns that go."""
    now, then = names(), released()
    columns = [f"column of {name}" for name in then["table"]]
    differ = {*now["table"]} != {*then["table"]} or any({*then[of]} - {*now[of]} for of in columns)
    return int(then[_SCHEMA][0]) + differ


def released() -> dict[str, list[str]]:
    """Of the last release."""
    return {of: own.split(", ") for of, _, own in (line.partition(": ") for line in RELEASED.read_text().splitlines())}


def untold() -> list[str]:
    """Names that have come or gone since then, and that neither the newest section of CHANGELOG.md nor a file of
    changes/ has in code, or new ones of Admin that docs/admin.md lacks: each with its page. Of what is new or gone as
    a whole, its own name counts.
    """
    texts = [(ROOT / "CHANGELOG.md").read_text().split("\n## ")[1]]
    texts += [path.read_text() for path in (ROOT / "changes").glob("*.md")]
    told = " ".join(re.findall(r"`([^`]+)`", "\n".join(texts)))
    now, then = names(), released()
    changed = {(of, name) for of in (now.keys() & then.keys()) - {_SCHEMA} for name in {*now[of]} ^ {*then[of]}}
    changed |= {(of, of.partition(" of ")[2]) for of in now.keys() ^ then.keys()}
    more = {(of, name) for of, name in changed if of.startswith(("argument ", "field ")) and name in now.get(of, ())}
    return sorted(
        f"{page}: {of}: {name}"
        for page, text, some, before in (
            ("CHANGELOG.md", told, changed, r"[\w.-]"),
            ("docs/admin.md", GUIDE, more, r"[\w-]"),  # a guide has `group.name`
        )
        for of, name in some
        if not re.search(rf"(?<!{before}){re.escape(name)}(?![\w.-])", text)
    )


if __name__ == "__main__":
    RELEASED.write_text("".join(f"{of}: {', '.join(own)}\n" for of, own in sorted(names().items())))
