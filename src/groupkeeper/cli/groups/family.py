"""``groupkeeper groups …``: the table of its commands."""

from __future__ import annotations

from groupkeeper.cli.framework.commands import CommandName, Family

FAMILY = Family(
    {
        "list": CommandName(
            "list consumer, share and streams groups with their type and state", "groupkeeper.cli.groups.list:LIST"
        ),
        "describe": CommandName(
            "show offsets with lag, members, or the state of groups", "groupkeeper.cli.groups.describe:DESCRIBE"
        ),
        "offsets": CommandName(
            "show committed offsets with lag, or sums of it", "groupkeeper.cli.groups.describe:OFFSETS_COMMAND"
        ),
        "members": CommandName(
            "show members with what they are assigned", "groupkeeper.cli.groups.describe:MEMBERS_COMMAND"
        ),
        "why": CommandName("say why a group does not move, with what helps", "groupkeeper.cli.groups.why:WHY"),
        "watch": CommandName(
            "print each change of groups and their members as it happens", "groupkeeper.cli.groups.watch:WATCH"
        ),
        "reset": CommandName(
            "set committed offsets of groups without members; shows only, unless --execute",
            "groupkeeper.cli.groups.reset:RESET",
        ),
        "delete-offsets": CommandName(
            "delete committed offsets of a group", "groupkeeper.cli.groups.delete:DELETE_OFFSETS"
        ),
        "delete": CommandName(
            "delete groups without members, with their offsets", "groupkeeper.cli.groups.delete:DELETE"
        ),
    },
    "List, describe, watch, reset and delete consumer groups. Streams and share groups are listed, described and "
    "watched; kafka-streams-groups and kafka-share-groups change them. One failure hides no other "
    "group; the exit status is then 1.",
)
