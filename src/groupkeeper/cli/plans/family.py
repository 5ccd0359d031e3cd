"""`groupkeeper plan …`: the planned changes of committed offsets, and a file for `groupkeeper apply`."""

from __future__ import annotations

from groupkeeper.cli.framework.commands import CommandName, Family

FAMILY = Family(
    {
        "reset": CommandName("plan new committed offsets of groups", "plans.reset:RESET"),
        "delete-offsets": CommandName("plan to delete committed offsets", "plans.sweep:DELETE_OFFSETS"),
        "sweep": CommandName(
            "plan to delete offsets that are idle or without a topic, and to recommit offsets that would expire",
            "plans.sweep:SWEEP",
        ),
        "clone": CommandName("plan to give a group the offsets of another group", "plans.clone:CLONE"),
    },
    "Plan changes of committed offsets. Nothing is changed: review the plan, then carry it out with groupkeeper apply.",
)
