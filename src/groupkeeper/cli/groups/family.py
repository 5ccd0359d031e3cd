"""`groupkeeper groups …`: the table of its commands."""

from __future__ import annotations

from groupkeeper.cli.framework.commands import CommandName, Family

FAMILY = Family(
    {
        "list": CommandName("list consumer, share and streams groups with their type and state", "groups.list:LIST"),
        "describe": CommandName("show offsets with lag, members, or the state of groups", "groups.describe:DESCRIBE"),
        "offsets": CommandName("show committed offsets with lag, or sums of it", "groups.describe:OFFSETS_COMMAND"),
        "members": CommandName("show members with their assignments", "groups.describe:MEMBERS_COMMAND"),
        "why": CommandName("say why a group does not move, with what helps", "groups.why:WHY"),
        "watch": CommandName("print each change of groups and their members as it happens", "groups.watch:WATCH"),
        "reset": CommandName(
            "set committed offsets of groups without members; shows only, unless --execute", "groups.reset:RESET"
        ),
        "delete-offsets": CommandName("delete committed offsets of a group", "groups.delete:DELETE_OFFSETS"),
        "delete": CommandName("delete groups without members, with their offsets", "groups.delete:DELETE"),
    },
    "List, describe, watch, reset and delete consumer groups. Streams and share groups are listed, described and "
    "watched; kafka-streams-groups and kafka-share-groups change them. One failure hides no other "
    "group; the exit status is then 1.",
)
