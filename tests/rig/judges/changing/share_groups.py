"""A share group of the judge's own: it reads a topic, is reset from its page, and must be given what the plan said.

The groups of the story have members all the time, so that none of them can be reset. This one goes at the end.
"""

import random
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any

import confluent_kafka
from confluent_kafka import AcknowledgeType, KafkaException
from confluent_kafka.admin import AdminClient
from tests.rig.actors.performing import CLIENT, PATIENCE_S
from tests.rig.actors.sharing import begin_at_the_oldest
from tests.rig.asking import Desk, Difference, Verdict
from tests.rig.clusters import release_of
from tests.rig.facts import now
from tests.rig.judges.changing import journal
from tests.rig.judges.changing.browser import Browser, Form
from tests.rig.judges.changing.journal import Change
from tests.rig.judges.changing.reading import Place, Read, identity_in, identity_of, spoilt
from tests.rig.judges.exporter import CHANGER
from tests.rig.judges.pages import Line, Page
from tests.rig.truth import Log, Truth

NAME = "page changes"
MOST_RECORDS = 3000
SILENCE_S = 2.0
"""Who is given nothing for so long has all that there is; who was given nothing yet waits as long as others needed."""

_numbers = count(1)


def reset(desk: Desk, cluster: str, rng: random.Random, truth: Truth, verdict: Verdict) -> None:
    """Reads everything, resets to the beginning, reads it again, resets to the end, and is given nothing."""
    topics = _topics(truth, cluster)
    if release_of(cluster) < (4, 2) or not topics:
        verdict.leave(f"{NAME}: the cluster has no share groups, or no topic that is small enough")
        return
    verdict.counts["changes from pages: share reset"] += 1
    sharing = _Sharing(desk, cluster, rng.choice(topics), rng, truth, verdict)
    sharing.given(sharing.all_of_it, "at first")
    sharing.move("earliest")
    sharing.given(sharing.all_of_it, "after a reset to the earliest")
    sharing.move("latest")
    sharing.given(dict.fromkeys(sharing.logs, ()), "after a reset to the latest")
    sharing.end()


class _Sharing:
    """One share group without members, but while it reads."""

    def __init__(
        self, desk: Desk, cluster: str, topic: str, rng: random.Random, truth: Truth, verdict: Verdict
    ) -> None:  # fmt: skip
        self.desk = desk
        self.cluster = cluster
        self.topic = topic
        self.group = f"rig shares {topic} {next(_numbers)}"
        self.rng = rng
        self.verdict = verdict
        self.servers = desk.servers[cluster]
        self.logs = {(topic, partition): truth.logs[cluster, topic, partition]
                     for partition in range(truth.topics[cluster, topic].partitions)}  # fmt: skip
        self.all_of_it = {place: _all(log) for place, log in self.logs.items()}
        self.browser = Browser(desk.exporter, desk.token)
        self._joins_s = 0.0
        begin_at_the_oldest(AdminClient({"bootstrap.servers": self.servers, **CLIENT}), self.group)

    def judge(self, texts: Iterable[str], comparisons: int) -> bool:
        self.verdict.comparisons += comparisons
        wrong = [Difference(NAME, self.cluster, text, self.topic, self.group) for text in texts]
        self.verdict.differences += wrong
        return not wrong

    def seed(self, what: str, found: Iterable[str]) -> None:
        self.verdict.seeded += 1
        if not any(found):
            self.verdict.missed.append(f"{NAME}: {what}, of a share group")

    def given(self, wanted: Mapping[Place, Sequence[Read]], what: str) -> None:
        """What a member is given now."""
        found, waited_s = _take(self.servers, self.group, self.topic, wanted, 1.5 * self._joins_s + SILENCE_S)
        self._joins_s = max(self._joins_s, waited_s)
        if self.judge(_wrong(found, wanted, what), sum(map(len, wanted.values())) + 1):
            place = self.rng.choice(sorted(wanted))
            for defect, worse in spoilt(found.get(place, []), self.rng.randrange):
                self.seed(defect, _wrong({**found, place: worse}, wanted, what))

    def move(self, to: str) -> None:
        """Plans and applies a reset on the group's page, once its member has left."""
        named = {"cluster": self.cluster, "group": self.group}
        self.browser.wait_for("/group", "<dd>Empty</dd>", **named)
        form = Form(self.browser.wait_for("/change", 'name="deed"', **named), "/plan").fields
        page = self.browser.post("/plan", form | {"deed": "reset", "scope": "all", "to": to})
        lines = {(line["topic"], int(line["partition"])): line for line in Page(page).tables.get("partitions", ())}
        at = now()
        wanted = {place: (log.start(at, at).low if to == "earliest" else log.end(at, at).low)
                  for place, log in self.logs.items()}  # fmt: skip
        if self.judge(_plan(lines, wanted), len(wanted)) and lines:
            place = self.rng.choice(sorted(lines))
            self.seed("a wrong offset", _plan({**lines, place: {**lines[place], "after": "7,777,777"}}, wanted))
        done = self.browser.post("/plan/apply", Form(page, "/plan/apply").fields)
        is_good = '<p class="banner good"' in done
        self.judge([] if is_good else [f"a share reset that was applied: {_said(done)}"], 1)
        change_id = done.partition("<dt>change in the journal</dt><dd>")[2].partition("<")[0]
        offsets = {place: (_number(line["before"]), wanted.get(place)) for place, line in lines.items()}
        self._look_at_journal(Change(change_id, "share-reset", CHANGER, self.cluster, self.group, offsets))

    def _look_at_journal(self, change: Change) -> None:
        told = journal.look(self.browser, change)
        if self.judge(journal.differences(told, change), 6 + len(change.offsets)):
            what, worse = self.rng.choice(list(journal.spoilt(told))[:5])
            self.seed(f"the journal has {what}", journal.differences(worse, change))

    def end(self) -> None:
        """Pages name the tool that deletes share groups."""
        answer = self.desk.run(self.cluster, "--bootstrap-server", self.servers, "--delete", "--group", self.group,
                               command="kafka-share-groups")  # fmt: skip
        said = f"{answer.content} {answer.errors}"
        self.judge([] if "successful" in said else [f"deleting it: {said}"], 1)


def _topics(truth: Truth, cluster: str) -> list[str]:
    """Whose records stay, and are known and few."""
    found = []
    for (where, topic), made in truth.topics.items():
        logs = [truth.logs[where, topic, partition] for partition in range(made.partitions)]
        is_kept = not {"retention.ms", "cleanup.policy"} & made.settings.keys() and (where, topic) not in truth.changed
        is_small = made.partitions <= 8 and sum(len(log.offsets) for log in logs) <= MOST_RECORDS
        if where == cluster and is_kept and is_small and not any(log.has_unplaced for log in logs):
            found.append(topic)
    return sorted(found)


def _all(log: Log) -> list[Read]:
    start = log.start(at := now(), at).low
    return [Read(offset, identity_of(log.records[offset])) for offset in log.offsets if offset >= start]


def _take(
    servers: str, group: str, topic: str, wanted: Mapping[Place, Sequence[Read]], patience_s: float
) -> tuple[dict[Place, list[Read]], float]:
    """All that a member is given, of which it is done at once, and after how many seconds the first came. Where nothing
    is to come it is waited for as long as `patience_s`.
    """
    client = confluent_kafka.ShareConsumer({
        "bootstrap.servers": servers, "log_level": 0, "group.id": group, "client.id": "rig shares",
        "share.acknowledgement.mode": "explicit", "max.poll.records": 500,
    })  # fmt: skip
    client.subscribe([topic])
    found: dict[Place, list[Read]] = {}
    began = time.monotonic()
    missing, deadline = sum(map(len, wanted.values())), began + PATIENCE_S
    quiet, first_s = began + (patience_s if not missing else SILENCE_S), 0.0
    while time.monotonic() < deadline and (missing > 0 or time.monotonic() < quiet):
        for message in client.poll(0.5):
            if message.error() is not None:
                continue
            first_s = first_s or time.monotonic() - began
            quiet, missing = time.monotonic() + SILENCE_S, missing - 1
            place = (message.topic() or "", message.partition() or 0)
            found.setdefault(place, []).append(Read(message.offset() or 0, identity_in(message.value())))
            client.acknowledge(message, AcknowledgeType.ACCEPT)
        _commit(client)
    client.close()
    return {place: sorted(some) for place, some in found.items()}, first_s


def _commit(client: Any) -> None:
    try:
        client.commit_sync(PATIENCE_S)
    except KafkaException as error:
        raise AssertionError(f"a share group's acknowledgement failed: {error}") from None


def _wrong(found: Mapping[Place, Sequence[Read]], wanted: Mapping[Place, Sequence[Read]], what: str) -> Iterator[str]:
    for place in sorted(found.keys() | wanted.keys()):
        one, other = list(found.get(place, ())), list(wanted.get(place, ()))
        if one != other:
            extra, missing = [each for each in one if each not in other], [each for each in other if each not in one]
            yield f"{what} {place} gave {len(one)}, truth {len(other)}: too many {extra[:3]}, missing {missing[:3]}"


def _plan(lines: Mapping[Place, Line], wanted: Mapping[Place, int]) -> Iterator[str]:
    for place in sorted(lines.keys() | wanted.keys()):
        shown = lines.get(place, {}).get("after")
        if place not in wanted or shown != f"{wanted[place]:,}":
            yield f"a share reset sets {place} to {shown}, truth {wanted.get(place)}"


def _number(text: str) -> int | None:
    return None if text in ("none", "—") else int(text.replace(",", ""))


def _said(page: str) -> str:
    return page.partition('<p class="banner')[2][:300]
