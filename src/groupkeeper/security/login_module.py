"""One login module with its options, as sasl.jaas.config names it. Values stay out of errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

NAME = "sasl.jaas.config"
JAAS_FILE = "java.security.auth.login.config"
"""A property of Java. Kafka takes it from the command line, our broker from its settings."""


class LoginModule(NamedTuple):
    """``class_name`` has no package. Error texts show ``title`` instead, as it may be a misplaced password."""

    class_name: str
    options: Mapping[str, str]

    @property
    def title(self) -> str:
        """The class name, if it looks like one of a login module; else a substitute."""
        return self.class_name if self.class_name.endswith("LoginModule") else "the login module"

    def __repr__(self) -> str:
        return f"LoginModule({self.title}, options: {len(self.options)})"  # names and values may be secrets
