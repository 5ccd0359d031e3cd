"""What tools/release.py builds can be installed in an empty environment, and runs there."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from email import message_from_string
from pathlib import Path

import pytest
from tests.docs.test_readme import README, examples
from tools.apache_kafka import free_port
from tools.release import main, with_whole_links

HOME = "https://example.org/groupkeeper"
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
PROGRAM = """
import asyncio, sys
from groupkeeper import Admin, Broker, NewTopic, SyncAdmin
from groupkeeper.testing.background import BackgroundBroker

async def ask():
    async with Broker() as broker, Admin(broker.bootstrap_servers) as admin:
        return (await admin.create_topics([NewTopic("orders", 3)])).all()["orders"].num_partitions

assert asyncio.run(ask()) == 3
with BackgroundBroker() as broker, SyncAdmin(broker.bootstrap_servers) as admin:
    assert admin.lag().all() == {}
assert not {"pyspark", "pyarrow", "pandas", "starlette"} & set(sys.modules)
"""

COMMIT = """
import sys
from groupkeeper import NewTopic, OffsetAndMetadata, SyncAdmin, TopicPartition

with SyncAdmin(sys.argv[1]) as admin:
    admin.create_topics([NewTopic("orders")]).all()
    admin.alter_consumer_group_offsets("billing", {TopicPartition("orders", 0): OffsetAndMetadata(0)}).all()
"""


def test_links_of_a_page_become_whole() -> None:
    page = "[a](docs/a.md#part), ![b](docs/b.svg), [c](https://c.org/d), [e](#here)"
    assert with_whole_links(page, HOME, "1.0") == (
        f"[a]({HOME}/blob/v1.0/docs/a.md#part), ![b]({HOME}/raw/v1.0/docs/b.svg), [c](https://c.org/d), [e](#here)"
    )


@pytest.mark.parametrize("address", ["example.org", "http://example.org/a", "https://example.org/a/", "https://a b/c"])
def test_addresses_that_cannot_be_are_refused(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([address])
    assert "must be https://HOST/PATH" in capsys.readouterr().err


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("dist")
    assert main([HOME, "--directory", str(directory)]) == 0
    return directory


@pytest.mark.conformance
def test_the_metadata_leads_to_the_sources(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as packed:
        (name,) = [each for each in packed.namelist() if each.endswith(".dist-info/METADATA")]
        metadata = message_from_string(packed.read(name).decode())
    addresses = dict(each.split(", ") for each in metadata.get_all("Project-URL", []))
    assert addresses["Source"] == HOME
    assert addresses["Changelog"] == f"{HOME}/blob/v{metadata['Version']}/CHANGELOG.md"
    assert metadata["License-Expression"] == "Apache-2.0"
    targets = re.findall(r"\]\(([^)]+)\)", str(metadata.get_payload()))
    assert [each for each in targets if "://" not in each and each[0] != "#"] == []
    assert f"{HOME}/blob/v{metadata['Version']}/docs/admin.md" in targets


@pytest.mark.conformance
def test_the_source_distribution_has_what_it_is_built_from(built: Path) -> None:
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as packed:
        names = {name.partition("/")[2] for name in packed.getnames()}
    assert {"README.md", "LICENSE", "NOTICE", "CHANGELOG.md", "docs/admin.md", "src/groupkeeper/py.typed"} <= names
    assert [name for name in names if name.startswith(("tests", ".venv", "requirements"))] == []


def interpreter(version: str) -> str:
    """A Python of that release. Skips where the machine has none."""
    for found in (shutil.which(f"python{version}"), sys.executable):
        if found is not None and subprocess.run([found, "-c", "0"], capture_output=True, check=False).returncode == 0:
            said = subprocess.run([found, "--version"], capture_output=True, text=True, check=True).stdout
            if said.startswith(f"Python {version}."):
                return found
    for other in sorted(Path("~/.pyenv/versions").expanduser().glob(f"{version}.*/bin/python")):
        return str(other)
    pytest.skip(f"no Python {version} here")


@pytest.fixture(scope="module", params=[*PYTHONS, "sdist"])
def environment(
    request: pytest.FixtureRequest, built: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    """Commands of an environment that has nothing but what was built and what that needs."""
    tmp_path = tmp_path_factory.mktemp("environment")
    version: str = request.param
    is_sdist = version == "sdist"
    python = sys.executable if is_sdist else interpreter(version)
    (package,) = built.glob("*.tar.gz" if is_sdist else "*.whl")
    subprocess.run([python, "-m", "venv", str(tmp_path / "venv")], check=True, timeout=120)
    commands = tmp_path / "venv/bin"
    subprocess.run([commands / "python", "-m", "pip", "install", "--quiet", str(package)], check=True, timeout=400)
    yield commands
    shutil.rmtree(tmp_path / "venv")


@pytest.mark.conformance
@pytest.mark.timeout(600)
def test_it_runs_in_an_empty_environment(environment: Path, tmp_path: Path) -> None:
    def run(*words: str | Path) -> str:
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert run(environment / "groupkeeper", "--version").startswith("groupkeeper ")
    run(environment / "python", "-c", PROGRAM)
    servers = f"127.0.0.1:{free_port()}"
    broker = subprocess.Popen(
        [environment / "groupkeeper", "broker", "--port", servers.split(":")[1], "--data", tmp_path / "data"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=tmp_path,
    )  # fmt: skip
    try:
        run(environment / "python", "-c", COMMIT, servers)
        assert "billing" in run(environment / "groupkeeper", "groups", "list", "--bootstrap-server", servers)
        assert run(environment / "kafka-consumer-groups", "--bootstrap-server", servers, "--list") == "billing\n"
        assert (
            run(environment / "kafka-get-offsets", "--bootstrap-server", servers, "--topic", "orders") == "orders:0:0\n"
        )
        for tool in ("kafka-groups", "kafka-share-groups", "kafka-streams-groups"):
            run(environment / tool, "--bootstrap-server", servers, "--list")
    finally:
        broker.terminate()
        broker.wait(20)


@pytest.mark.conformance
@pytest.mark.timeout(600)
def test_the_readme_runs_in_it(environment: Path, tmp_path: Path) -> None:
    """From the first broker to the drop-ins, as printed; the client that its program needs comes from the index."""
    subprocess.run([environment / "python", "-m", "pip", "install", "-q", "confluent-kafka"], check=True, timeout=300)
    servers = f"127.0.0.1:{free_port()}"
    own = {"PATH": f"{environment}{os.pathsep}{os.environ['PATH']}", "HOME": str(tmp_path), "LC_ALL": "C.UTF-8"}
    part = README[README.index("## Groups and offsets") : README.index("## In Python")]
    (start, *printed) = examples(part)
    assert start[1].startswith("groupkeeper broker --port 9092")
    words = shlex.split(start[1].replace("9092", servers.split(":")[1]))
    broker = subprocess.Popen(
        [environment / words[0], *words[1:]], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=tmp_path
    )
    try:
        for language, text in printed:
            text = text.replace("localhost:9092", servers)
            given = ["sh", "-c", text] if language == "sh" else [str(environment / "python"), "-c", text]
            done = subprocess.run(given, cwd=tmp_path, env=own, capture_output=True, text=True, check=False, timeout=60)
            assert (done.returncode, "rror:" in done.stdout + done.stderr) == (0, False), (text, done)
    finally:
        broker.terminate()
        broker.wait(20)
    assert len(printed) > 15


COMPLETIONS = {
    "bash": """
source <(groupkeeper completion bash)
for line in 'groupkeeper groups des' 'kafka-streams-groups --descr'; do
    COMP_LINE=$line COMP_POINT=${#line} _groupkeeper
    echo ${COMPREPLY[@]}
done
""",
    "fish": """
groupkeeper completion fish | source
complete -C 'groupkeeper groups des' | cut -f 1
complete -C 'kafka-streams-groups --descr' | cut -f 1
""",
    "zsh": """
autoload -U compinit && compinit -u -D && source <(groupkeeper completion zsh)
for command in groupkeeper kafka-streams-groups; do print ${_comps[$command]:+known}; done
""",
}


@pytest.mark.conformance
@pytest.mark.parametrize("shell", COMPLETIONS)
def test_shells_complete_its_commands(environment: Path, shell: str, tmp_path: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} here")
    own = {"PATH": f"{environment}{os.pathsep}{os.environ['PATH']}", "HOME": str(tmp_path), "LC_ALL": "C.UTF-8"}
    done = subprocess.run(
        [shell, "-c", COMPLETIONS[shell]],
        env=own,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    words = ["known", "known"] if shell == "zsh" else ["describe", "--describe"]
    assert (done.stdout.split(), done.stderr) == (words, "")
