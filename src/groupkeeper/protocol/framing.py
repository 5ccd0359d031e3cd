"""Requests and responses as frames: size, header, body."""

from __future__ import annotations

from struct import Struct
from struct import error as struct_error
from typing import Final, TypeVar

from groupkeeper.protocol.codec import MalformedMessage, UnsupportedMessageVersion, decode, decode_prefix, encode_into
from groupkeeper.protocol.index import APIS, MODULES
from groupkeeper.protocol.messages import RequestHeader, ResponseHeader
from groupkeeper.protocol.primitives import RootMessage, skip_tags

M = TypeVar("M", bound=RootMessage)

_SIZE: Final = Struct(">i")
_HEADER_START: Final = Struct(">hhih")
"""API key, version, correlation id, length of the client id: the same in both versions of the header."""
_CLIENT_ID_AT: Final = _HEADER_START.size
_RESPONSE_START: Final = Struct(">ii")
API_VERSIONS: Final = 18

_classes: dict[str, type[RootMessage]] = {}


def message_class(name: str) -> type[RootMessage]:
    """The generated class of that name, imported on first use."""
    found = _classes.get(name)
    if found is None:
        module = __import__(f"groupkeeper.protocol.messages.{MODULES[name]}", fromlist=[name])
        found = _classes[name] = getattr(module, name)
    return found


def request_class(api_key: int) -> type[RootMessage]:
    """Request class of an API key. Raises KeyError for an unknown key."""
    return message_class(f"{APIS[api_key][0]}Request")


def response_class(api_key: int) -> type[RootMessage]:
    """Response class of an API key. Raises KeyError for an unknown key."""
    return message_class(f"{APIS[api_key][0]}Response")


def api_name(api_key: int) -> str:
    """Name of the API, or its number as text when it is unknown."""
    return APIS[api_key][0] if api_key in APIS else str(api_key)


def request_header_version(api_key: int, version: int) -> int:
    """2 for flexible versions, else 1."""
    return 2 if version >= APIS[api_key][3] else 1


def response_header_version(api_key: int, version: int) -> int:
    """1 for flexible versions, else 0; ApiVersions answers always have header version 0, so that any client can read
    them.
    """
    return 1 if version >= APIS[api_key][3] and api_key != API_VERSIONS else 0


def encode_request(correlation_id: int, client_id: str | None, message: RootMessage, version: int) -> bytes:
    """A whole request frame, its size included."""
    out = bytearray(4)
    header = RequestHeader(message.API_KEY, version, correlation_id, client_id)
    encode_into(out, header, request_header_version(message.API_KEY, version))
    encode_into(out, message, version)
    _SIZE.pack_into(out, 0, len(out) - 4)
    return bytes(out)


def decode_request_header(frame: bytes) -> tuple[RequestHeader, int]:
    """The header of a request frame (without its size) and where the body starts.

    Raises UnsupportedMessageVersion for an API key outside the schemas. The header version follows from key and
    version; for a version newer than the schemas the flexible header is assumed, whose client id has the same form.
    """
    # Inlined, as this runs for every request.
    try:
        api_key, version, correlation_id, size = _HEADER_START.unpack_from(frame)
        api = APIS.get(api_key)
        if api is None:
            raise UnsupportedMessageVersion(f"unknown API key {api_key}")
        if size >= 0:
            end = _CLIENT_ID_AT + size
            client_id = frame[_CLIENT_ID_AT:end].decode()
        else:
            end, client_id = _CLIENT_ID_AT, None
        if version >= api[3]:
            end = skip_tags(frame, end) if frame[end] else end + 1
    except (struct_error, IndexError, UnicodeDecodeError, MalformedMessage) as error:
        raise MalformedMessage(f"request of {len(frame)} bytes has no header: {error}") from error
    if end > len(frame) or size < -1:
        raise MalformedMessage(f"request of {len(frame)} bytes has a client id of {size} bytes")
    return RequestHeader(api_key, version, correlation_id, client_id), end


def encode_response(correlation_id: int, message: RootMessage, version: int) -> bytes:
    """A whole response frame, its size included."""
    # The header is written here: the correlation id, and no tagged fields in its version 1.
    out = bytearray(_RESPONSE_START.size)
    if version >= message.FLEXIBLE_FROM and message.API_KEY != API_VERSIONS:
        out.append(0)
    encode_into(out, message, version)
    _RESPONSE_START.pack_into(out, 0, len(out) - 4, correlation_id)
    return bytes(out)


def decode_response(cls: type[M], frame: bytes, version: int) -> tuple[int, M]:
    """Correlation id and body of a response frame (without its size)."""
    header, pos = decode_prefix(ResponseHeader, frame, response_header_version(cls.API_KEY, version))
    return header.correlation_id, decode(cls, frame, version, pos)
