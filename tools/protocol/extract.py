"""Reads the message schemas of Apache Kafka's jars and writes the project's compact description, schemas.txt.

    python -m tools.protocol.extract JAR_FOLDER        # a folder with kafka-clients-*.jar and the coordinator jars

Only facts are carried over (names, types, versions, nullability, defaults, tags); the prose of the schemas is not.
"""

from __future__ import annotations

import json
import re
import sys
import zipfile
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from tools.apache_kafka import NEWEST
from tools.protocol import schema

JARS = ("kafka-clients", "kafka-group-coordinator", "kafka-share-coordinator", "kafka-transaction-coordinator")
TARGET = Path(__file__).with_name("schemas.txt")


def messages_of(folder: Path) -> list[schema.Message]:
    """Every message of the four jars that has a valid version, requests and responses by API key, then the rest by
    name.
    """
    found: list[schema.Message] = []
    for name in JARS:
        jar = next(folder.glob(f"{name}-[0-9]*.jar"), None)
        if jar is None:
            raise SystemExit(f"no {name}-*.jar in {folder}")
        with zipfile.ZipFile(jar) as archive:
            for entry in archive.namelist():
                if entry.startswith("common/message/") and entry.endswith(".json"):
                    text = re.sub(r"^\s*//.*$", "", archive.read(entry).decode(), flags=re.MULTILINE)
                    parsed = _message(json.loads(text))
                    if parsed.versions:
                        found.append(parsed)
    ranks = {"request": 0, "response": 0, "header": 1, "coordinator-key": 2, "coordinator-value": 2, "data": 3}
    return sorted(found, key=lambda m: (ranks[m.kind], m.key if ranks[m.kind] == 0 else -1, m.name))


def _message(raw: dict[str, Any]) -> schema.Message:
    name = raw["name"]
    versions = schema.Versions.parse(raw["validVersions"])
    result = schema.Message(
        raw["type"],
        name,
        raw.get("apiKey"),
        versions,
        schema.Versions.parse(raw.get("flexibleVersions")),
        bool(raw.get("latestVersionUnstable", False)),
    )
    if versions:
        _struct(result, name, raw["fields"])
        for common in raw.get("commonStructs", []):
            _struct(result, common["name"], common["fields"])
    return result


def _struct(message: schema.Message, name: str, raw_fields: list[dict[str, Any]]) -> None:
    struct = message.structs.setdefault(name, schema.Struct(name))
    for raw in raw_fields:
        struct.fields.append(_field(raw))
        if "fields" in raw:
            _struct(message, raw["type"].removeprefix("[]"), raw["fields"])


def _field(raw: dict[str, Any]) -> schema.Field:
    # Only the text "null" makes null the default: Apache's generator takes JSON's null for no default at all.
    default = raw.get("default")
    text = "" if default is None else str(default).lower() if isinstance(default, bool) else str(default)
    tagged = schema.Versions.parse(raw.get("taggedVersions"))
    return schema.Field(
        schema.snake(raw["name"]),
        raw["type"],
        # A few schemas give a tagged field no versions of its own: it exists where it is tagged.
        schema.Versions.parse(raw["versions"]) if "versions" in raw else tagged,
        schema.Versions.parse(raw.get("nullableVersions")),
        text or None,
        raw.get("ignorable") in (True, "true"),
        raw.get("tag"),
        tagged,
        raw.get("flexibleVersions") == "none",
    )


def schemas_text(folder: Path) -> str:
    """The text of schemas.txt, from the jars in that folder. Fields that structs of schemas.txt lack are `later`."""
    messages = messages_of(folder)
    mark_later(messages, schema.load(TARGET.read_text()))
    title = f"# Written by tools/protocol/extract.py from Apache Kafka {NEWEST}'s schemas.\n\n"
    return title + schema.dump(messages)


def mark_later(messages: Iterable[schema.Message], known: Iterable[schema.Message]) -> None:
    old = {(message.name, struct.name): struct.fields for message in known for struct in message.structs.values()}
    for message in messages:
        for struct in message.structs.values():
            first = {each.name for each in old.get((message.name, struct.name), struct.fields) if not each.later}
            struct.fields = [replace(each, later=each.name not in first) for each in struct.fields]


def main() -> None:
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    TARGET.write_text(schemas_text(Path(sys.argv[1])))


if __name__ == "__main__":
    main()
