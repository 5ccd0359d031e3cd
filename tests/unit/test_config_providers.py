"""`config.providers`: values of properties that stand in files and in the environment."""

from argparse import ArgumentTypeError
from pathlib import Path

import pytest

from groupkeeper.cli.framework.values import properties
from groupkeeper.config_providers import Unresolved, resolved

FILE = "org.apache.kafka.common.config.provider.FileConfigProvider"
DIRECTORY = "org.apache.kafka.common.config.provider.DirectoryConfigProvider"
ENVIRONMENT = "org.apache.kafka.common.config.provider.EnvVarConfigProvider"
ALL = {
    "config.providers": "file, dir,env",
    "config.providers.file.class": FILE,
    "config.providers.dir.class": DIRECTORY,
    "config.providers.env.class": ENVIRONMENT,
}


@pytest.fixture
def secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "secrets.properties").write_text("store = a\\u0062c\nwith.dot=x:y\n", encoding="utf-8")
    (tmp_path / "password").write_text("from a directory", encoding="utf-8")
    monkeypatch.setenv("STORE_PASSWORD", "from the environment")
    return tmp_path


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("${file:DIR/secrets.properties:store}", "abc"),
        ("<${file:DIR/secrets.properties:with.dot}|${file:DIR/secrets.properties:store}>", "<x:y|abc>"),
        ("${dir:DIR:password}", "from a directory"),
        ("${env:STORE_PASSWORD}", "from the environment"),
        ("${other:DIR:password}", "${other:DIR:password}"),
        ("${plain}", "${plain}"),
    ],
)
def test_values_that_stand_elsewhere(secrets: Path, text: str, expected: str) -> None:
    found = resolved({**ALL, "ssl.keystore.password": text.replace("DIR", str(secrets))})
    assert found["ssl.keystore.password"] == expected.replace("DIR", str(secrets))


def test_without_providers_nothing_is_looked_up(secrets: Path) -> None:
    given = {"a": f"${{file:{secrets}/secrets.properties:store}}"}
    assert resolved(given) == given
    assert resolved({**given, "config.providers": "file"})["a"] == given["a"]


@pytest.mark.parametrize(
    ("text", "more", "why"),
    [
        ("${file:DIR/secrets.properties:gone}", {}, "the file has no gone"),
        ("${file:DIR/gone:x}", {}, "No such file or directory"),
        ("${file:x}", {}, "it names no file"),
        ("${env:DIR:x}", {}, "an environment variable has no path"),
        ("${env:GONE_FROM_HERE}", {}, "there is no such environment variable"),
        ("${env:STORE_PASSWORD}", {"env.param.allowlist.pattern": "A.*"}, "allowlist.pattern does not allow it"),
        ("${dir:DIR:../x}", {}, "a name in a directory has no path"),
        ("${file:DIR/secrets.properties:store}", {"file.param.allowed.paths": "/nowhere"}, "allowed.paths does not"),
        ("${file:DIR/../x:store}", {"file.param.allowed.paths": "DIR"}, "allowed.paths does not allow it"),
    ],
)
def test_what_cannot_be_had(secrets: Path, text: str, more: dict[str, str], why: str) -> None:
    given = {f"config.providers.{name}": value.replace("DIR", str(secrets)) for name, value in more.items()}
    with pytest.raises(Unresolved) as caught:
        resolved({**ALL, **given, "ssl.key.password": text.replace("DIR", str(secrets))})
    assert str(caught.value).startswith("ssl.key.password: ${")
    assert why in str(caught.value)


def test_allowed_paths(secrets: Path) -> None:
    given = {**ALL, "config.providers.file.param.allowed.paths": f"/nowhere,{secrets}"}
    assert resolved({**given, "a": f"${{file:{secrets}/secrets.properties:store}}"})["a"] == "abc"


def test_java_code_of_ones_own() -> None:
    with pytest.raises(Unresolved, match=r"config.providers.vault.class=com.example.Vault: Java code cannot run here"):
        resolved({"config.providers": "vault", "config.providers.vault.class": "com.example.Vault"})


def test_the_file_of_a_command(secrets: Path) -> None:
    path = secrets / "client.properties"
    providers = f"config.providers=file\nconfig.providers.file.class={FILE}\n"
    path.write_text(providers + f"ssl.key.password=${{file:{secrets}/secrets.properties:store}}\n", encoding="utf-8")
    assert properties(str(path))["ssl.key.password"] == "abc"
    path.write_text(providers + f"ssl.key.password=${{file:{secrets}/secrets.properties:gone}}\n", encoding="utf-8")
    with pytest.raises(ArgumentTypeError, match=r"^ssl.key.password: .* cannot be had: the file has no gone$"):
        properties(str(path))
