"""Who lives in a simulation: consumers that come and go, and operators."""

from functools import partial

from tests.simulation.classic.consumer import Character, Consumer, Phase
from tests.simulation.classic.plan import GROUPS, SIMPLE_GROUPS, TOPICS
from tests.simulation.classic.world import World

from groupkeeper.protocol import messages as m

# Whichever is selected, everybody offers it: a coordinator that has restarted knows of members nothing else.
PROTOCOL_NAMES = (("range", "roundrobin"), ("roundrobin", "range"), ("range", "roundrobin", "sticky"))
SUBSCRIPTIONS = (("t1",), ("t1", "t2"), ("t2",), ("t1", "t2", "t3"), ("t3",))


class Society:
    """The consumers and operators of a world."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.groups = GROUPS[: world.plan.group_count]
        self.consumers = [self._new_consumer(number) for number in range(world.plan.client_count)]
        for consumer in self.consumers:
            world.at(world.random.randint(0, 5_000), consumer.start)
            world.at(world.random.randint(0, 5_000), partial(self._fate, consumer))
        world.at(1_000, self._operate)
        self._came_back_different: set[str] = set()

    def _new_consumer(self, number: int) -> Consumer:
        random = self.world.random
        is_static = random.random() < 0.4
        session_ms = random.choice((6_000, 10_000, 15_000))
        character = Character(
            # "1" in group "g-a" and "a-1" in group "g" must not be mixed up.
            client_id=random.choice(("", "a-")) + str(number),
            group_id=random.choice(self.groups),
            instance_id=f"i{number}" if is_static else None,
            protocol_names=random.choice(PROTOCOL_NAMES),
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=random.choice((8_000, 12_000, 20_000)),
            heartbeat_interval_ms=session_ms // random.choice((4, 6)),
            join_version=random.choice((5, 8, 9)) if is_static else random.choice((3, 4, 9)),
        )
        return Consumer(self.world, character, random.choice(SUBSCRIPTIONS))

    def _fate(self, consumer: Consumer) -> None:
        """Things happen to a consumer now and then."""
        if consumer not in self.consumers:
            return
        world, plan, random = self.world, self.world.plan, self.world.random
        world.at(consumer.character.heartbeat_interval_ms, partial(self._fate, consumer))
        if consumer.phase is Phase.STOPPED:
            if world.is_calm or random.random() < 0.1:
                consumer.start()
        elif world.chance(plan.crash):
            world.note(consumer.character.group_id, f"{consumer.character.client_id} crashes")
            consumer.crash()
            if random.random() < 0.5:
                world.at(random.randint(10, 2_000), partial(self._revive, consumer))
        elif world.chance(plan.leave):
            consumer.leave()
        elif world.chance(plan.resubscribe):
            consumer.resubscribe(random.choice(SUBSCRIPTIONS))

    def _revive(self, consumer: Consumer) -> None:
        """Another process with the same configuration, except for its topics perhaps."""
        if consumer.phase is Phase.STOPPED:
            if self.world.chance(self.world.plan.resubscribe * 10):
                consumer.resubscribe(self.world.random.choice(SUBSCRIPTIONS))
                self._came_back_different.add(consumer.character.client_id)
            consumer.start()

    def settle(self) -> None:
        """What static members want that came back with other topics is not looked at before the next rebalance, so
        these leave and come again.
        """
        for consumer in self.consumers:
            if consumer.character.client_id in self._came_back_different:
                consumer.leave()

    def make_fit(self, group_id: str, max_size: int) -> None:
        """Ends all clients of a group but as many as it has room for, without a word; they never come again."""
        clients = [one for one in self.consumers if one.character.group_id == group_id]
        for consumer in self.world.random.sample(clients, max(len(clients) - max_size, 0)):
            self.world.note(group_id, f"{consumer.character.client_id} gives up")
            consumer.crash()
            self.consumers.remove(consumer)

    # --- operators

    def _operate(self) -> None:
        world, random = self.world, self.world.random
        world.at(random.randint(500, 3_000), self._operate)
        self.look()
        if world.chance(world.plan.tinker):
            random.choice(
                (
                    self._commit,
                    self._commit,
                    self._delete_offsets,
                    self._delete_groups,
                    self._remove_static_member,
                    self._ask_as_a_stranger,
                    self._delete_topic,
                )
            )()

    def look(self) -> None:
        """Asks what can be asked."""
        every_group = [*self.groups, *SIMPLE_GROUPS]
        requests = [m.OffsetFetchRequestGroup(group_id, topics=None) for group_id in every_group]
        self.world.ask_now(m.OffsetFetchRequest(groups=requests), 9)
        self.world.ask_now(m.DescribeGroupsRequest(every_group), 6)
        self.world.ask_now(m.ListGroupsRequest(), 5)

    def _any_group(self) -> str:
        return self.world.random.choice((*self.groups, *SIMPLE_GROUPS))

    def _commit(self) -> None:
        """A commit without membership: for simple groups, or to set an Empty group's offsets."""
        random = self.world.random
        topic = random.choice(list(TOPICS))
        partitions = [
            m.OffsetCommitRequestPartition(
                partition, random.randint(0, 1_000), -1, random.choice((None, "", "by hand"))
            )
            for partition in range(random.randint(1, TOPICS[topic]))
        ]
        has_retention = random.random() < 0.2
        request = m.OffsetCommitRequest(
            group_id=self._any_group(),
            retention_time_ms=random.choice((1_000, 50_000)) if has_retention else -1,
            topics=[m.OffsetCommitRequestTopic(topic, partitions=partitions)],
        )
        self.world.ask_now(request, 4 if has_retention else 9)

    def _delete_offsets(self) -> None:
        topics = self.world.random.sample(list(TOPICS), 2)
        wanted = [
            m.OffsetDeleteRequestTopic(topic, [*map(m.OffsetDeleteRequestPartition, range(TOPICS[topic]))])
            for topic in topics
        ]
        request = m.OffsetDeleteRequest(self._any_group(), wanted)
        self.world.ask_now(request, 0)

    def _delete_groups(self) -> None:
        self.world.ask_now(m.DeleteGroupsRequest([self._any_group()]), 2)

    def _remove_static_member(self) -> None:
        consumer = self.world.random.choice(self.consumers)
        instance_id = consumer.character.instance_id
        if instance_id is not None:
            request = m.LeaveGroupRequest(consumer.character.group_id, members=[m.MemberIdentity("", instance_id)])
            self.world.ask_now(request, 5)

    def _ask_as_a_stranger(self) -> None:
        """Somebody who was never a member."""
        self.world.ask_now(m.HeartbeatRequest(self.world.random.choice(self.groups), 1, "stranger"), 4)

    def _delete_topic(self) -> None:
        if self.world.random.random() < 0.2:
            self.world.delete_topic(self.world.random.choice(list(TOPICS)))
