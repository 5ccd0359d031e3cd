"""Requests and responses as frames, and errors as exceptions."""

import pytest
from tests.unit.protocol.frames import decode_request

from groupkeeper.protocol import errors
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.codec import MalformedMessage, UnsupportedMessageVersion
from groupkeeper.protocol.framing import (
    api_name,
    decode_request_header,
    decode_response,
    encode_request,
    encode_response,
    request_class,
    response_class,
)
from groupkeeper.protocol.index import APIS


def test_a_request_in_the_old_form() -> None:  # GW-01
    frame = encode_request(7, "me", m.HeartbeatRequest("g", 3, "m"), 0)
    assert frame == b"\0\0\0\x16" + b"\0\x0c\0\0\0\0\0\7\0\2me" + b"\0\1g\0\0\0\3\0\1m"
    header, message = decode_request(frame[4:])
    assert (header.request_api_key, header.request_api_version, header.correlation_id) == (12, 0, 7)
    assert header.client_id == "me"
    assert message == m.HeartbeatRequest("g", 3, "m")


def test_a_flexible_request_keeps_the_old_form_of_the_client_id() -> None:  # GW-01
    frame = encode_request(7, None, m.HeartbeatRequest("g", 3, "m"), 4)
    assert frame[4:] == b"\0\x0c\0\4\0\0\0\7\xff\xff\0" + b"\2g\0\0\0\3\2m\0\0"
    assert decode_request(frame[4:])[0].client_id is None


def test_responses() -> None:  # GW-01
    assert encode_response(7, m.HeartbeatResponse(0, 25), 0) == b"\0\0\0\6\0\0\0\7\0\x19"
    flexible = encode_response(7, m.HeartbeatResponse(5, 25), 4)
    assert flexible[4:] == b"\0\0\0\7\0" + b"\0\0\0\5\0\x19\0"
    assert decode_response(m.HeartbeatResponse, flexible[4:], 4) == (7, m.HeartbeatResponse(5, 25))


def test_answers_to_api_versions_never_have_tags_in_the_header() -> None:  # GW-01, GW-04
    frame = encode_response(7, m.ApiVersionsResponse(35), 3)
    assert frame[4:10] == b"\0\0\0\7\0\x23"
    assert decode_response(m.ApiVersionsResponse, frame[4:], 3) == (7, m.ApiVersionsResponse(35))


@pytest.mark.parametrize("key", APIS)
def test_every_api_has_its_classes(key: int) -> None:
    name, low, high, _ = APIS[key]
    for cls in (request_class(key), response_class(key)):
        assert key == cls.API_KEY
        assert cls.__name__.startswith(name)
        assert (cls.MIN_VERSION, min(cls.MAX_VERSION, high)) == (low, high)


def test_the_header_of_an_unknown_version_is_still_read() -> None:  # GW-04
    frame = bytearray(encode_request(9, "new", m.ApiVersionsRequest(), 4)[4:])
    frame[2:4] = b"\0\x63"
    header, _ = decode_request_header(bytes(frame))
    assert (header.request_api_version, header.correlation_id, header.client_id) == (99, 9, "new")
    with pytest.raises(UnsupportedMessageVersion):
        decode_request(bytes(frame))


def test_malformed_frames() -> None:
    frame = encode_request(7, "me", m.HeartbeatRequest("g", 3, "m"), 4)[4:]
    for end in range(len(frame)):
        with pytest.raises(MalformedMessage):
            decode_request(frame[:end])
    with pytest.raises(MalformedMessage, match="1 bytes behind"):
        decode_request(frame + b"\0")
    with pytest.raises(UnsupportedMessageVersion, match="12345"):
        decode_request(b"\x30\x39" + frame[2:])
    assert api_name(12345) == "12345"


def test_a_header_with_more_tags_than_any_message_has_is_refused_at_once() -> None:
    frame = encode_request(7, "me", m.HeartbeatRequest("g", 3, "m"), 4)[4:]
    tags_at = frame.index(b"me") + 2
    for count, is_read in ((1000, True), (1001, False)):
        tags = bytes((count % 128 + 128, count // 128)) + b"\0\0" * count
        many = frame[:tags_at] + tags + frame[tags_at + 1 :]
        if is_read:
            assert decode_request(many)[1] == m.HeartbeatRequest("g", 3, "m")
        else:
            with pytest.raises(MalformedMessage, match="1001 tagged fields"):
                decode_request_header(many)


def test_errors_are_values() -> None:  # GW-07
    error = errors.error_for(25)
    assert isinstance(error, errors.UnknownMemberId)
    assert (error.code, error.name, error.message) == (25, "UNKNOWN_MEMBER_ID", error.text)
    assert error == errors.UnknownMemberId()
    assert error != errors.UnknownMemberId("another text")
    assert str(errors.error_for(25, "why")) == "why"
    assert errors.code_of(None) == errors.NONE == 0


def test_unknown_error_codes_survive() -> None:  # GW-07
    error = errors.error_for(4711, "from the future")
    assert (error.code, error.name, error.retriable) == (4711, "UNKNOWN_CODE_4711", False)
    assert errors.error_for(4711, "from the future") == error
    assert errors.code_of(error) == 4711
