"""The API's types, from which the OpenAPI document is made.

Fields with the names of columns of `--output json` have the same meaning (docs/cli.md). Times are text in UTC,
`_ms` are milliseconds, and null is unknown.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from groupkeeper.web.changes.change_request import Deed, Form

To = Literal["earliest", "latest", "current", "time", "ago", "offset", "shift"]


class Document(BaseModel):
    """A document, which refuses unknown fields."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)


class Acl(Document):
    """An ACL that is missing."""

    operation: str
    resource_type: str
    name: str | None


class ProblemRow(Document):
    """A problem in reading or doing something."""

    error: str
    """Kafka's name of the error, or the client's."""
    message: str
    group: str | None = None
    topic: str | None = None
    partition: int | None = None
    broker: int | None = None
    acl: Acl | None = None
    cluster: str | None = None


class ProblemDetail(Document):
    """Why a request is not answered, by RFC 9457."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    """The reason, with the name of its subject."""
    about: str
    """cluster, group, topic, plan, change, journal, server, login, role or request."""
    help: str
    """Advice: what to do instead."""
    problems: list[ProblemRow] = []


class ClusterRow(Document):
    """A cluster. The sums are those of the groups that you may see, at the last poll that succeeded."""

    cluster: str
    cluster_id: str | None
    state: Literal["up", "down", "not polled yet"]
    measured: str | None
    """When it was measured; of a cluster that is down: when it was last up."""
    groups: int
    left_out: int
    """Groups that the options of the server leave out."""
    statuses: dict[str, int]
    """How many groups have each status."""
    members: int | None
    lag: int | None
    lost: int | None
    time_lag_ms: int | None
    retention_margin_ms: int | None
    problems: list[ProblemRow]


class ClusterList(Document):
    clusters: list[ClusterRow]


class MeasuredList(Document):
    """A page of a list. `next`: the cursor of the page that follows; null: this is the last one."""

    measured: str
    """When the cluster was polled."""
    is_old: bool
    """Whether later polls failed."""
    next: str | None


class GroupRow(Document):
    """A row of `groups list --with-status` and `groups offsets --sum group`, with values that need repeated polls."""

    cluster: str
    group: str
    type: str | None
    state: str | None
    group_status: str
    reason: str | None
    not_judged: str | None
    urgency: str
    """Urgency, most urgent first: `expiring`, `standing`, `behind`, `storm`, `rest`; or `left` by its members, or
    `none`.
    """
    members: int | None
    partitions: int
    uncommitted_partitions: int
    unknown: int
    lag: int | None
    max_lag: int | None
    lost: int | None
    uncommitted: int | None
    readable: int | None
    lag_change_per_s: float | None
    """Offsets per second over the last polls; negative: it catches up."""
    catch_up_ms: int | None
    time_lag_ms: int | None
    """How long the oldest record that waits has waited."""
    retention_margin_ms: int | None
    """Time until the oldest record that waits may be removed; negative: it is overdue."""
    commits_still_ms: int | None
    """For how long nothing was committed; null: no commit was seen since the server began, and it is not known."""
    rebalances: int
    """The number of rebalances seen since the server started."""
    unread: list[str]
    """Topics that no member reads."""
    alerts: list[str]
    """Rules with a firing alert."""
    problems: list[ProblemRow]


class GroupList(MeasuredList):
    groups: list[GroupRow]


class GroupDetail(GroupRow):
    """A group with the values of `groups describe --view state`."""

    measured: str
    is_old: bool
    assignor: str | None = None
    coordinator: str | None = None
    group_epoch: int | None = None
    target_epoch: int | None = None
    dead_letter_queue: str | None = None
    dead_letters: int | None = None


class OffsetRow(Document):
    """A row of `groups offsets`, with the status of the partition."""

    group: str
    topic: str
    partition: int
    committed_offset: int | None
    log_start_offset: int | None
    log_end_offset: int | None
    last_stable_offset: int | None
    lag: int | None
    done_ahead: int | None
    lost: int | None
    status: str
    member_id: str | None
    client_id: str | None
    host: str | None
    leader_epoch: int | None
    metadata: str | None
    readable: int | None
    time_lag_ms: int | None
    retention_margin_ms: int | None
    partition_status: str
    partition_reason: str | None


class OffsetList(MeasuredList):
    offsets: list[OffsetRow]


class TopicAndPartition(Document):
    topic: str
    partition: int


class MemberRow(Document):
    """A row of `groups members`. At most 200 partitions of each assignment are listed; `partitions` counts all."""

    group: str
    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    epoch: int | None
    partitions: int | None
    assignment: list[TopicAndPartition] | None
    target_assignment: list[TopicAndPartition] | None
    rack_id: str | None
    upgraded: bool | None


class MemberList(MeasuredList):
    members: list[MemberRow]


class TopicRow(Document):
    """A topic by the groups that have offsets of it, or members that read it."""

    topic: str
    partitions: int
    groups: int
    active_groups: int
    lag: int | None
    """The largest of a group."""
    time_lag_ms: int | None
    retention_margin_ms: int | None
    lost: int | None


class TopicList(MeasuredList):
    topics: list[TopicRow]


class AlertRow(Document):
    """An alert that fires. `group` null: it is of the whole cluster. `since`: when the limit was broken first.
    `texts`: the exceeded limits. `silenced`: no notice of it is sent now.
    """

    rule: str
    cluster: str
    group: str | None
    severity: str
    owner: str | None
    since: str
    texts: list[str]
    silenced: bool


class AlertList(Document):
    alerts: list[AlertRow]
    next: str | None


class HistoryRow(Document):
    """A change of the journal, as `history`."""

    id: str
    time: str
    user: str
    host: str
    principal: str | None
    cluster_id: str | None
    kind: str
    groups: int
    partitions: int
    names: str
    result: str
    undone_by: str | None
    command: str
    cluster: str | None


class HistoryList(Document):
    """Changes, the latest first. `problem`: why the journal cannot be read now, if so."""

    changes: list[HistoryRow]
    problem: str | None
    next: str | None


class RecordedRow(Document):
    """A row of `history ID`."""

    group: str | None
    transaction: str | None
    topic: str
    partition: int
    before: int | None
    after: int | None
    error: str | None


class RecordedDetail(Document):
    """A change with a page of its partitions."""

    id: str
    time: str
    user: str
    kind: str
    result: str
    undoes: str | None
    command: str
    cluster: str | None
    undo_on: str | None
    """The cluster on which you can undo it; null: you cannot."""
    changes: list[RecordedRow]
    next: str | None


class PlannedRow(Document):
    """A row of `plan reset`; `result`: the outcome of the change."""

    group: str
    topic: str
    partition: int
    before: int | None
    after: int | None
    skipped: int | None
    replayed: int | None
    before_time: str | None
    after_time: str | None
    log_start_offset: int | None
    log_end_offset: int | None
    state: str | None
    certainty: str | None
    why: str
    result: str | None


class PlanHead(Document):
    """A plan on the server: nothing is changed before it is applied."""

    id: str
    cluster: str
    kind: str
    made_by: str
    made: str
    compared: str
    stage: Literal["planned", "being applied", "applied"]
    can_be_applied: bool
    groups: int
    names: list[str]
    """The first 20 groups."""
    outcome: str
    """The state of the plan, in a sentence."""
    change_id: str | None
    """The id of the change in the journal, once the plan was applied: to undo it."""
    applied_by: str | None


class PlanDetail(PlanHead):
    """A plan with a page of its partitions."""

    command: str
    """The command that does the same in a shell."""
    notes: list[str]
    problems: list[ProblemRow]
    """The first 50."""
    changes: list[PlannedRow]
    next: str | None


class PlanList(Document):
    plans: list[PlanHead]
    next: str | None


class PlanRequest(Document):
    """A change of a group to be planned; the fields are those of the page on which a group is changed."""

    cluster: str
    group: str
    deed: Deed = Deed.RESET
    to: To | None = None
    """The target of a reset; `time`, `ago`, `offset` and `shift` need the field of that name."""
    time: str | None = None
    """`2026-01-31T23:59:59`, in UTC."""
    ago: str | None = None
    """`1h`, `7d`"""
    offset: int | None = None
    shift: int | None = None
    topics: list[str] = Field(default=[], max_length=1000)
    """`orders`, or `orders:0,1`; none: every partition with a committed offset."""
    if_no_record: Literal["end", "skip", "fail"] = "end"
    if_out_of_range: Literal["clamp", "skip", "fail"] = "clamp"
    to_cluster: str | None = None
    to_group: str | None = None
    prefix: str | None = None
    """For a clone: the prefix of its topics' names in the other cluster."""

    def form(self) -> Form:
        """The same as the fields of a page."""
        given = self.model_dump(exclude_none=True, exclude={"topics"}, mode="json")
        fields = {name.replace("_", "-"): [str(value)] for name, value in given.items()}
        return {**fields, "scope": ["some" if self.topics else "all"], "topic": self.topics}


class SweepRequest(Document):
    """A sweep of a cluster: offsets to delete or keep; at least one of the last three fields."""

    cluster: str
    groups: str | None = None
    """A name or a glob; null: all groups that you may change."""
    idle: str | None = None
    """Delete the offsets of groups without members that have not committed for so long: `30d`"""
    missing_topics: bool = False
    """Delete offsets of topics and partitions that don't exist."""
    expiring: str | None = None
    """Commit again the offsets that the brokers would remove within: `2d`"""

    def form(self) -> Form:
        """The same as the fields of a page."""
        given = {"cluster": self.cluster, "groups": self.groups, "idle": self.idle, "expiring": self.expiring}
        given["missing"] = "1" if self.missing_topics else None
        return {name: [value] for name, value in given.items() if value is not None}


class ApplyRequest(Document):
    confirm: int | None = None
    """The number of groups: needed where a plan changes several, compared whenever it is given."""


class UndoRequest(Document):
    cluster: str
