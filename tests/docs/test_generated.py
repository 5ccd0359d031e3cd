"""Generated references are what their generators write today."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.docs import released
from tools import broker_metrics, broker_settings, cli_reference, grafana_dashboard, serve_metrics, sync_admin

from groupkeeper.broker.settings.group_overrides import GroupConfig
from groupkeeper.broker.settings.table import ACCEPTED
from groupkeeper.pipeline.storage.ledger import SCHEMA

ROOT = Path(__file__).resolve().parents[2]


def test_every_setting_of_the_broker_is_documented() -> None:
    assert (ROOT / "docs/broker-settings.md").read_text() == broker_settings.document(), "run `make docs`"


def test_settings_of_share_groups_are_explained() -> None:
    text = (ROOT / "docs/share-groups.md").read_text()
    unnamed = [
        one.name
        for one in GroupConfig.settings()
        if one.name.startswith(("share.", "errors."))
        and ACCEPTED not in one.doc
        and not re.search(rf"`{re.escape(one.name)}[`=]", text)
    ]
    assert unnamed == [], "name these among the settings of a group in docs/share-groups.md"


def test_a_setting_without_effect_is_documented_as_a_name_only() -> None:
    assert not [line for line in broker_settings.document().splitlines() if f"| {ACCEPTED}" in line]


def test_every_metric_of_the_broker_is_documented() -> None:
    assert (ROOT / "docs/metrics.md").read_text() == broker_metrics.document(), "run `make docs`"


def test_every_metric_of_serve_is_documented() -> None:
    assert (ROOT / "docs/serve-metrics.md").read_text() == serve_metrics.document(), "run `make docs`"


def test_the_dashboard_for_grafana_is_as_its_tool_writes_it() -> None:
    assert grafana_dashboard.TARGET.read_text() == grafana_dashboard.document(), "run `make docs`"


def test_the_calls_that_block_are_those_of_today() -> None:
    assert sync_admin.TARGET.read_text() == sync_admin.document(), "run `make docs`"


def test_names_that_have_come_or_gone_since_the_last_release_are_in_the_changelog() -> None:
    untold = released.untold()
    assert untold == [], f"name these as code, those of CHANGELOG.md there or in a file of changes/: {untold}"


def test_the_files_of_changes_become_the_section_of_a_version(tmp_path: Path) -> None:
    for name in ("pyproject.toml", "CHANGELOG.md"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / "changes").mkdir()
    (tmp_path / "changes/+delays.added.md").write_text("An option `--delays`.\n")
    towncrier = [sys.executable, "-m", "towncrier", "build", "--yes", "--version", "7.0.0", "--date", "2031-02-03"]
    subprocess.run(towncrier, cwd=tmp_path, check=True, capture_output=True)
    newest, next_one = (tmp_path / "CHANGELOG.md").read_text().split("\n## ")[1:3]
    assert newest.split("\n\n")[:3] == ["[7.0.0] - 2031-02-03", "### Added", "- An option `--delays`."]
    assert next_one.startswith("[0.1.0]")


def test_tables_are_made_again_where_their_schema_differs() -> None:
    assert released.least_schema() <= SCHEMA, (
        "tables, or their columns, have come or gone since the last release: raise SCHEMA of pipeline/storage/ledger.py"
    )


def test_columns_and_fields_stay_where_they_are() -> None:
    """Programs read them by place (CSV, tuples), too."""
    now = released.names()
    moved = {
        of for of, own in released.released().items()
        if of.startswith(("column of ", "field of ")) and now.get(of, own)[: len(own)] != own
    }  # fmt: skip
    assert moved == set(), "new columns and fields go to the end; otherwise the `version` of a Schema grows"


IN_TABLES = set[str]()
"""New columns in tables of a terminal, as `offsets/1: lag`: they are worth the width of those that may not fit now."""


def test_new_columns_are_not_in_tables_of_terminals() -> None:
    then = released.released()
    schemas = [schema for _, schema, _ in cli_reference.SCHEMAS if f"column of {schema.name}" in then]
    new = {
        f"{schema.name}: {each.name}"
        for schema in schemas for each in schema.columns
        if each.in_table and each.name not in then[f"column of {schema.name}"]
    }  # fmt: skip
    assert new == IN_TABLES, f"give these `in_table=False`; those that are worth their width are in IN_TABLES: {new}"


EXAMPLES = {"group_consumer_max_idle_ms", "x_by_y"}
"""Names in CONTRIBUTING.md of what there is not."""


def test_contributors_are_told_names_of_code_that_is_there() -> None:
    files = [path for folder in ("src", "tests", "tools", "bench") for path in (ROOT / folder).rglob("*.*")]
    code = "".join(path.read_text() for path in files if path.suffix == ".py")
    known = {*re.findall(r"\w+", code), *(path.stem for path in files)}
    for page in ("CONTRIBUTING.md", "docs/architecture.md"):
        told = {
            name for each in re.findall(r"`([A-Za-z_][\w.]*)`", (ROOT / page).read_text()) for name in each.split(".")
        }
        assert told - known - EXAMPLES - {""} == set(), f"{page} names these, but no code has them: correct it"
