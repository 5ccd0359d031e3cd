"""Which personal data of decoded records is kept: hosts, client ids, member ids, the metadata of commits. Other fields
that may contain the same data are handled in the same way, before anything is written.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import pyarrow as pa

from groupkeeper.pipeline.errors import SourceError
from groupkeeper.pipeline.tables import DECODED

KEEP, DROP, SALT = MODES = ("keep", "drop", "salt")
KINDS = ("hosts", "client_ids", "member_ids", "metadata")

_LEAST_KEY = 16
_DIGEST_CHARACTERS = 32

PRIVATE_FIELDS: Mapping[str, str] = {
    "client_host": "hosts",
    "host": "hosts",  # of an endpoint of Kafka Streams
    "client_id": "client_ids",
    "member_id": "member_ids",
    "leader": "member_ids",
    "instance_id": "member_ids",
    "group_instance_id": "member_ids",
    "process_id": "member_ids",
}
"""Kinds of personal data, by the names of fields and columns that have them."""

PUBLIC_FIELDS = frozenset(
    {
        "group", "group_id", "group_type", "record_name", "topic", "topics", "topic_id", "topic_name", "name", "type",
        "subscribed_topics", "subscribed_topic_names", "subscribed_topic_regex", "subscribed_regex", "protocol",
        "regular_expression", "protocol_type", "server_assignor", "member_state", "rack_id", "racks", "raw_sha256",
        "subtopology_id", "source_topics", "source_topic_regex", "repartition_sink_topics",
    }
)  # fmt: skip
"""Text fields that are kept. Any other text, such as the user data of a subscription, is emptied: it may contain any
personal data.
"""

_NESTED = ("key_json", "value_json")


class Privacy(NamedTuple):
    """How to keep personal data: a mode for each kind; `key` is the key for salting."""

    hosts: str = KEEP
    client_ids: str = KEEP
    member_ids: str = KEEP
    metadata: str = KEEP
    key: bytes = b""

    @staticmethod
    def of(modes: Mapping[str, str], key: bytes | None) -> Privacy:
        """The choice of these modes. Member ids begin with the client id: if client ids are not kept, member ids are
        salted. Raises SourceError for unknown modes, and for choices that contradict each other.
        """
        for kind, mode in modes.items():
            if kind not in KINDS or mode not in MODES:
                raise SourceError(f"privacy: {kind}={mode}: expected one of {', '.join(KINDS)}, and {', '.join(MODES)}")
        given = dict(modes)
        if given.get("client_ids", KEEP) != KEEP:
            given.setdefault("member_ids", SALT)
            if given["member_ids"] == KEEP:
                raise SourceError("privacy: member ids begin with the client id: choose member-ids=salt, too")
        if given.get("member_ids") == DROP:
            raise SourceError("privacy: member ids tell members apart: choose member-ids=salt in place of drop")
        if SALT in given.values():
            if key is None:
                raise SourceError("privacy: to salt takes a key: give --privacy-key FILE")
            if len(key) < _LEAST_KEY:
                raise SourceError(f"privacy: the key has {len(key)} bytes, it needs {_LEAST_KEY} at least")
        elif key is not None:
            raise SourceError("privacy: there is a key, but nothing to salt: choose salt, or leave the key out")
        return Privacy(**given, key=key or b"")

    @property
    def modes(self) -> dict[str, str]:
        """The modes by kind."""
        return {kind: getattr(self, kind) for kind in KINDS}

    @property
    def choice(self) -> dict[str, str]:
        """The choice as the ledger stores it, with a mark that identifies the key; {}: everything is kept."""
        if not self.changes_any:
            return {}
        mark = {"key": self._salted("key", "groupkeeper")} if self.key else {}
        return {**self.modes, **mark}

    @property
    def changes_any(self) -> bool:
        return any(mode != KEEP for mode in self.modes.values())

    def applied(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Rows of tables.DECODED with the modes applied; unless everything is kept, raw keys and values are null."""
        if not self.changes_any:
            return batch
        new = {name: pa.nulls(len(batch), pa.binary()) for name in ("raw_key", "raw_value")}
        if self.metadata != KEEP:
            new["metadata"] = self._column(batch["metadata"])
        if any(getattr(self, kind) != KEEP for kind in KINDS if kind != "metadata"):
            texts = batch["group_record"]
            if texts.null_count < len(texts):
                new["group_record"] = pa.array([text and self._record(text) for text in texts.to_pylist()], pa.string())
        return pa.RecordBatch.from_arrays([new.get(name, batch[name]) for name in DECODED.names], schema=DECODED.arrow)

    def _column(self, texts: pa.Array) -> pa.Array:
        if self.metadata == DROP:
            return pa.nulls(len(texts), pa.string())
        found = texts.dictionary_encode()
        salted = pa.array([self.text("metadata", text) for text in found.dictionary.to_pylist()], pa.string())
        return salted.take(found.indices)

    def _record(self, text: str) -> str:
        row = json.loads(text)
        texts = {name: row.pop(name) for name in _NESTED if name in row}
        nested = {name: _dump(self._without(json.loads(each), "")) for name, each in texts.items()}
        return _dump({**self._without(row, ""), **nested})

    def _without(self, value: Any, field: str) -> Any:
        if isinstance(value, dict):
            return {name: self._without(each, _snake(name)) for name, each in value.items()}
        if isinstance(value, list):
            return [self._without(each, field) for each in value]
        if not isinstance(value, str) or field in PUBLIC_FIELDS:
            return value
        return self.text(PRIVATE_FIELDS[field], value) if field in PRIVATE_FIELDS else ""

    def text(self, kind: str, text: str) -> str | None:
        """A text of this kind as it is kept; None: it is dropped."""
        mode = getattr(self, kind)
        if mode == KEEP or not text:
            return text
        return None if mode == DROP else self._salted(kind, text)

    def _salted(self, kind: str, text: str) -> str:
        """A digest of the text. Equal texts have equal digests, except in different kinds."""
        whole = f"{kind}\0{text}".encode(errors="surrogatepass")
        return hmac.digest(self.key, whole, hashlib.sha256).hex()[:_DIGEST_CHARACTERS]


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


_dump: Callable[[object], str] = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode
