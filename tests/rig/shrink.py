"""Looks for the smallest story that still shows a difference: first those whom it is about, then by halves."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from tests.rig.asking import Difference
from tests.rig.story import Actor, InGroup, Producer, Story, topics_of

MINUTES = 0.5
Perform = Callable[[Story], Sequence[Difference]]


def shrink(story: Story, difference: Difference, perform: Perform, attempts: int = 8) -> tuple[Story, Difference]:
    """Plays smaller stories, at most so many. The last one that differed by the same judge, and how."""
    best, shown = story, difference

    def differs(actors: Sequence[Actor]) -> bool:
        nonlocal attempts, best, shown
        if attempts <= 0 or not actors or len(actors) == len(best.actors):
            return False
        attempts -= 1
        smaller = replace(story.with_actors(actors), minutes=min(story.minutes, MINUTES))
        same = [one for one in perform(smaller) if one.judge == difference.judge]
        if same:
            best, shown = smaller, same[0]
        return bool(same)

    differs([actor for actor in story.actors if concerns(actor, difference)])
    step = (len(best.actors) + 1) // 2
    while attempts > 0 and step > 0 and len(best.actors) > 1:
        for start in range(0, len(best.actors), step):
            if differs([*best.actors[:start], *best.actors[start + step :]]):
                break
        else:
            step //= 2
    return best, shown


def concerns(actor: Actor, difference: Difference) -> bool:
    """Whether the difference may come of what the actor does: it is of the group, or writes to the topic."""
    is_there = actor.cluster == difference.cluster or (
        isinstance(actor, Producer) and actor.mirror is not None and actor.mirror.cluster == difference.cluster
    )
    if not is_there:
        return False
    if isinstance(actor, InGroup) and difference.group is not None:
        return actor.group == difference.group
    if difference.topic is None:
        return difference.group is None or not isinstance(actor, InGroup)
    return difference.topic in topics_of(actor)
