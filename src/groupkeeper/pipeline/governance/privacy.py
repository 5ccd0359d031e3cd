"""What of people the tables of a directory keep: chosen once, by the first run that writes there."""

from __future__ import annotations

from collections.abc import Mapping

from groupkeeper.pipeline.decode.privacy import KINDS, Privacy
from groupkeeper.pipeline.errors import SourceError
from groupkeeper.pipeline.kafka.options import Options
from groupkeeper.pipeline.storage.ledger import Ledger

__all__ = ["chosen", "with_privacy"]


def with_privacy(options: Options, ledger: Ledger) -> Options:
    """With the choice that holds in the directory. Raises SourceError where another one was made before."""
    known = ledger.privacy
    if known is None:
        privacy = options.privacy or Privacy()
        ledger.choose_privacy(privacy.choice)
    else:
        privacy = chosen(options.privacy, known, ledger.place)
    return options._replace(privacy=privacy)


def chosen(given: Privacy | None, known: Mapping[str, str], place: str) -> Privacy:
    """What holds in a directory that has made the choice `known`; `place` is what errors call it. Raises SourceError
    where another one is given.
    """
    has_only_key = given is not None and given.key and not given.changes_any
    if given is None or has_only_key:
        modes = {kind: known[kind] for kind in KINDS if kind in known}
        given = Privacy.of(modes, given.key if given is not None else None)
    if given.choice != known:
        raise SourceError(f"{place}: {_difference(given.choice, known)}: {_WAY_OUT}")
    return given


_WAY_OUT = "leave --privacy out, or choose another directory"


def _difference(given: Mapping[str, str], known: Mapping[str, str]) -> str:
    if {**given, "key": ""} == {**known, "key": ""}:
        return "its tables were salted with another key"
    if not known:
        return "its tables keep hosts, client ids, member ids and metadata as they are"
    modes = ",".join(f"{kind.replace('_', '-')}={known[kind]}" for kind in KINDS)
    return f"its tables were begun with --privacy {modes}"
