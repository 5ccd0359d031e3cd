"""Which personal data the tables of a directory keep. The first run that writes there chooses, once."""

from __future__ import annotations

from collections.abc import Mapping

from groupkeeper.pipeline.decode.privacy import KINDS, Privacy
from groupkeeper.pipeline.errors import SourceError
from groupkeeper.pipeline.kafka.options import ReadOptions
from groupkeeper.pipeline.storage.ledger import Ledger


def with_privacy(options: ReadOptions, ledger: Ledger) -> ReadOptions:
    """The options with the directory's choice of privacy. Raises SourceError if they choose another one."""
    privacy = chosen(options.privacy, ledger.privacy, ledger.place)
    if ledger.privacy is None:
        ledger.note(privacy=privacy.choice)
    return options._replace(privacy=privacy)


def chosen(given: Privacy | None, known: Mapping[str, str] | None, place: str) -> Privacy:
    """The choice that applies in a directory whose earlier choice is `known` (None: none yet); `place` names the
    directory in errors. Raises SourceError if another one is given, or a key although nothing is salted.
    """
    key = given.key if given is not None and given.key and not given.changes_any else None
    if given is not None and key is None:
        found = given
    elif known is None:
        found = Privacy.of({}, key)
    else:
        found = Privacy.of({kind: known[kind] for kind in KINDS if kind in known}, key)
    if known is not None and found.choice != known:
        raise SourceError(f"{place}: {_difference(found.choice, known)}: {_WAY_OUT}")
    return found


_WAY_OUT = "leave --privacy out, or choose another directory"


def _difference(given: Mapping[str, str], known: Mapping[str, str]) -> str:
    if {**given, "key": ""} == {**known, "key": ""}:
        return "its tables were salted with another key"
    if not known:
        return "its tables keep hosts, client ids, member ids and metadata as they are"
    modes = ",".join(f"{kind.replace('_', '-')}={known[kind]}" for kind in KINDS)
    return f"its tables were begun with --privacy {modes}"
