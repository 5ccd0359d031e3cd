"""Commit the changes of a plan, journalled before and after. All resets, plans and undos end here."""

from __future__ import annotations

import asyncio
import getpass
import re
import secrets
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import NamedTuple, TypeVar

from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import Batch, Failure, OffsetAndMetadata, TopicPartition
from groupkeeper.client.errors import CallTimedOut, ClientError, ConnectionFailed
from groupkeeper.operations.plans.changes import ApplyResult, Head, Lost, Pair
from groupkeeper.operations.plans.journal import ChangeJournal, JournalUnwritable
from groupkeeper.operations.plans.model import Change, GroupPlan, Kind, Plan
from groupkeeper.operations.problems import error_name
from groupkeeper.protocol.errors import KafkaError, RequestTimedOut

T = TypeVar("T")
V = TypeVar("V")
Outcome = Batch[TopicPartition, None]

_SECRET = re.compile(r"password|passwd|secret|token|credential|jaas", re.IGNORECASE)
HIDDEN = "***"

UNANSWERED = (CallTimedOut, ConnectionFailed, RequestTimedOut)
"""Failures after which it is unknown whether the brokers made the change."""

_GROUPS_PER_CALL = 1000
_SIGNS_PER_CLAIM = 5


class BegunPart(NamedTuple):
    """A part of a change in the journal, with its number of groups."""

    id: str
    groups: int


class Recorder:
    """Journals what one command does: one change, in as many parts as it has.

    `on_failure` is called, once, when the journal cannot be written, and the command continues without it; None: then
    `begin` raises JournalUnwritable, and the command must stop. `command` are its words, as they were given.
    `made_by`: the user of a server that makes the change; None: the user who runs the program. `through`: that
    server.

    Attributes:
        failure: why an outcome could not be written, "" when all were: then the change looks unfinished.
    """

    def __init__(
        self,
        journal: ChangeJournal,
        command: Sequence[str],
        on_failure: Callable[[str], None] | None,
        *,
        made_by: str | None = None,
        through: str = "",
    ) -> None:
        self.journal = journal
        self.command = without_secrets(command)
        self.failure = ""
        self._made_by = made_by
        self._through = through
        self._on_failure = on_failure
        self._is_off = False
        self._has_begun = False
        self._id = ""

    @property
    def id(self) -> str:
        """The id of the change in the journal, "" before its beginning is written, and when nothing is written."""
        return self._id if self._has_begun and not self._is_off else ""

    def begin(self, plan: Plan, principal: str) -> BegunPart | None:
        """Journals the coming changes, and their author; None: the journal cannot be written. Raises BeingUndone."""
        if self._is_off:
            return None
        now_ms = time.time_ns() // 10**6
        self._id = self._id or new_id(now_ms)
        head = Head(
            self._id,
            now_ms,
            plan.cluster_id,
            plan.kind,
            user() if self._made_by is None else self._made_by,
            socket.gethostname(),
            self.command,
            plan.undoes,
            principal,
            self._through,
            plan.kind.subject,
        )
        try:
            self.journal.begin(head, ((group.group_id, _pairs(group)) for group in plan.groups))
        except JournalUnwritable as problem:
            if self._on_failure is None:
                raise
            self._is_off = True
            self._on_failure(str(problem))
            return None
        self._has_begun = True
        return BegunPart(head.id, len(plan.groups))

    def settle(self, plan: Plan, principal: str) -> None:
        """Journals that nothing had to be changed. Raises as `begin`."""
        groups = tuple(group._replace(changes={}) for group in plan.groups)
        self.end(self.begin(plan._replace(groups=groups), principal), ApplyResult.APPLIED)

    def end(self, begun: BegunPart | None, result: ApplyResult, lost: Iterable[Lost] = ()) -> None:
        """Journals the outcome. Does nothing if `begin` could not write; never raises."""
        if begun is None:
            return
        try:
            self.journal.end(begun.id, time.time_ns() // 10**6, begun.groups, result, lost)
        except JournalUnwritable as problem:
            self.failure = str(problem)


async def begin_part(admin: Admin, recorder: Recorder | None, plan: Plan) -> BegunPart | None:
    """As `Recorder.begin`, beside the loop; None also without a recorder."""
    return None if recorder is None else await asyncio.to_thread(recorder.begin, plan, admin.principal)


async def end_part(recorder: Recorder | None, begun: BegunPart | None, outcome: Batch[str, Outcome]) -> None:
    """As `Recorder.end`, beside the loop."""
    if recorder is not None and begun is not None:
        await asyncio.to_thread(recorder.end, begun, *judged(outcome))


@asynccontextmanager
async def _claimed(recorder: Recorder | None, begun: BegunPart | None, plan: Plan) -> AsyncIterator[None]:
    """Keeps others from undoing the same change until the block ends."""
    claim_ms = None if recorder is None or plan.undoes is None else recorder.journal.claim_ms
    if recorder is None or begun is None or claim_ms is None:
        yield
        return
    journal, pause_s = recorder.journal, claim_ms / 1000 / _SIGNS_PER_CLAIM

    async def renew() -> None:
        while True:
            await asyncio.sleep(pause_s)
            with suppress(JournalUnwritable):  # the next one may be written in time
                await asyncio.to_thread(journal.keep_claim, begun.id)

    renewing = asyncio.create_task(renew())
    try:
        yield
    finally:
        renewing.cancel()
        await asyncio.gather(renewing, return_exceptions=True)


async def commit(
    admin: Admin, plan: Plan, recorder: Recorder | None, *, tell: Callable[[int], None] | None = None
) -> Batch[str, Outcome]:
    """Commits and deletes by the plan, without any check. `recorder` None: unjournalled.

    A partition that the coordinator refuses is in its group's `failed`. `tell` is called with the number of answers
    so far: one for each group, two for one with commits and deletions. Raises JournalUnwritable, and then nothing is
    changed. If cancelled, the journal has no outcome: brokers may still do the rest.
    """
    begun = await begin_part(admin, recorder, plan)
    answers = 0

    def count() -> None:
        nonlocal answers
        answers += 1
        if tell is not None:
            tell(answers)

    offsets = {group.group_id: wanted for group in plan.groups if (wanted := group.offsets)}
    async with _claimed(recorder, begun, plan):
        outcome = await _answered(offsets, lambda some: admin.alter_offsets_of_groups(some, tell=count))
        deleted = {
            group.group_id: unwanted
            for group in plan.groups
            if group.group_id not in outcome.failed and (unwanted := group.deleted)
        }
        more = await _answered(deleted, lambda some: admin.delete_offsets_of_groups(some, tell=count))
        _merge(outcome, more)
    await end_part(recorder, begun, outcome)
    return outcome


async def _answered(
    by_group: Mapping[str, V], ask: Callable[[Mapping[str, V]], Awaitable[Batch[str, T]]]
) -> Batch[str, T]:
    """The answers to calls about a few groups each, as a call has a time limit, for however many groups.

    When a call reaches no broker, its failure applies to all remaining groups.
    """
    answers: Batch[str, T] = Batch()
    group_ids = list(by_group)
    for start in range(0, len(group_ids), _GROUPS_PER_CALL):
        some = group_ids[start : start + _GROUPS_PER_CALL]
        try:
            batch = await ask({group_id: by_group[group_id] for group_id in some})
        except (KafkaError, ClientError) as failure:
            answers.failed.update(dict.fromkeys(group_ids[start:], failure))
            break
        answers.done.update(batch.done)
        answers.failed.update(batch.failed)
        late = next((why for why in batch.failed.values() if isinstance(why, CallTimedOut)), None)
        if late is not None and not batch.done:
            answers.failed.update(dict.fromkeys(group_ids[start + len(some) :], late))
            break
    return answers


async def cluster_id_of(admin: Admin) -> str | None:
    """The cluster's id, None when the brokers don't tell. Raises ClientError when the brokers don't reply."""
    try:
        return (await admin.describe_cluster()).cluster_id
    except KafkaError:
        return None


async def known_cluster_id(admin: Admin) -> str | None:
    """The cluster's id for the journal of an operation that doesn't need it, None when it cannot be fetched."""
    try:
        return await cluster_id_of(admin)
    except ClientError:
        return None


def judged(outcome: Batch[str, Outcome]) -> tuple[ApplyResult, list[Lost]]:
    """An outcome's result for the journal, and its failures. A group that is done without partitions was deleted."""
    lost = [_lost(group_id, None, failure) for group_id, failure in outcome.failed.items()]
    done = 0
    for group_id, batch in outcome.done.items():
        done += len(batch.done) or not batch.failed
        lost += (_lost(group_id, tp, failure) for tp, failure in batch.failed.items())
    if not lost:
        return ApplyResult.APPLIED, []
    failures = (*outcome.failed.values(), *(why for batch in outcome.done.values() for why in batch.failed.values()))
    may_be_done = done > 0 or any(isinstance(failure, UNANSWERED) for failure in failures)
    return (ApplyResult.PARTLY if may_be_done else ApplyResult.REFUSED), lost


def _lost(group_id: str, tp: TopicPartition | None, failure: Failure) -> Lost:
    topic, partition = tp or (None, None)
    return Lost(group_id, topic, partition, error_name(failure), str(failure))


def _merge(outcome: Batch[str, Outcome], more: Batch[str, Outcome]) -> None:
    """Add the outcome of a second request; a group that failed as a whole in one of them has failed."""
    for group_id, batch in more.done.items():
        known = outcome.done.setdefault(group_id, Batch())
        known.done.update(batch.done)
        known.failed.update(batch.failed)
    outcome.failed.update(more.failed)


def _pairs(group: GroupPlan) -> dict[TopicPartition, Pair]:
    return {tp: (change.before, change.after) for tp, change in group.changes.items()}


async def begin_deletion(
    admin: Admin,
    recorder: Recorder,
    committed: Mapping[str, Mapping[TopicPartition, OffsetAndMetadata | None]],
    kind: Kind,
) -> BegunPart | None:
    """Journals a coming deletion of committed offsets. Nothing is written if there are none."""
    groups = tuple(
        GroupPlan(group_id, {tp: Change(commit, None) for tp, commit in offsets.items() if commit is not None})
        for group_id, offsets in committed.items()
    )
    if not any(group.changes for group in groups):
        return None
    return await begin_part(admin, recorder, Plan(await known_cluster_id(admin), groups, kind))


async def committed_now(
    admin: Admin, wanted: Mapping[str, Collection[TopicPartition] | None]
) -> dict[str, dict[TopicPartition, OffsetAndMetadata | None]]:
    """The committed offsets, as far as they can be fetched, for the journal of an operation that doesn't need them
    itself.
    """
    outcome = await _answered(wanted, lambda some: admin.list_consumer_group_offsets(some))
    return {group_id: batch.done for group_id, batch in outcome.done.items()}


def new_id(now_ms: int) -> str:
    """The id of a change: its time, so that ids sort by it, and two bytes of chance."""
    stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime(now_ms / 1000))
    return f"{stamp}-{secrets.token_hex(2)}"


def user() -> str:
    """The system's name of the user who runs the command; "" when there is none."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""


def without_secrets(words: Sequence[str]) -> tuple[str, ...]:
    """The words of a command with what may be a secret hidden: the value of each option and property with a name for a
    secret.
    """
    kept: list[str] = []
    hides_next = False
    for word in words:
        name, equals, _ = word.partition("=")
        if hides_next and not word.startswith("--"):
            kept.append(HIDDEN)
            hides_next = False
        elif _SECRET.search(name) and equals:
            kept.append(f"{name}={HIDDEN}")
        else:
            kept.append(word if not equals or not _SECRET.search(word) else f"{name}={HIDDEN}")
            hides_next = bool(word.startswith("-") and not equals and _SECRET.search(name))
    return tuple(kept)
