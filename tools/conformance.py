"""Conformance: the project's own tests with real clients and Apache's tools, and the public kit where it is present.

    make conformance                                    everything
    make conformance CONFORMANCE_ARGS=--quick           a subset of less than 25 minutes, mostly 12 (of .ci/run)
    make conformance CONFORMANCE_ARGS='--only "cli*"'   some of the groups named in the summary
    make conformance CONFORMANCE_ARGS='--build pypy'    with our broker on PyPy, after `make pypy`; or `compiled`

The kit is looked for in $CONFORMANCE_KIT (default ../shared/conformance). It and Apache's tools need Java and Maven;
what cannot run is said plainly and is not counted. Diffs, traces and logs stay in the folder given by --out.
Prints every case that fails, a summary by group, and last `N passed, N failed`. Nothing is expected to fail: there is
no list of known failures.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import math
import os
import re
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tools import pypy  # noqa: E402
from tools.apache_kafka import NEWEST, why_unavailable  # noqa: E402

BIN = Path(sys.executable).parent
BUILDS = {"embedded": Path(sys.executable), "compiled": ROOT / "build/compiled/bin/python", "pypy": pypy.PYTHON}
COLOURS = re.compile(r"\x1b\[[0-9;]*m")  # of Maven, in front of a verdict
QUICK_SECONDS = 1500
# All folders with tests that `make test` leaves out, but for the browser and lakes, which have targets of their own.
FULL_TESTS = (
    "tests/conformance", "tests/differential", "tests/spark", "tests/cli", "tests/docs",
    "--production",  # with the settings of long runs of Spark
)  # fmt: skip
# Every old version of Kafka and of its clients, frameworks that are fetched and built, another client's own tests, 100
# MB of batches, an environment for each Python, applications of Kafka Streams, MirrorMaker, clones by content and
# queries of Spark take minutes.
LONG_TESTS = (
    "tests/conformance/broker/security/test_old_java_clients.py", "tests/conformance/broker/test_franz_go.py",
    "tests/conformance/cli/test_clones_by_content.py", "tests/conformance/cli/test_mirror_maker.py",
    "tests/conformance/cli/test_streams_application.py",
    "tests/conformance/frameworks", "tests/conformance/client/test_old_brokers.py",
    "tests/conformance/client/test_record_times.py", "tests/conformance/package/test_release.py",
    "tests/conformance/test_spark_queries.py",
)  # fmt: skip
# What is said of Kafka itself or of its older releases, or by a hundred calls of an official tool with a JVM each.
LEFT_OUT = (
    "(test_several_nodes and apache) or (test_offsets_topic_decoding and (4.3.1 or 3.9.1)) "
    "or test_the_official_tool_on_our_broker"
)
QUICK_OWN_TESTS = (
    "tests/conformance", *(f"--ignore={name}" for name in LONG_TESTS), "-k", f"not ({LEFT_OUT})",
    "-n", "3", "--dist", "loadgroup", "--no-loadscope-reorder",
)  # fmt: skip
TESTS_OF_CLIENTS = tuple(f"tests/conformance/{name}" for name in (
    *(f"broker/test_clients_{name}.py" for name in ("admin", "groups", "offsets", "produce")),
    "broker/test_transactions.py", "broker/test_consumer_protocol.py", "broker/test_franz_go.py", "frameworks",
    "client/test_own_admin.py", "client/admin",
))  # fmt: skip
"""Those that pass on a cluster of three nodes, too."""
QUICK_RIG_SECONDS = 720  # it needs 250
FULL_SECONDS = 3 * 3600

# --- Apache Kafka's own tests: the classes about groups, their offsets, the tools on them and the consumer client.
TESTS = (
    "JoinGroupRequestTest", "SyncGroupRequestTest", "ListGroupsRequestTest", "OffsetFetchRequestTest",
    "OffsetCommitRequestTest", "GetOffsetShellTest", "DescribeConsumerGroupTest", "DeleteConsumerGroupsTest",
    "PlaintextConsumerCommitTest", "TxnOffsetCommitRequestTest", "ConsumerGroupDescribeRequestTest",
    "ConsumerGroupHeartbeatRequestTest", "ShareGroupHeartbeatRequestTest",
)  # fmt: skip
# Those that the kit does not list, by their full names, as the kit takes any class that lets it start the cluster. Left
# out are classes with tests of several brokers, of controllers and of plug-ins in Java: nothing is expected to fail.
_CLIENTS = "org.apache.kafka.clients."
_TOOLS = "org.apache.kafka.tools."
UNLISTED_TESTS = (
    *(f"kafka.server.{name}" for name in (
        "LeaveGroupRequestTest", "HeartbeatRequestTest", "DescribeGroupsRequestTest", "DeleteGroupsRequestTest",
        "OffsetDeleteRequestTest", "WriteTxnMarkersRequestTest", "ApiVersionsRequestTest",
        "ConsumerProtocolMigrationTest", "ShareGroupDescribeRequestTest", "StreamsGroupDescribeRequestTest",
        "StreamsGroupHeartbeatRequestTest",
        *(f"{name}$WithAssignmentBatchingDisabledTest" for name in (
            "ConsumerGroupHeartbeatRequestTest", "ConsumerProtocolMigrationTest", "ShareGroupHeartbeatRequestTest",
            "StreamsGroupHeartbeatRequestTest",
        )),
    )),
    "kafka.api.GroupCoordinatorIntegrationTest",
    *(f"{_CLIENTS}consumer.{name}" for name in (
        "ConsumerTopicCreationTest", "PlaintextConsumerAssignTest", "PlaintextConsumerCallbackTest",
        "PlaintextConsumerCloseTest", "PlaintextConsumerFetchTest", "PlaintextConsumerPollTest",
        "PlaintextConsumerSubscriptionTest",
    )),
    *(f"{_CLIENTS}producer.{name}" for name in (
        "ProducerCompressionTest", "ProducerIdExpirationTest", "ProducerIntegrationTest",
    )),
    *(f"{_CLIENTS}admin.{name}" for name in (
        "AdminFenceProducersTest", "ConcurrentListOffsetsRequestTest", "DynamicGroupConfigIntegrationTest",
    )),
    *(f"{_CLIENTS}{name}" for name in ("TransactionsExpirationTest", "TransactionsWithMaxInFlightOneTest")),
    *(f"{_TOOLS}{name}" for name in (
        "BrokerApiVersionsCommandTest", "DeleteRecordsCommandTest", "GroupsCommandTest", "LogDirsCommandTest",
        "consumer.ConsoleConsumerTest", "consumer.group.DeleteOffsetsConsumerGroupCommandIntegrationTest",
        "consumer.group.ListConsumerGroupTest",
    )),
    "org.apache.kafka.server.log.LogAppendTimeTest", "org.apache.kafka.server.config.DynamicConfigTest",
)  # fmt: skip
# Those with several nodes. What each leaves out is in several_nodes/excluded.txt.
SEVERAL_NODES = (
    f"{_CLIENTS}ClientRebootstrapTest",
    *(f"{_CLIENTS}admin.{name}" for name in (
        "AutoTopicCreationTest", "DeleteTopicTest", "DescribeProducersWithBrokerIdTest", "ListOffsetsIntegrationTest",
        "RackAwareAutoTopicCreationTest",
    )),
    *(f"{_CLIENTS}consumer.{name}" for name in ("ConsumerBounceTest", "ConsumerIntegrationTest")),
    *(f"{_CLIENTS}producer.{name}" for name in ("ProducerFailureHandlingTest", "ProducerSendWhileDeletionTest")),
    *(f"org.apache.kafka.server.{name}" for name in (
        "EligibleLeaderReplicasIntegrationTest", "MetadataRequestTest", "UncleanLeaderElectionTest",
    )),
    *(f"{_TOOLS}{name}" for name in (
        "LeaderElectionCommandTest", "TopicCommandTest", "consumer.group.DescribeConsumerGroupTest",
        "consumer.group.ResetConsumerGroupOffsetTest", "reassign.ReassignPartitionsCommandTest",
    )),
)  # fmt: skip
# Of three consumers the third must join with the first two, which send heartbeats every 3 s and must join again within
# 1 s. Kafka is still making its offsets topic when the third comes. Our broker has it at once, and waits only 10 ms.
MORE_OPTIONS = {f"{_CLIENTS}consumer.PlaintextConsumerPollTest": " --property group.initial.rebalance.delay.ms=200"}
OF_ITS_RELEASE = re.compile("ApiVersions(Request|Command)Test|testFencedMemberCanRejoinWithEpochZero")
"""Tests that name what only their own release answers: with a real Kafka of the newest release they fail as well. The
command of the second one is made of parts of its own clients.
"""
NEEDS_RE2 = re.compile("Re2J|RegularExpression")
"""Tests that fail with a broker on PyPy, for which RE2 is not made; they are told as skipped."""
NEWEST_TESTS = "4.3.1"
"""The last release that has published its tests."""
# The classes whose every test is quick: the subset of --quick.
QUICK_TESTS = TESTS[:6]

# --- The command lines. Their cases are named cg-* (kafka-consumer-groups), sg-* (kafka-share-groups) …
# Brokers of their own (SASL, ACLs, two nodes, expiration), which the kit starts from real Kafka only.
OTHER_PROFILES = {"secure", "leaderless", "expired-offsets"}


@dataclass
class Group:
    """The results of one group of cases: case → passed, failed or skipped."""

    name: str
    verdicts: dict[str, str] = field(default_factory=dict)
    note: str = ""

    def count(self, verdict: str) -> int:
        return sum(v == verdict for v in self.verdicts.values())


@dataclass
class Run:
    """One call of `make conformance`: its options, its deadline and what it found."""

    out: Path
    kit: Path | None
    is_quick: bool
    is_literal: bool
    only: Sequence[str]
    without: Sequence[str]
    deadline: float
    broker: str
    """The command that starts our broker with the file of settings in place of {config}."""
    build: str
    """How our broker is built, as the rig calls it: embedded (pure, on this Python), compiled or pypy."""
    groups: dict[str, Group] = field(default_factory=dict)

    def group(self, name: str) -> Group:
        return self.groups.setdefault(name, Group(name))

    def wants(self, name: str) -> bool:
        def is_among(patterns: Sequence[str]) -> bool:
            return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)

        return (not self.only or is_among(self.only)) and not is_among(self.without)

    def left(self) -> float:
        return self.deadline - time.monotonic()


def say(text: str) -> None:
    print(f"conformance: {text}", flush=True)


def stream(
    run: Run, command: Sequence[str], log: Path, on_line: Callable[[str], None], seconds: float = math.inf
) -> int | None:
    """Run a command, its lines to `on_line`, all of its output to `log`. Its exit status, None when time ran out: the
    run's, or its own `seconds`.
    """
    with log.open("w") as sink:
        child = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        timer = threading.Timer(max(min(run.left(), seconds), 0), child.terminate)
        timer.start()
        assert child.stdout is not None
        for line in child.stdout:
            sink.write(line)
            sink.flush()
            on_line(COLOURS.sub("", line.rstrip("\n")))
        status = child.wait()
        has_ended_by_itself = timer.is_alive()
        timer.cancel()
    return status if has_ended_by_itself else None


# ------------------------------------------------------------------------------------------------- own tests


def own_tests(run: Run) -> None:
    """pytest tests/conformance, the part for Java included; in full mode all that needs Java or time, and real clients
    of three nodes.
    """
    pytest = [sys.executable, "-m", "pytest", "-m", "", "-q"]
    if run.wants("own"):
        say("own tests: real clients, Apache's tools, kill -9; in full mode differential, commands and Spark (pytest)")
        own_part(run, [*pytest, *(QUICK_OWN_TESTS if run.is_quick else FULL_TESTS)], "own")
    if not run.is_quick and run.build == "embedded" and run.wants("own-three-nodes"):
        say("own tests: real clients of three nodes (pytest)")
        own_part(run, ["env", "BROKER_UNDER_TEST=three", *pytest, *TESTS_OF_CLIENTS], "own-three-nodes")


def own_part(run: Run, command: Sequence[str], label: str) -> None:
    """What fails runs a second time, as in the kit: real clients have races of their own. Both runs are told."""
    verdicts = pytest_verdicts(run, command, label)
    if verdicts is None:
        return
    failed = [key for key, verdict in verdicts.items() if verdict == "failed"]
    if failed and run.left() > 0:
        say(f"failed at first, once more: {', '.join(name for _, name in failed)}")
        # One after the other: pytest-xdist gives tests names that are not those of the ones that failed.
        command = [*command, "-n", "0", "--last-failed", "--last-failed-no-failures=none"]
        again = pytest_verdicts(run, command, f"{label}-again") or {}
        verdicts |= {key: again.get(key, "failed") for key in failed}
    for (title, name), verdict in verdicts.items():
        run.group(title.replace("own", label, 1)).verdicts[name] = verdict
        if verdict == "failed":
            print(f"FAILED {name}", flush=True)


def pytest_verdicts(run: Run, command: Sequence[str], label: str) -> dict[tuple[str, str], str] | None:
    """Runs pytest: (group, test) → passed, failed or skipped; None, and said so, when it gave no report."""
    report = run.out / f"{label}.xml"
    report.unlink(missing_ok=True)
    status = stream(run, [*command, f"--junit-xml={report}"], run.out / f"{label}.log", lambda line: None)
    if status is None:
        run.group("own").verdicts["the tests that time ran out for"] = "failed"
    if not report.exists():
        run.group("own").verdicts["pytest"] = "failed"
        say(f"pytest ended with {status} and no report, see {run.out / f'{label}.log'}")
        return None
    verdicts = {}
    for case in ElementTree.parse(report).iter("testcase"):
        folder, _, module = case.get("classname", "").rpartition(".test_")
        verdict = "passed"
        for child in case:
            verdict = {"failure": "failed", "error": "failed", "skipped": "skipped"}.get(child.tag, verdict)
        kind = folder.split(".")[1]  # of tests.conformance.broker
        title = f"{'own' if kind == 'conformance' else kind}: {module.partition('.')[0].replace('_', ' ')}"
        verdicts[title, f"{case.get('classname')}::{case.get('name')}"] = verdict
    return verdicts


# ------------------------------------------------------------------------------------------ Apache's own tests


def kafka_tests(run: Run, kit: Path) -> None:
    """The kit's kafka-tests: classes of Apache Kafka's test jars, each test with a broker process of ours. They are of
    4.3.1, the last release that has published them: with its clients, then with the newest.
    """
    script = kit / "kafka-tests" / "run-kafka-tests"
    classes = QUICK_TESTS if run.is_quick else TESTS + UNLISTED_TESTS
    for name in classes:
        kafka_test(run, [str(script)], name, f"kafka-tests: {name}")
    newer = [sys.executable, str(ROOT / "tools" / "newer_clients.py"), str(script), NEWEST]
    for name in () if run.is_quick else classes:
        kafka_test(run, newer, name, f"kafka-tests with {NEWEST}: {name}")
    several = [sys.executable, str(ROOT / "tools" / "several_nodes.py"), str(script)]
    for release, name in product(() if run.is_quick else (NEWEST_TESTS, NEWEST), SEVERAL_NODES):
        kafka_test(run, [*several, release], name, f"kafka-tests of several nodes with {release}: {name}")


def kafka_test(run: Run, command: Sequence[str], name: str, title: str) -> None:
    if not run.wants(title):
        return
    say(f"Apache Kafka's {name} on our broker ({title.partition(':')[0]})")
    out = run.out / title.partition(":")[0].replace(" ", "-") / name
    out.mkdir(parents=True, exist_ok=True)
    (out / "results.txt").unlink(missing_ok=True)
    broker = run.broker + MORE_OPTIONS.get(name, "")
    status = stream(run, [*command, "--out", str(out), name, "--broker-cmd", broker], out / "run.log", lambda _: None)
    take_kafka_results(run, title, out)
    if status is None or not (out / "results.txt").exists():
        run.group(title).verdicts[name] = "failed"
        say(f"{name} did not finish")


def unlinked(out: Path) -> frozenset[str]:
    """Tests that call what the clients on their class path do not have: they say nothing of the broker."""
    traces = "\n".join(path.read_text(errors="replace") for path in (out / "parts").glob("*.traces"))
    return frozenset(re.findall(r"=== FAIL (\S+)\njava\.lang\.NoSuch(?:Method|Field)Error", traces))


def take_kafka_results(run: Run, title: str, out: Path) -> None:
    if not (out / "results.txt").exists():
        return
    without_code = unlinked(out)
    for line in (out / "results.txt").read_text().splitlines():
        found = re.match(r"(PASS|FAIL|ABORT) (\S+#\S+)", line)
        if not found:
            continue
        group = run.group(title)
        case = found[2].rpartition(".")[2]
        group.verdicts[case] = {"PASS": "passed", "FAIL": "failed", "ABORT": "skipped"}[found[1]]
        says_nothing = found[2] in without_code or OF_ITS_RELEASE.search(case)
        if found[1] == "FAIL" and (says_nothing or (run.build == "pypy" and NEEDS_RE2.search(case))):
            group.verdicts[case] = "skipped"
        elif found[1] == "FAIL":
            print(f"FAILED {case}", flush=True)


# ------------------------------------------------------------------------------------------------------ rig


def play(run: Run, options: Sequence[str], name: str, seconds: float) -> tuple[int | None, list[str]]:
    """Its status, as of `stream`, and what it tells: what differs, or the end of its output where it broke."""
    told: list[str] = []

    def tell(line: str) -> None:
        if line.startswith(("DIFFERENCE", "DEFECT", "seed")):
            told.append(line)

    command = [sys.executable, "-m", "tests.rig", *options]
    log = run.out / f"{name}.log"
    status = stream(run, command, log, tell, seconds)
    if status != 0 and not told:  # it did not end, or something broke
        told = log.read_text().splitlines()[-200:]
    return status, told


def rig(run: Run, has_kafka: bool) -> None:
    """Traffic whose truth is known, and what our commands say of it: all clusters for 30 minutes, or two for one."""
    title = "rig"
    if not run.wants(title):
        return
    clusters = [run.build]
    if has_kafka:
        clusters += ["apache-4.4.0"] if run.is_quick else ["apache-4.4.0", "apache-4.3.1", "apache-3.9.1"]
    minutes, seed = ("1", "1") if run.is_quick else ("30", str(int(time.time())))
    say(f"rig: {minutes} minutes of traffic on {', '.join(clusters)}, seed {seed}")
    options = ["--minutes", minutes, "--seed", seed, "--clusters", ",".join(clusters)]
    if run.is_quick:  # the search for a smaller story plays many; others' time is not its own
        options.append("--no-shrink")

    status, told = play(run, options, "rig", QUICK_RIG_SECONDS if run.is_quick else math.inf)
    if status and run.is_quick:  # real clients and clocks, on a machine that others use: once more, both are shown
        for line in told:
            say(f"rig, at first: {line}")
        began = time.monotonic()
        status, told = play(run, options, "rig-again", QUICK_RIG_SECONDS)
        run.deadline += time.monotonic() - began
    for line in told:
        print(f"FAILED {title}: {line}", flush=True)
    for cluster in clusters:
        run.group(title).verdicts[cluster] = "passed" if status == 0 else "failed"
    if status is None:
        run.group(title).verdicts["the minutes that time ran out for"] = "failed"


# --------------------------------------------------------------------------------------------- command lines


# The kit says that the text of help is not compared, but its pattern for the first line of help misses the blanks
# that the official tools pad it with, and its form where options are required. This starts it with the pattern that
# does what it says; --literal leaves it as it is.
HELP_IS_NOT_COMPARED = """
import re, runpy, sys
sys.dont_write_bytecode = True
script = sys.argv.pop(1)
sys.argv[0] = script
sys.path.insert(0, script.rpartition("/")[0])
from harness import compare
pattern = compare._HELP.pattern.replace("Option", r"Option(?: \\(\\* = required\\))?", 1)
compare._HELP = re.compile(pattern.removesuffix("$") + r"\\s*$")
runpy.run_path(script, run_name="__main__")
"""


def cli_cases(kit: Path, goldens: str) -> Iterator[tuple[str, str]]:
    """(scenario, case) of the tools that this package has. Of those listed, some are of a later Kafka: they are not in
    the recordings, and a broker of this one cannot be brought into the state that they ask for.
    """
    recorded = {
        (path.stem, case["name"])
        for path in (kit / "cli" / goldens).glob("*.json")
        for case in json.loads(path.read_text())["cases"]
    }
    listing = subprocess.run([str(kit / "cli" / "cli-diff"), "--list"], capture_output=True, text=True, check=True)
    for line in listing.stdout.splitlines():
        name, tool = line.split("\t")[:2]
        scenario, _, case = name.partition("#")
        if (BIN / f"kafka-{tool}").exists() and (scenario, case) in recorded:
            yield scenario, case


def cli_differences(run: Run, kit: Path, where: str, release: str = NEWEST) -> None:
    """The kit's CLI cases with our command, on real Kafka (`where` "Kafka") or on our broker ("ours"), as the tools of
    the release print them.
    """
    title = f"cli on {where}" + f" as {release}" * (release != NEWEST)
    goldens = "goldens" + f"-{release}" * (release == NEWEST)
    if not run.wants(title):
        return
    # The recordings are from Kafka, and ours is asked the same: the quick subset asks Kafka only what ours cannot be.
    cases = [
        f"{scenario}#{case}"
        for scenario, case in cli_cases(kit, goldens)
        if where == "ours" or not run.is_quick or scenario in OTHER_PROFILES
    ]
    out = run.out / f"cli-{where}-{release}"
    out.mkdir(parents=True, exist_ok=True)
    (out / "cases.txt").write_text("".join(f"{c}\n" for c in cases))
    script = str(kit / "cli" / "cli-diff")
    command = [script] if run.is_literal else [sys.executable, "-c", HELP_IS_NOT_COMPARED, script]
    command = ["env", f"GROUPKEEPER_KAFKA_TOOLS={release}", *command, "--kafka-version", release]
    command += ["--against-goldens", str(kit / "cli" / goldens), "--out", str(out),
               "--cases", str(out / "cases.txt"), "--ours", f"{shlex.quote(str(BIN))}/kafka-{{tool}}"]  # fmt: skip
    if where == "ours":
        # The settings of the broker that the kit recorded on: partitions of internal topics stand in an output.
        command += ["--broker-cmd", run.broker]
    say(
        f"{len(cases)} command lines on {'our broker' if where == 'ours' else 'real Kafka'}, compared with the official"
    )
    found: dict[str, str] = {}

    def take(line: str) -> None:
        word, _, name = line.partition(" ")
        if word in ("SAME", "DIFF", "SKIP") and name.split(" ")[0] in cases:
            found[name.split(" ")[0]] = {"SAME": "passed", "DIFF": "failed", "SKIP": "skipped"}[word]
        if word == "SKIP" and "(broker profile" in name:  # a whole scenario, for which the kit starts real Kafka only
            found.update({c: "skipped" for c in cases if c.startswith(f"{name.split(' ')[0]}#")})
        if word in ("DIFF", "ERROR"):
            print(f"FAILED {title}: {line}", flush=True)

    stream(run, command, out / "run.log", take)
    for case in cases:
        # A case without a line belongs to a scenario that could not be set up (ERROR above) or that time ran out for.
        run.group(title).verdicts[case] = found.get(case, "failed")


# --------------------------------------------------------------------------------------------------- summary


def summarise(run: Run) -> int:
    wide = max((len(g.name) for g in run.groups.values()), default=0)

    def table(groups: list[Group]) -> tuple[int, int]:
        for g in groups:
            skipped = f", {g.count('skipped')} skipped" if g.count("skipped") else ""
            print(f"  {g.name:<{wide}}  {g.count('passed'):>4} passed, {g.count('failed')} failed{skipped}")
        return sum(g.count("passed") for g in groups), sum(g.count("failed") for g in groups)

    print()
    print("Conformance by group:")
    passed, failed = table(list(run.groups.values()))
    print(f"{passed} passed, {failed} failed", flush=True)
    return 1 if failed or not passed else 0


def find_kit() -> Path | None:
    kit = Path(os.environ.get("CONFORMANCE_KIT") or "../shared/conformance")
    kit = kit if kit.is_absolute() else ROOT / kit
    return kit if (kit / "cli" / "cli-diff").exists() else None


def main(argv: Sequence[str]) -> int:
    os.environ.setdefault("GROUPKEEPER_JOURNAL", "off")  # what is tried here is nothing to come back to
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", "--bounded", action="store_true", help="a subset")
    parser.add_argument(
        "--seconds",
        type=int,
        help=f"how long it may take, but for a second run of the rig (default {FULL_SECONDS}, --quick {QUICK_SECONDS})",
    )
    parser.add_argument("--literal", action="store_true", help="the kit's own comparison, text of help included")
    parser.add_argument(
        "--build", choices=[*BUILDS], default="embedded", help="of our broker, where it is a process of its own"
    )
    parser.add_argument("--only", action="append", default=[], metavar="PATTERN", help="groups, * allowed; repeatable")
    parser.add_argument("--without", action="append", default=[], metavar="PATTERN", help="of those, not these")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "conformance")
    args = parser.parse_args(argv)
    seconds = args.seconds or (QUICK_SECONDS if args.quick else FULL_SECONDS)
    kit = find_kit()
    ours = [str(BIN / "groupkeeper")]
    if args.build != "embedded":
        if not BUILDS[args.build].exists():
            parser.error(f"there is no {BUILDS[args.build]}: see what `make {args.build}` says")
        os.environ["BROKER_UNDER_TEST"] = args.build
        ours = [str(BUILDS[args.build]), "-m", "groupkeeper"]
    broker = f"{shlex.join(ours)} broker --config {{config}}"
    deadline = time.monotonic() + seconds
    run = Run(args.out.resolve(), kit, args.quick, args.literal, args.only, args.without, deadline, broker, args.build)
    run.out.mkdir(parents=True, exist_ok=True)
    own_tests(run)
    reason = why_unavailable()
    rig(run, has_kafka=reason is None)
    if kit is None:
        say("no kit at $CONFORMANCE_KIT or ../shared/conformance: its public cases are left out")
    elif reason:
        say(f"the kit's cases are left out: {reason}")
    else:
        cli_differences(run, kit, "ours")
        cli_differences(run, kit, "Kafka")
        cli_differences(run, kit, "Kafka", "4.3.1")
        kafka_tests(run, kit)
    return summarise(run)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
