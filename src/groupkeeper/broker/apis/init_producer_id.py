"""InitProducerId (22) of idempotent producers."""

from __future__ import annotations

from groupkeeper.protocol.errors import InvalidRequest, UnsupportedVersion
from groupkeeper.protocol.messages.init_producer_id_request import InitProducerIdRequest
from groupkeeper.protocol.messages.init_producer_id_response import InitProducerIdResponse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from groupkeeper.broker.broker import Broker
    from groupkeeper.broker.call import Call
    from groupkeeper.protocol.primitives import RootMessage

KEY = 22
VERSIONS = (0, 5)


async def handle(broker: Broker, call: Call) -> RootMessage:
    request = call.message
    assert isinstance(request, InitProducerIdRequest)
    if request.transactional_id is not None:
        # An empty id is a mistake; any other asks for transactions, which no coordinator here serves.
        return _refused(InvalidRequest.code if not request.transactional_id else UnsupportedVersion.code)
    if (request.producer_id < 0) != (request.producer_epoch < 0):
        return _refused(InvalidRequest.code)
    return InitProducerIdResponse(producer_id=broker.new_producer_id(), producer_epoch=0)


def _refused(code: int) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_id=-1, producer_epoch=-1)
