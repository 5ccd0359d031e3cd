"""Makes the README's pictures: a terminal, of real output on the embedded broker, and the report of example tables.

Usage: python tools/pictures.py      (`make pictures`; the report's picture needs a Chromium, as tests/browser does)
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.browser.opened import WHY_NOT, chromium, opened  # noqa: E402
from tests.fleet_tables import fleet, write  # noqa: E402

from groupkeeper.demo import stage  # noqa: E402

TARGET = ROOT / "docs" / "pictures"
COLUMNS, RECORDS, DAY_MS = 113, 1000, 86_400_000
LOG_START = 300  # of payments: what was before it is lost for the group that had not read it
QUIET = (
    "groups reset billing --topic orders:0 --to-offset 990 --create --execute",
    "groups reset shipping --topic orders:0 --to-offset 580 --create --execute",
    "groups reset audit --topic payments:0 --to-offset 120 --create --execute",
)
SHOWN = (
    "groupkeeper groups offsets --all-groups --sort lag",
    "groupkeeper plan reset billing --topic orders --by-duration PT12H --save plan.json",
    "groupkeeper apply plan.json --execute",
    "groupkeeper undo --execute",
)
THEME = TerminalTheme(
    (17, 21, 26), (220, 226, 232),
    [(60, 68, 77), (255, 116, 128), (76, 195, 138), (240, 176, 74), (110, 168, 255), (195, 151, 245), (90, 200, 210),
     (220, 226, 232)],
)  # fmt: skip
SVG = """<svg viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg" role="img">
<title>groupkeeper in a terminal: offsets with their status, a plan, its application, and its undo</title>
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace;
  font-size: {char_height}px; line-height: {line_height}px; }}
.{unique_id}-title {{ font-size: 18px; font-weight: bold; font-family: sans-serif; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/></clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">{matrix}</g>
</g>
</svg>
"""
RULES = {
    "stopped": "The next record has waited for {0}, and nothing was committed for {0}",
    "stalled": "The next record has waited for {0}, and commits are of the same offset for {0}",
    "rewound": "The next record has waited for {0}; the group had been at offset 81,000, and is at 61,000",
    "lagging": "The next record has waited for {0}",
}
NAMES = (
    "checkout",
    "search-index",
    "invoices",
    "fraud-check",
    "mail",
    "warehouse",
    "loyalty",
    "refunds",
    "pricing",
    "ads",
)


def run(command: str, folder: Path, *more: str) -> str:
    """What a command writes, cut to the width of the picture. Raises CalledProcessError."""
    own = {"XDG_CONFIG_HOME": str(folder), "GROUPKEEPER_JOURNAL": str(folder / "journal.jsonl")}
    words = shlex.split(command)
    ended = subprocess.run(
        [stage.command_path(words[0]), *words[1:], *more],
        cwd=folder, env={**os.environ, **own, "COLUMNS": str(COLUMNS)}, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, check=True,
    )  # fmt: skip
    return ended.stdout


def fill(address: str) -> None:
    """A day of records in two topics."""
    producer = Producer({"bootstrap.servers": address, "linger.ms": 50})
    now_ms = int(time.time() * 1000)
    for topic in ("orders", "payments"):
        for number in range(RECORDS):
            at_ms = now_ms - DAY_MS + number * DAY_MS // RECORDS
            producer.produce(topic, f"record {number}", timestamp=at_ms, partition=0)
        producer.flush()


def trim(address: str) -> None:
    """Removes the oldest records of a topic, as retention does."""
    place = TopicPartition("payments", 0, LOG_START)
    admin = AdminClient({"bootstrap.servers": address})  # whose thread resolves the futures
    for removed in admin.delete_records([place]).values():
        removed.result(30)


def shown(output: str) -> str:
    """Without the notes that name this machine or that groups have no members, cut to the width."""
    lines = [line for line in output.splitlines() if " has no members" not in line and "note: to take back" not in line]
    return "\n".join(lines)


def terminal(folder: Path) -> str:
    """The session as SVG."""
    console = Console(record=True, width=COLUMNS, file=open(os.devnull, "w"), force_terminal=True)  # noqa: SIM115
    with stage.running_broker() as address:
        fill(address)
        run(f"groupkeeper context add prod --bootstrap-server {address} --use", folder)
        for command in QUIET:
            run(f"groupkeeper {command}", folder)
        trim(address)
        for command in SHOWN:
            console.print(Text.assemble(("$ ", "bold green"), (command, "bold")))
            console.print(Text.from_ansi(shown(run(command, folder, "--color", "always"))), soft_wrap=True)
    return console.export_svg(title="groupkeeper", theme=THEME, code_format=SVG, unique_id="gk")


def report(folder: Path, target: Path) -> None:
    """The upper part of the report's page, as a browser shows it."""
    rows = fleet(len(NAMES), cluster="prod")
    names = dict(zip(dict.fromkeys(one["group_id"] for one in rows["groups"]), NAMES, strict=True))
    for table in rows.values():
        for row in table:
            row["group_id"] = names.get(row.get("group_id"))
    states = {row["group_id"]: row["status"] for row in rows["status"]}
    for row in rows["groups"]:  # so that there is one list of each kind
        row["members"] = 0 if states[row["group_id"]] == "stopped" else 3
    for row in rows["status"]:
        row["rule"] = str(RULES.get(row["status"], row["rule"])).format(f"{(row['lag_ms'] or 0) // 60_000} min")
    tables = write(folder / "tables", rows)
    page = folder / "report.html"
    run(f"groupkeeper pipeline report --tables {tables} --output-file {page} --last 3h", folder)
    with chromium() as browser, opened(browser, width=1180, height=800) as (shown, _, _):
        shown.goto(page.as_uri())
        shown.screenshot(path=target)


def main() -> int:
    TARGET.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="groupkeeper-pictures-") as name:
        (TARGET / "terminal.svg").write_text(terminal(Path(name)))
        print("wrote docs/pictures/terminal.svg")
        if WHY_NOT:
            print(f"docs/pictures/report.png stays as it is: {WHY_NOT}")
            return 1
        report(Path(name), TARGET / "report.png")
        print("wrote docs/pictures/report.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
