"""With names as long as companies have them, tables at a terminal are no wider than it; --wide has all of them."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.acts import commit, make_topic, member, produce

from groupkeeper.cli.framework import clusters
from groupkeeper.cli.framework.render import WIDTH, shortened, width
from groupkeeper.cli.main import main
from groupkeeper.testing.background import BackgroundBroker

GROUP = "payments-platform.settlement-and-reconciliation-service.production.eu-west-1.v2"
IDLE = f"{GROUP}-of-the-year-before"
TOPIC = "public.payments-platform.settlement-instructions.enriched-and-deduplicated.eu-west-1.v2"
CLIENT = "settlement-and-reconciliation-service-7c9d8f6b5d-x2k4j-consumer-thread-12"
CONTEXT = "production-of-the-payments-platform-in-eu-west-1"
COMMANDS = (
    "groups list",
    "groups describe --all-groups",
    "groups describe --all-groups --view members",
    "groups describe --all-groups --view state",
    "groups offsets --all-groups",
    "groups offsets --all-groups --sum topic",
    "groups offsets --all-groups --sum group --trend 10ms",
    "groups members --all-groups",
    "groups reset {idle} --all-topics --to-earliest",
    "groups delete-offsets {idle} --topic {topic}",
    "groups delete {idle}",
    "plan reset {idle} --all-topics --to-earliest",
    "plan delete-offsets {idle} --topic {topic}",
    "plan sweep --all-groups --idle 1ms",
    "plan clone {idle} {idle}-copy",
    "plan reset {idle} --all-topics --to-earliest --save {folder}/plan.json",
    "apply {folder}/plan.json",
    "apply {folder}/plan.json --execute",
    "undo",
    "history",
    "check --max-lag 0 --show-ok",
    "context list",
    "context show {context}",
)


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    """One group that reads, and one without members."""
    with BackgroundBroker(properties={"group.initial.rebalance.delay.ms": "0"}) as broker:
        servers = broker.bootstrap_servers
        make_topic(servers, TOPIC, 12)
        produce(servers, TOPIC, "x" * 12, range(12))
        for group in (IDLE, GROUP):
            commit(servers, group, {(TOPIC, partition): 1 for partition in range(12)})
        consumer = member(servers, GROUP, TOPIC, partitions=12, client={"client.id": CLIENT})
        yield servers
        consumer.close()


@pytest.fixture(scope="module")
def home(servers: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("home")
    contexts = folder / "groupkeeper" / "contexts"
    contexts.mkdir(parents=True)
    for name in (CONTEXT, f"{CONTEXT}-again"):
        (contexts / f"{name}.properties").write_text(f"bootstrap.servers={servers}\n")
    return folder


@pytest.fixture
def terminal(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home))
    monkeypatch.setenv("GROUPKEEPER_JOURNAL", str(home / "journal"))
    monkeypatch.setenv("GROUPKEEPER_CONTEXT", CONTEXT)
    monkeypatch.setattr(clusters, "is_terminal", lambda stream: True)


@pytest.mark.usefixtures("terminal")
def test_tables_fit_a_terminal(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wider = {}
    for text in COMMANDS:
        words = text.format(idle=IDLE, topic=TOPIC, folder=home, context=CONTEXT).split()
        for several in (
            ([], ["--context", "*"]) if text.startswith(("groups list", "groups desc", "groups o")) else ([],)
        ):
            status = main([*words, *several])
            output, errors = capsys.readouterr()
            assert status in (0, 1, 3), errors
            assert output, text
            widest = max(map(width, output.splitlines()))
            if widest > WIDTH:
                wider[" ".join([text, *several])] = output
    assert not wider, "\n".join(f"{command}\n{text}" for command, text in wider.items())


@pytest.mark.usefixtures("terminal")
def test_what_is_cut_is_told_and_whole_elsewhere(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["groups", "offsets", IDLE]
    assert main(words) == 0
    output, errors = capsys.readouterr()
    assert (IDLE in output, TOPIC in output) == (False, False)
    assert "--wide shows them whole" in errors
    assert main([*words, "--wide"]) == 0
    output, errors = capsys.readouterr()
    assert IDLE in output
    assert TOPIC in output
    assert "--wide" not in errors


@pytest.mark.usefixtures("terminal")
def test_a_pipe_has_names_whole(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clusters, "is_terminal", lambda stream: False)
    assert main(["groups", "offsets", IDLE]) == 0
    output, errors = capsys.readouterr()
    assert IDLE in output
    assert TOPIC in output
    assert "--wide" not in errors


@pytest.mark.parametrize(
    ("text", "size", "short"),
    [
        ("orders-of-today", 9, "orde…oday"),
        ("no one has committed", 9, "no one h…"),
        ("注文-注文-注文-注文", 9, "注文…注文"),
    ],
)
def test_a_name_loses_its_middle_and_a_sentence_its_end(text: str, size: int, short: str) -> None:
    assert shortened(text, size) == short
    assert width(short) <= size
