"""franz-go's own tests, as its author wrote them: groups of every protocol, transactions, share groups, admin; and its
logins.

They need Go, and the module proxy when they run for the first time.
"""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.conformance.broker.security.every_login import PATIENCE_S, check_go
from tests.conformance.brokers import RunningBroker

MODULE = "github.com/twmb/franz-go@v1.22.2"
DOWNLOAD_S, BUILD_S, RUN_S = 300, 900, 1200
RECORDS = 10_000
AGAINST_A_BROKER = ("TestGroupETL", "TestShareGroupETL", "TestTxnEtl", "Test848RegexBrokerResolves", "TestIssue434")


def downloaded(module: str = MODULE) -> Path:
    """The module's folder. Skips where it cannot be had."""
    if shutil.which("go") is None:
        pytest.skip(f"{module} needs go on PATH")
    done = subprocess.run(
        ["go", "mod", "download", "-json", module], capture_output=True, text=True, timeout=DOWNLOAD_S
    )
    if done.returncode:
        pytest.skip(f"{module} cannot be fetched: {done.stdout} {done.stderr}")
    return Path(json.loads(done.stdout)["Dir"])


@pytest.mark.conformance
@pytest.mark.timeout(DOWNLOAD_S + BUILD_S + PATIENCE_S)
def test_every_login(tmp_path: Path) -> None:
    """Built inside a copy of the module, whose own go.sum is the lock."""
    module = tmp_path / "module"
    shutil.copytree(downloaded(), module, copy_function=shutil.copyfile)
    for folder, _, _ in os.walk(module):
        os.chmod(folder, 0o755)
    source = module / "logins" / "main.go"
    source.parent.mkdir()
    shutil.copyfile(Path(__file__).parent / "go" / "logins.go", source)
    program = tmp_path / "logins"
    subprocess.run(["go", "build", "-o", str(program), "./logins"], cwd=module, check=True, timeout=BUILD_S)
    check_go(program, tmp_path)


@pytest.mark.conformance
@pytest.mark.timeout(DOWNLOAD_S + BUILD_S + RUN_S)
def test_own_tests_of_franz_go(broker: RunningBroker, tmp_path: Path) -> None:
    module = downloaded()
    binary = tmp_path / "kgo.test"
    subprocess.run(["go", "test", "-c", "-o", str(binary), "./pkg/kgo"], cwd=module, check=True, timeout=BUILD_S)
    settings = {
        "KGO_SEEDS": broker.bootstrap_servers,
        "KGO_TEST_RF": str(min(3, broker.bootstrap_servers.count(",") + 1)),
        "KGO_TEST_RECORDS": str(RECORDS),
        "KGO_LOG_LEVEL": "none",
    }
    done = subprocess.run(
        [str(binary), "-test.v", "-test.parallel", "4", f"-test.timeout={RUN_S}s"],
        cwd=module / "pkg" / "kgo", env=os.environ | settings, capture_output=True, text=True, errors="replace",
    )  # fmt: skip
    verdicts = {name: verdict for verdict, name in re.findall(r"^--- (\w+): (\w+)", done.stdout, re.MULTILINE)}
    failed = sorted(name for name, verdict in verdicts.items() if verdict == "FAIL")
    assert not failed, f"{failed}\n{done.stdout[-4000:]}"
    assert done.returncode == 0, done.stdout[-4000:]
    assert {verdicts.get(name) for name in AGAINST_A_BROKER} == {"PASS"}, verdicts
