"""Who lives in a simulation of the consumer protocol: consumers of both protocols, and operators."""

from dataclasses import dataclass
from functools import partial

from tests.simulation.classic.consumer import Character
from tests.simulation.classic.plan import GROUPS
from tests.simulation.classic.world import WORLD
from tests.simulation.consumer.mixed_classic import COOPERATIVE, MixedClassic
from tests.simulation.consumer.modern import Configured, Modern, Subscription
from tests.simulation.consumer.plan import NAMES, REGEXES
from tests.simulation.consumer.world import ConsumerWorld

from groupkeeper.protocol import messages as m

FATE_MS = 4_000
LATER_TOPICS = ("u1", "u2")
"""Topics that operators make and delete, beside those that are there from the beginning."""


@dataclass
class Person:
    """Somebody's place in a group: a consumer of one protocol or the other."""

    client: Modern | MixedClassic
    modern: Modern
    classic: MixedClassic

    @property
    def group_id(self) -> str:
        return self.modern.configured.group_id

    def swap(self) -> None:
        """Will come back with the other protocol."""
        self.client = self.classic if self.client is self.modern else self.modern


class ConsumerSociety:
    """The consumers and operators of a world."""

    def __init__(self, world: ConsumerWorld) -> None:
        self.world = world
        self.groups = GROUPS[: world.plan.group_count]
        self._is_cooperative = {group_id: world.random.random() < 0.4 for group_id in self.groups}
        self.people = [self._new_person(number) for number in range(world.plan.client_count)]
        for person in self.people:
            world.at(world.random.randint(0, 5_000), partial(self._come, person))
            world.at(world.random.randint(0, 5_000), partial(self._fate, person))
        world.at(1_000, self._operate)

    def _new_person(self, number: int) -> Person:
        world, random = self.world, self.world.random
        group_id = random.choice(self.groups)
        client_id = random.choice(("", "a-")) + str(number)
        instance_id = f"i{number}" if random.random() < world.plan.static else None
        rebalance_ms = random.choice((6_000, 10_000, 15_000))
        subscription = self._any_subscription()
        assignor = random.choice((None, None, None, "range", "uniform"))
        modern = Modern(
            world,
            Configured(client_id, group_id, instance_id, rebalance_ms, random.choice((1, 1, 0)), assignor),
            subscription,
        )
        character = Character(
            client_id=client_id,
            group_id=group_id,
            instance_id=instance_id,
            protocol_names=(COOPERATIVE,) if self._is_cooperative[group_id] else ("range", "roundrobin"),
            session_timeout_ms=random.choice((10_000, 16_000)),
            rebalance_timeout_ms=rebalance_ms,
            heartbeat_interval_ms=3_000,
            join_version=9 if instance_id else random.choice((3, 9)),
        )
        version = random.choice((1, 2, 3)) if self._is_cooperative[group_id] else random.choice((0, 1, 3))
        classic = MixedClassic(world, character, subscription.names or ("t1",), version)
        person = Person(modern, modern, classic)
        if random.random() < world.plan.classic:
            person.swap()
        return person

    def _any_subscription(self) -> Subscription:
        random = self.world.random
        if random.random() < self.world.plan.regex:
            return Subscription(random.choice(((), (), ("t3",))), random.choice(REGEXES))
        return Subscription(random.choice(NAMES))

    # --- fates

    def _come(self, person: Person) -> None:
        if not person.client.is_running:
            person.client.start()

    def _fate(self, person: Person) -> None:
        """Things happen to a consumer now and then."""
        world, plan, random = self.world, self.world.plan, self.world.random
        world.at(FATE_MS, partial(self._fate, person))
        if not person.client.is_running:
            if world.is_calm or random.random() < 0.2:
                self._come(person)
        elif world.chance(plan.crash):
            world.note(person.group_id, f"{person.modern.configured.client_id} crashes")
            person.client.crash()
            if random.random() < 0.5:
                world.at(random.randint(10, 2_000), partial(self._come, person))
        elif world.chance(plan.leave):
            self._leave(person, for_good=random.random() < 0.4)
        elif world.chance(plan.swap):
            self._leave(person, for_good=random.random() < 0.8)
            person.swap()
            world.at(random.randint(10, 2_000), partial(self._come, person))
        elif world.chance(plan.resubscribe):
            self._resubscribe(person)

    def _leave(self, person: Person, *, for_good: bool) -> None:
        if isinstance(person.client, Modern):
            person.client.leave(for_good=for_good)
        elif for_good or person.client.character.instance_id is None:
            person.client.leave()
        else:
            person.client.crash()

    def _resubscribe(self, person: Person) -> None:
        subscription = self._any_subscription()
        if isinstance(person.client, Modern):
            person.client.resubscribe(subscription)
        elif subscription.names:
            person.client.resubscribe(subscription.names)

    def settle(self) -> None:
        """What static members of a classic group want that came back with other topics, or to other topics, is not
        looked at before the next rebalance: these leave and come again. So do the members of a downgraded group whose
        rebalance was forgotten in a restart, as Apache Kafka forgets it: they hold the target of a group with members
        that have left, and none of them knows that it leads.
        """
        for person in self.people:
            client = person.client
            if not isinstance(client, MixedClassic):
                continue
            if client.character.instance_id is not None:
                client.crash()
                identity = m.MemberIdentity("", client.character.instance_id)
                self.world.ask_now(m.LeaveGroupRequest(person.group_id, members=[identity]), 5)
            elif client.is_running and person.group_id in self.world.facts.rebalances_lost:
                client.leave()

    # --- operators

    def _operate(self) -> None:
        world, random = self.world, self.world.random
        world.at(random.randint(2_000, 6_000), self._operate)
        self.look()
        if world.chance(world.plan.reshape):
            self._reshape()
        if world.chance(world.plan.skew):
            world.shell.skew_ms = random.choice((0, -40_000, -3_600_000, 30_000, 3_600_000))
            world.note(WORLD, f"the wall clock is {world.shell.skew_ms} ms ahead")
        if world.chance(world.plan.tinker):
            random.choice(
                (self._commit, self._delete_offsets, self._delete_group, self._remove_static_member, self._intrude)
            )()

    def look(self) -> None:
        """Asks what can be asked."""
        requests = [m.OffsetFetchRequestGroup(group_id, topics=None) for group_id in self.groups]
        self.world.ask_now(m.OffsetFetchRequest(groups=requests), 9)
        self.world.ask_now(m.ConsumerGroupDescribeRequest(list(self.groups)), 1)
        self.world.ask_now(m.ListGroupsRequest(), 5)

    def _reshape(self) -> None:
        world, random = self.world, self.world.random
        topics = world.facts.topics.topics
        missing = [name for name in ("t1", "t2", "t3", *LATER_TOPICS) if name not in topics]
        draw = random.random()
        if missing and draw < 0.4:
            world.make_topic(random.choice(missing), random.randint(1, 4))
        elif topics and draw < 0.7:
            world.grow_topic(random.choice(sorted(topics)))
        elif topics:
            world.delete_topic(random.choice(sorted(topics)))

    def _any_group(self) -> str:
        return self.world.random.choice(self.groups)

    def _commit(self) -> None:
        """A commit without membership, which only an empty group takes."""
        random, topics = self.world.random, self.world.facts.topics.topics
        if topics:
            partitions = [m.OffsetCommitRequestPartition(0, random.randint(0, 1_000))]
            commit = m.OffsetCommitRequestTopic(random.choice(sorted(topics)), partitions=partitions)
            self.world.ask_now(m.OffsetCommitRequest(self._any_group(), topics=[commit]), 9)

    def _delete_offsets(self) -> None:
        topics = [
            m.OffsetDeleteRequestTopic(name, [m.OffsetDeleteRequestPartition(number) for number in range(4)])
            for name in self.world.random.sample(("t1", "t2", "t3"), 2)
        ]
        self.world.ask_now(m.OffsetDeleteRequest(self._any_group(), topics), 0)

    def _delete_group(self) -> None:
        self.world.ask_now(m.DeleteGroupsRequest([self._any_group()]), 2)

    def _remove_static_member(self) -> None:
        configured = self.world.random.choice(self.people).modern.configured
        if configured.instance_id is not None:
            request = m.LeaveGroupRequest(configured.group_id, members=[m.MemberIdentity("", configured.instance_id)])
            self.world.ask_now(request, 5)

    def _intrude(self) -> None:
        """Somebody who was never a member, or who speaks with a member's name."""
        world, random = self.world, self.world.random
        person, topics = random.choice(self.people), world.facts.topics.topics
        member_id = person.modern.member_id or "stranger"
        if random.random() < 0.6 and topics:
            name = random.choice(sorted(topics))
            partition = m.OffsetCommitRequestPartition(random.randrange(topics[name].partition_count), 5)
            commit = m.OffsetCommitRequestTopic(name, partitions=[partition])
            epoch = max(person.modern.epoch - random.choice((0, 1, 1, 2)), 0)
            world.ask_now(m.OffsetCommitRequest(person.group_id, epoch, member_id, topics=[commit]), 9)
        else:
            epoch = 1_000_000 if random.random() < 0.5 else 2
            member_id = member_id if epoch > 2 else "stranger"
            request = m.ConsumerGroupHeartbeatRequest(person.group_id, member_id, epoch, topic_partitions=[])
            world.ask_now(request, 1)
