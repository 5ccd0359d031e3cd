"""What rights cost a request: the broker's CPU with none, with 10 to 10,000 ACLs, with an audit log, with a quota.

One broker each, asked by turns. The ACLs are of topics and groups, literal and prefixed, of 50 users; the client has
three more.
"""

import asyncio
import random
from contextlib import ExitStack

from bench.broker import AT_A_TIME, GROUP, TOPIC, Wire, commit_of, joined, running_broker, used_cpu_s
from groupkeeper.protocol.framing import encode_request
from groupkeeper.protocol.messages.alter_client_quotas_request import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from groupkeeper.protocol.messages.create_acls_request import AclCreation, CreateAclsRequest
from groupkeeper.protocol.messages.heartbeat_request import HeartbeatRequest
from groupkeeper.protocol.primitives import RootMessage

REQUESTS = 10_000
ROUNDS = 5
CLIENT = "ANONYMOUS"
OWN = (f"{CLIENT} ALL CLUSTER", f"{CLIENT} ALL TOPIC {TOPIC[:5]}*", f"{CLIENT} ALL GROUP {GROUP}")
_TOPIC, _GROUP, _LITERAL, _PREFIXED, _ALLOW = 2, 3, 3, 4, 3


def acls(count: int) -> list[AclCreation]:
    rng = random.Random(1)
    return [
        AclCreation(
            rng.choice((_TOPIC, _GROUP)), f"app-{number}", rng.choice((_LITERAL, _PREFIXED)),
            f"User:u{number % 50}", "*", rng.choice((3, 4, 8)), _ALLOW,
        )
        for number in range(count)
    ]  # fmt: skip


async def cpu_us(wire: Wire, pid: int, message: RootMessage, version: int) -> float:
    frame = encode_request(1, "bench", message, version)
    before = used_cpu_s(pid)
    for _ in range(REQUESTS // AT_A_TIME):
        wire.writer.write(frame * AT_A_TIME)
        for _ in range(AT_A_TIME):
            await wire.receive()
    return (used_cpu_s(pid) - before) / REQUESTS * 1e6


async def measure(brokers: dict[str, tuple[str, int]], acls_of: dict[str, int]) -> None:
    members = {name: await joined(address, GROUP) for name, (address, _) in brokers.items()}
    for name, count in acls_of.items():
        for begin in range(0, count, 1000):
            await members[name][0].call(CreateAclsRequest(acls(count)[begin : begin + 1000]), 3)
    quota = EntryData([EntityData("user", CLIENT)], [OpData("request_percentage", 1e9, False)])
    await members["a quota"][0].call(AlterClientQuotasRequest([quota], False), 1)
    for title, version in (("Heartbeat", 4), ("OffsetCommit", 8)):
        best = dict.fromkeys(brokers, float("inf"))
        for _ in range(ROUNDS):
            for name, (wire, generation, member) in members.items():
                asked = HeartbeatRequest(GROUP, generation, member)
                message = asked if title == "Heartbeat" else commit_of(GROUP, generation, member)
                best[name] = min(best[name], await cpu_us(wire, brokers[name][1], message, version))
        for name, found in best.items():
            print(f"{title:12} {name:28} {found:5.1f} µs, {found - best['no rights asked']:+.1f}", flush=True)
    for wire, _, _ in members.values():
        wire.writer.close()


def main() -> None:
    own = [option for line in OWN for option in ("--add-acl", line)]
    options: dict[str, list[str]] = {"no rights asked": []}
    options |= {f"{count:,} ACLs": own for count in (10, 1_000, 10_000)}
    options["1,000 ACLs and an audit log"] = [*own, "--property", "groupkeeper.audit.file=/dev/null"]
    options["a quota"] = []
    acls_of = {name: int(name.split()[0].replace(",", "")) for name in options if "ACLs" in name}
    with ExitStack() as opened:
        brokers = {name: opened.enter_context(running_broker(*given)) for name, given in options.items()}
        asyncio.run(measure(brokers, acls_of))
