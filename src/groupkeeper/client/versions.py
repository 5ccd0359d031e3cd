"""Versions of requests: which ones a broker supports (ApiVersions), and the highest that both sides support."""

from __future__ import annotations

from collections.abc import Mapping

from groupkeeper.client.connection import Connection
from groupkeeper.client.errors import NotABroker, UnexpectedResponse, UnsupportedVersion
from groupkeeper.protocol.codec import MalformedMessage
from groupkeeper.protocol.framing import api_name, decode_response
from groupkeeper.protocol.messages import ApiVersionsRequest, ApiVersionsResponse
from groupkeeper.protocol.primitives import RootMessage

SOFTWARE_NAME = "groupkeeper"
SOFTWARE_VERSION = "0.1.0"

_UNSUPPORTED_VERSION = 35
_METADATA = 3

BELOW_NEWEST = {0: 12, 1: 12, 8: 9, 9: 9}
"""The highest version that the client uses of an API, by key, where messages have newer ones: Produce, Fetch,
OffsetCommit and OffsetFetch name topics by id from the next version on, and the client knows names.
"""

_RELEASES = {
    27: "2.8",
    29: "2.0",
    30: "2.0",
    31: "2.0",
    35: "2.0",
    44: "2.3",
    48: "2.6",
    49: "2.6",
    50: "2.7",
    51: "2.7",
    61: "2.8",
    65: "3.0",
    66: "3.0",
}
"""The first Kafka release with an API version that the client supports, for APIs without an official tool's text."""

Versions = Mapping[int, tuple[int, int]]
"""The lowest and the highest version that a broker supports, by API key."""


def version_of(message_type: type[RootMessage], versions: Versions) -> int:
    """The highest version of an API that both sides support; raises UnsupportedVersion."""
    first, last = _ours(message_type)
    theirs = versions.get(message_type.API_KEY)
    if theirs is None or not max(first, theirs[0]) <= (version := min(last, theirs[1])):
        raise unsupported(message_type, versions)
    return version


def unsupported(message_type: type[RootMessage], versions: Versions, least: int = 0) -> UnsupportedVersion:
    """The error for an API that the broker lacks, or supports only in versions before `least`."""
    key = message_type.API_KEY
    first, last = _ours(message_type)
    theirs = versions.get(key)
    since = f". Kafka has it from {_RELEASES[key]} on." if key in _RELEASES else ""
    if theirs is None:
        kind = NotABroker if key == _METADATA else UnsupportedVersion
        return kind(f"The node does not support {_constant(key)}{since}")
    return UnsupportedVersion(
        f"The node does not support {_constant(key)} with version in range [{max(first, least)},{last}]. "
        f"The supported range is [{theirs[0]},{theirs[1]}]{since or '.'}"
    )


def _ours(message_type: type[RootMessage]) -> tuple[int, int]:
    return message_type.MIN_VERSION, BELOW_NEWEST.get(message_type.API_KEY, message_type.MAX_VERSION)


def _constant(key: int) -> str:
    """The name of an API in Apache's texts: OFFSET_DELETE."""
    return "".join(f"_{sign}" if sign.isupper() else sign.upper() for sign in api_name(key)).lstrip("_")


async def ask_versions(connection: Connection, highest: int, timeout_s: float) -> dict[int, tuple[int, int]]:
    """The versions that the broker advertises, by API key (KIP-511: an error 35 response has the form of version 0)."""
    version = highest
    while True:
        request = ApiVersionsRequest(SOFTWARE_NAME, SOFTWARE_VERSION) if version >= 3 else ApiVersionsRequest()
        frame = await connection.exchange(request, version, timeout_s)
        error_code = int.from_bytes(frame[4:6], "big", signed=True)
        is_refused = error_code == _UNSUPPORTED_VERSION
        try:
            _, response = decode_response(ApiVersionsResponse, frame, 0 if is_refused else version)
        except MalformedMessage as error:
            if not (is_refused and version):
                raise UnexpectedResponse(f"{connection.address}: malformed reply: {error}") from error
            response = ApiVersionsResponse()
        versions = {entry.api_key: (entry.min_version, entry.max_version) for entry in response.api_keys}
        if error_code == 0:
            return versions
        if not is_refused or version == 0:
            raise UnexpectedResponse(f"{connection.address}: the reply to ApiVersions has error {error_code}")
        # Since 2.4 the error response has the highest version that the broker supports; before, version 0 always works.
        version = min(version - 1, versions.get(ApiVersionsRequest.API_KEY, (0, 0))[1])
