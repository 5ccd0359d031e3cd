"""Refusals of actions, the same for pages, the HTTP API and MCP."""

from __future__ import annotations

from enum import StrEnum


class Concern(StrEnum):
    """The subject of a refusal."""

    CLUSTER = "cluster"
    GROUP = "group"
    TOPIC = "topic"
    PLAN = "plan"
    CHANGE = "change"
    JOURNAL = "journal"
    SERVER = "server"
    LOGIN = "login"
    ROLE = "role"
    REQUEST = "request"


class ActionRefused(Exception):
    """The request is refused. `status`: that of HTTP. `reason`: a sentence."""

    def __init__(self, status: int, reason: str, about: Concern = Concern.REQUEST) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.about = about
