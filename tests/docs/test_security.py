"""The properties and the program in docs/security.md are taken by the client."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.unit.client.certificates import certified, trust_pkcs12

from groupkeeper.cli.framework.properties import check_properties
from groupkeeper.client.admin import Admin
from groupkeeper.client.security.choice import security_of
from groupkeeper.client.security.transport import TlsSecurity
from groupkeeper.java_properties import read_properties

ROOT = Path(__file__).resolve().parents[2]
STORES = ROOT / "tests/unit/security/stores"
TEXT = (ROOT / "docs/security.md").read_text()
PROPERTIES = re.findall(r"```properties\n(.*?)```", TEXT, re.DOTALL)


@pytest.fixture
def stores(tmp_path: Path) -> Path:
    """The files that the document names."""
    own = certified("client")
    (tmp_path / "ca.pem").write_text(own.pem)
    (tmp_path / "client.pem").write_text(own.key_pem("changeit") + own.pem)
    (tmp_path / "trust.p12").write_bytes(trust_pkcs12("changeit", own))
    (tmp_path / "trust.jks").write_bytes(trust_pkcs12("changeit", own))  # JKS itself: tests/unit/security
    (tmp_path / "client.p12").write_bytes(own.pkcs12("changeit"))
    return tmp_path


@pytest.mark.parametrize("text", PROPERTIES)
def test_properties_are_taken(text: str, stores: Path) -> None:
    path = stores / "client.properties"
    path.write_text(text.replace("/etc/kafka/", f"{stores}/"), "latin-1")
    properties = check_properties(read_properties(str(path)))
    security = security_of(properties)
    assert (security.tls() is not None) == properties["security.protocol"].endswith("SSL")
    assert security.is_sasl == properties["security.protocol"].startswith("SASL")


def test_the_program_makes_an_admin() -> None:
    (program,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    names: dict[str, object] = {}
    exec(program, names)
    assert isinstance(names["admin"], Admin)


def test_what_the_table_quotes_is_said_somewhere() -> None:
    source = "".join(path.read_text() for path in sorted((ROOT / "src/groupkeeper/client").rglob("*.py")))
    for said in ("no TLS there, but", "it answers with TLS", "requires SASL: set", "there does not use SASL",
                 "is not enabled there", "the broker's certificate is not trusted by",
                 "the broker's certificate is for another host", "may want a client certificate"):  # fmt: skip
        assert said in TEXT
        assert said in source


def test_a_context_gets_its_login_from_standard_input(tmp_path: Path) -> None:
    (program,) = re.findall(r"```sh\n(groupkeeper context add.*?)```", TEXT, re.DOTALL)
    environment = {
        **os.environ,
        "XDG_CONFIG_HOME": str(tmp_path),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    command = program.replace("groups list --context prod", "context show prod")
    shown = subprocess.run(
        ["bash", "-ec", command], env=environment, capture_output=True, text=True, check=True, timeout=50
    )
    assert "sasl.mechanism" in shown.stdout
    assert "changeit" not in shown.stdout
    (path,) = tmp_path.rglob("prod.properties")
    assert not isinstance(security_of(check_properties(read_properties(str(path)))), TlsSecurity)
