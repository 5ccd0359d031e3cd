"""Values that stand elsewhere: `${file:/path:key}`, `${dir:/path:name}` and `${env:NAME}` (Kafka's `config.providers`).

Brokers and clients have them, as in Kafka; Java code of one's own cannot run here.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from groupkeeper.java_properties import BadEscape, parse_properties

PROVIDERS = "config.providers"
_PACKAGE = "org.apache.kafka.common.config.provider."
_VARIABLE = re.compile(r"\$\{([^}]*?):(?:([^}]*?):)?([^}]*?)\}")


class Unresolved(ValueError):
    """A value is not where a property says it is; the text names both."""


def resolved(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties with the values that they refer to. Raises `Unresolved`."""
    names = [name.strip() for name in properties.get(PROVIDERS, "").split(",")]
    kinds = {name: _kind_of(name, properties) for name in names if f"{PROVIDERS}.{name}.class" in properties}
    if not kinds:
        return dict(properties)

    def replace(found: re.Match[str], name: str) -> str:
        provider, path, key = found[1], found[2] or "", found[3]
        if provider not in kinds:
            return found[0]
        parameters = f"{PROVIDERS}.{provider}.param."
        try:
            if kinds[provider] == "EnvVar":
                return _from_environment(path, key, properties.get(f"{parameters}allowlist.pattern", ".*"))
            _require_allowed(path, properties.get(f"{parameters}allowed.paths"))
            return _from_file(path, key) if kinds[provider] == "File" else _from_directory(path, key)
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            raise Unresolved(f"{name}: {found[0]} cannot be had: {why}") from None

    return {
        name: text if name.startswith(PROVIDERS) else _VARIABLE.sub(lambda found, name=name: replace(found, name), text)  # type: ignore[misc]
        for name, text in properties.items()
    }


def _kind_of(name: str, properties: Mapping[str, str]) -> str:
    setting = f"{PROVIDERS}.{name}.class"
    kind = properties[setting].removeprefix(_PACKAGE).removesuffix("ConfigProvider")
    if kind not in ("File", "Directory", "EnvVar"):
        raise Unresolved(
            f"{setting}={properties[setting]}: Java code cannot run here; FileConfigProvider, "
            f"DirectoryConfigProvider and EnvVarConfigProvider of {_PACKAGE.rstrip('.')} are known"
        )
    return kind


def _from_environment(path: str, key: str, pattern: str) -> str:
    if path:
        raise ValueError("an environment variable has no path")
    if re.fullmatch(pattern, key) is None:
        raise ValueError("allowlist.pattern does not allow it")
    if key not in os.environ:
        raise ValueError("there is no such environment variable")
    return os.environ[key]


def _require_allowed(path: str, allowed: str | None) -> None:
    if not path:
        raise ValueError("it names no file")
    if allowed is None:
        return
    real = os.path.normpath(path)
    roots = [os.path.normpath(root.strip()) for root in allowed.split(",")]
    if ".." in path.split("/") or not any(real == root or real.startswith(root.rstrip("/") + "/") for root in roots):
        raise ValueError("allowed.paths does not allow it")


def _from_file(path: str, key: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            found = parse_properties(file.read())
    except BadEscape as error:
        raise ValueError(f"line {error.line} of the file: {error}") from None
    if key not in found:
        raise ValueError(f"the file has no {key}")
    return found[key]


def _from_directory(path: str, name: str) -> str:
    if os.path.basename(name) != name:
        raise ValueError("a name in a directory has no path")
    with open(os.path.join(path, name), encoding="utf-8") as file:
        return file.read()
