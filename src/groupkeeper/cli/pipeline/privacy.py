"""The arguments about personal data in the tables."""

from __future__ import annotations

import json
from argparse import ArgumentTypeError, Namespace
from pathlib import Path

from groupkeeper.cli.framework.commands import ArgumentParser

_KINDS = ("hosts", "client-ids", "member-ids", "metadata")
_MODES = ("keep", "drop", "salt")


def add_privacy(parser: ArgumentParser) -> None:
    """Adds the arguments for the choice, and the key for it."""
    parser.add_argument(
        "--privacy", type=_modes, metavar="KIND=MODE[,...]", default={},
        help="how the tables store hosts, client-ids, member-ids and metadata (of commits): keep, drop, or salt "
        "(replace by a digest, the same for the same text); the first run that writes to DIR sets it; default: keep",
    )  # fmt: skip
    add_privacy_key(parser)


def add_privacy_key(parser: ArgumentParser) -> None:
    """Adds the argument for the key, for commands that add to existing tables."""
    parser.add_argument(
        "--privacy-key", type=_key, metavar="FILE",
        help="a file with the key of salted values, at least 16 bytes; blanks around the key are ignored",
    )  # fmt: skip


def _modes(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for part in text.split(","):
        kind, _, mode = part.strip().partition("=")
        if kind not in _KINDS or mode not in _MODES:
            raise ArgumentTypeError(
                f"{part!r}: expected KIND=MODE, of {', '.join(_KINDS)} and {', '.join(_MODES)}, for example hosts=drop"
            )
        if kind in found:
            raise ArgumentTypeError(f"{kind} is given twice")
        found[kind] = mode
    return found


def _key(path: str) -> bytes:
    try:
        return Path(path).read_bytes().strip()
    except OSError as error:
        raise ArgumentTypeError(f"cannot read {path!r}: {error.strerror}") from None


def privacy_of(options: Namespace) -> dict[str, str]:
    """The source's options about privacy; none if nothing is chosen."""
    found = {}
    if modes := getattr(options, "privacy", {}):
        found["privacy"] = json.dumps({kind.replace("-", "_"): mode for kind, mode in modes.items()})
    if (key := getattr(options, "privacy_key", None)) is not None:
        found["privacySecret"] = key.hex()
    return found
