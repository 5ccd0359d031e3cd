"""`groupkeeper mcp` with the client of the protocol's own SDK, by standard input and by HTTP."""

import json
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ElicitResult
from tests.web.serving import COMMAND
from tests.web.site import ALICE, BOB

from groupkeeper.cli.main import main
from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import OffsetAndMetadata, TopicPartition
from groupkeeper.testing.background import BackgroundBroker

pytestmark = pytest.mark.timeout(120)


@asynccontextmanager
async def connected(broker: BackgroundBroker, folder: Path, *words: str, answers: Any = None) -> AsyncIterator[Client]:
    """`answers`: what a person says who is asked; None: the client cannot ask."""
    arguments = ["mcp", "--bootstrap-server", f"prod={broker.bootstrap_servers}", *words]
    env = {"GROUPKEEPER_JOURNAL": str(folder / "journal.jsonl")}
    started = StdioServerParameters(command=COMMAND, args=arguments, env=env)
    async with Client(started, elicitation_callback=answers) as client:
        yield client


async def ask(client: Client, tool: str, **arguments: Any) -> Any:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    return result.structured_content


async def refused(client: Client, tool: str, **arguments: Any) -> str:
    result = await client.call_tool(tool, arguments)
    assert result.is_error, result.structured_content
    return " ".join(each.text for each in result.content)  # type: ignore[union-attr]


async def committed(broker: BackgroundBroker) -> int:
    async with Admin(broker.bootstrap_servers) as admin:
        found = (await admin.list_consumer_group_offsets({"search": None})).result("search").done
    one = found[TopicPartition("orders", 0)]
    assert one is not None
    return one.offset


RESET = {"cluster": "prod", "group": "search", "to": "latest"}


async def test_a_group_is_listed_explained_planned_and_not_changed_unless_allowed(
    broker: BackgroundBroker, tmp_path: Path
) -> None:
    async with connected(broker, tmp_path) as client:
        tools = {each.name: each for each in (await client.list_tools()).tools}
        assert tools["list_groups"].annotations.read_only_hint  # type: ignore[union-attr]
        assert tools["apply_plan"].annotations.destructive_hint  # type: ignore[union-attr]
        assert "answer" not in tools["apply_plan"].input_schema["properties"]  # no model confirms for a person
        assert [each["cluster"] for each in (await ask(client, "list_clusters"))["clusters"]] == ["prod"]
        listed = await ask(client, "list_groups", cluster="prod", limit=2)
        assert [each["group"] for each in listed["groups"]] == ["audit", "billing"]
        for each in listed["groups"]:  # one look does not tell whether a group has stopped
            assert each["commits_still_ms"] is None
            assert not each["lag"] or "stopped: since when the committed offset stands" in each["not_judged"]
        rest = await ask(client, "list_groups", cluster="prod", limit=2, cursor=listed["next"])
        assert [each["group"] for each in rest["groups"]] == ["search"]
        described = await ask(client, "describe_group", cluster="prod", group="search")
        assert (described["lag"], described["offsets"][0]["topic"]) == (8, "orders")
        why = await ask(client, "explain_group", cluster="prod", group="search", interval_s=0.1)
        assert (why["waiting"], why["facts"][0]["cause"]) == (8, "stuck")
        plan = await ask(client, "make_plan", wanted=RESET)
        assert (plan["can_be_applied"], plan["changes"][0]["after"]) == (True, 8)
        assert (await ask(client, "show_plan", plan_id=plan["id"]))["stage"] == "planned"
        told = await refused(client, "apply_plan", plan_id=plan["id"])
        assert "cannot ask a person" in told
        assert "--allow-apply" in told
        assert await committed(broker) == 0
        assert "list_clusters has the clusters" in await refused(client, "list_groups", cluster="east")
        assert "list_plans has the plans" in await refused(client, "apply_plan", plan_id="nothing")
        assert "nothing is chosen" in await refused(client, "make_plan", wanted={"cluster": "prod", "group": "search"})
        assert "limit" in await refused(client, "list_groups", cluster="prod", limit=101)

    async with connected(broker, tmp_path, "--allow-apply") as client:
        plan = await ask(client, "make_plan", wanted=RESET)
        done = await ask(client, "apply_plan", plan_id=plan["id"])
        assert (done["stage"], await committed(broker)) == ("applied", 8)
        [change] = (await ask(client, "list_changes"))["changes"]
        assert (change["id"], change["cluster"]) == (done["change_id"], "prod")
        undo = await ask(client, "plan_undo", cluster="prod", change_id=change["id"])
        await ask(client, "apply_plan", plan_id=undo["id"])
        assert await committed(broker) == 0
    journal = [json.loads(row) for row in (tmp_path / "journal.jsonl").read_text().splitlines()]
    assert {row["through"] for row in journal if row["event"] == "change"} == {"groupkeeper mcp"}


async def test_a_group_is_explained_though_nothing_was_asked_before(broker: BackgroundBroker, tmp_path: Path) -> None:
    async with connected(broker, tmp_path) as client:
        why = await ask(client, "explain_group", cluster="prod", group="search", interval_s=0.1)
        assert why["waiting"] == 8


async def test_a_person_confirms_or_does_not(broker: BackgroundBroker, tmp_path: Path) -> None:
    questions: list[str] = []
    replies = [
        ElicitResult(action="decline"),
        ElicitResult(action="accept", content={"apply": False}),
        ElicitResult(action="accept", content={"apply": True}),
        ElicitResult(action="accept", content={"apply": True}),
    ]

    async def answers(_: Any, asked: Any) -> ElicitResult:
        questions.append(asked.message)
        return replies.pop(0)

    async with connected(broker, tmp_path, answers=answers) as client:
        plan = await ask(client, "make_plan", wanted=RESET)
        for _ in range(2):
            assert "the person did not confirm" in await refused(client, "apply_plan", plan_id=plan["id"])
            assert await committed(broker) == 0
        done = await ask(client, "apply_plan", plan_id=plan["id"])
        assert (done["stage"], await committed(broker)) == ("applied", 8)
        assert "search on prod: 1 partitions? 0 records replayed, 8 skipped" in questions[-1]
        undo = await ask(client, "plan_undo", cluster="prod", change_id=done["change_id"])
        await ask(client, "apply_plan", plan_id=undo["id"])
    assert await committed(broker) == 0


async def test_an_answer_is_about_one_plan_and_one_state_of_the_cluster(
    broker: BackgroundBroker, tmp_path: Path
) -> None:
    asked_about: list[str] = []
    moved_to = OffsetAndMetadata(3)

    async def answers(_: Any, asked: Any) -> ElicitResult:
        asked_about.append(asked.message.removeprefix("Apply the plan ").partition(" ")[0])
        if len(asked_about) == 1:  # while the person thinks
            async with Admin(broker.bootstrap_servers) as admin:
                await admin.alter_consumer_group_offsets("search", {TopicPartition("orders", 0): moved_to})
        return ElicitResult(action="accept", content={"apply": True})

    async with connected(broker, tmp_path, answers=answers) as client:
        first = await ask(client, "make_plan", wanted=RESET)
        told = await refused(client, "apply_plan", plan_id=first["id"])
        assert "committed at 0 when the plan was made, and is committed at 3 now" in told
        assert await committed(broker) == moved_to.offset
        second = await ask(client, "make_plan", wanted=RESET)
        done = await ask(client, "apply_plan", plan_id=second["id"])
        assert asked_about == [first["id"], second["id"]]
        undo = await ask(client, "plan_undo", cluster="prod", change_id=done["change_id"])
        await ask(client, "apply_plan", plan_id=undo["id"])
        assert asked_about[-1] == undo["id"]
    async with Admin(broker.bootstrap_servers) as admin:
        await admin.alter_consumer_group_offsets("search", {TopicPartition("orders", 0): OffsetAndMetadata(0)})


@contextmanager
def serving_http(broker: BackgroundBroker, folder: Path, *more: str) -> Iterator[str]:
    (folder / "tokens").write_text(f"alice {ALICE}\nbob {BOB}\n")
    words = [COMMAND, "mcp", "--bootstrap-server", f"prod={broker.bootstrap_servers}", "--http-port", "0"]
    words += more
    process = subprocess.Popen([*words, "--token-file", str(folder / "tokens")], stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        told, _, url = process.stderr.readline().strip().rpartition(" ")
        assert told == "serving tools at"
        yield url
    finally:
        process.kill()
        process.communicate()


async def test_http_needs_a_token(broker: BackgroundBroker, tmp_path: Path) -> None:
    with serving_http(broker, tmp_path) as url:
        async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {ALICE}"}, timeout=20) as known:
            async with Client(streamable_http_client(url, http_client=known)) as client:
                plan = await ask(client, "make_plan", wanted=RESET)
                assert plan["made_by"] == "alice"
                assert "cannot ask a person" in await refused(client, "apply_plan", plan_id=plan["id"])
            for headers in (
                {"Authorization": "Bearer nothing-that-is-known"},
                {"Authorization": "", "Cookie": "groupkeeper=1", "X-Forwarded-User": "alice"},
            ):
                assert (await known.post(url, json={}, headers=headers)).status_code == 401


async def test_tokens_have_the_rights_of_roles(broker: BackgroundBroker, tmp_path: Path) -> None:
    (tmp_path / "roles.toml").write_text(
        '[[role]]\nusers = ["bob"]\nmay = "view"\ngroups = ["b*", "search"]\n'
        '[[role]]\nusers = ["bob"]\nmay = "change"\ngroups = ["billing"]\n'
    )
    with serving_http(broker, tmp_path, "--roles", str(tmp_path / "roles.toml"), "--allow-apply") as url:
        bob = httpx2.AsyncClient(headers={"Authorization": f"Bearer {BOB}"}, timeout=20)
        async with bob, Client(streamable_http_client(url, http_client=bob)) as client:
            listed = await ask(client, "list_groups", cluster="prod")
            assert [each["group"] for each in listed["groups"]] == ["billing", "search"]
            for tool in ("describe_group", "explain_group"):
                assert "There is no group" in await refused(client, tool, cluster="prod", group="audit")
            assert "no role that may change" in await refused(client, "make_plan", wanted=RESET)
            plan = await ask(client, "make_plan", wanted={**RESET, "group": "billing"})
            assert plan["made_by"] == "bob"


def test_wrong_usage_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words, why in (
        (("--roles", str(tmp_path / "roles.toml")), "users have names only with"),
        (("--http-port", "65536"), "expected a port from 0 to 65535"),
    ):
        with pytest.raises(SystemExit) as refused:
            main(["mcp", "--bootstrap-server", "127.0.0.1:1", *words])
        assert (refused.value.code, why in capsys.readouterr().err) == (2, True)


def test_a_port_that_is_taken_is_said(broker: BackgroundBroker, tmp_path: Path) -> None:
    (tmp_path / "tokens").write_text(f"alice {ALICE}\n")
    words = [COMMAND, "mcp", "--bootstrap-server", broker.bootstrap_servers, "--token-file", str(tmp_path / "tokens")]
    words += ["--http-port", broker.bootstrap_servers.rpartition(":")[2]]
    ended = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, "give another --http-port" in ended.stderr) == (1, True), ended.stderr
    assert "Traceback" not in ended.stderr
    assert "serving" not in ended.stderr
