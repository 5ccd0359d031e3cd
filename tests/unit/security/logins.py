"""A login by each SASL mechanism: what a client says, and what a listener has to know."""

from typing import NamedTuple

from groupkeeper.security.mechanisms import MECHANISMS

PASSWORD = 'open "=,\\ \u20ac'
USERS = {"alice": PASSWORD}


class Sample(NamedTuple):
    """Options of login modules. `wrong`: of clients that are refused; `listener`: of the listener, None: it has no
    login module. `foreign`: how the client's first message begins, and how if it were to act as bob; None: it
    never can.
    """

    client: str
    wrong: tuple[str, ...] = ()
    listener: str | None = None
    principal: str = "User:alice"
    foreign: tuple[bytes, bytes] | None = (b"n,,", b"n,a=bob,")


_QUOTED = PASSWORD.replace("\\", "\\\\").replace('"', '\\"')
NOBODY = f'username="nobody" password="{_QUOTED}"'
OF_USERS = Sample(
    f'username="alice" password="{_QUOTED}"',
    ('username="alice" password="guess"', NOBODY, f'{NOBODY} tokenauth="true"'),
)
SAMPLES = {
    **{each.name: OF_USERS for each in MECHANISMS.values() if each.has_users},
    "PLAIN": OF_USERS._replace(foreign=(b"\0", b"bob\0")),
    "OAUTHBEARER": Sample(
        'unsecuredLoginStringClaim_sub="alice"',
        ('unsecuredLoginStringClaim_sub="alice" unsecuredLoginLifetimeSeconds="-9"',),
    ),
}


def login_module(mechanism: str, options: str) -> str:
    """A text of sasl.jaas.config."""
    return f"org.apache.kafka.common.security.{MECHANISMS[mechanism].login_module} required {options};"


def properties(mechanism: str, options: str | None = None) -> dict[str, str]:
    """A client's, with the options of its login module; None: those of the sample."""
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": login_module(mechanism, SAMPLES[mechanism].client if options is None else options),
    }


def settings() -> dict[str, str]:
    """A broker's, whose only listener takes the samples; its users are `USERS`."""
    modules = {
        f"listener.name.secure.{name.lower()}.sasl.jaas.config": login_module(name, sample.listener)
        for name, sample in SAMPLES.items()
        if sample.listener is not None
    }
    return {
        "listeners": "SECURE://127.0.0.1:0",
        "listener.security.protocol.map": "SECURE:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        "connection.failed.authentication.delay.ms": "0",
        **modules,
    }
