"""Request frames, read whole: the broker reads the header first, and the body where it is needed."""

from groupkeeper.protocol.codec import decode
from groupkeeper.protocol.framing import decode_request_header, request_class
from groupkeeper.protocol.messages.request_header import RequestHeader
from groupkeeper.protocol.primitives import RootMessage


def decode_request(frame: bytes) -> tuple[RequestHeader, RootMessage]:
    """Header and body of a frame without its size."""
    header, pos = decode_request_header(frame)
    return header, decode(request_class(header.request_api_key), frame, header.request_api_version, pos)
