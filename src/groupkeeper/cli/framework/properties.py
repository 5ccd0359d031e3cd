"""The rules of Kafka's admin client for the values of its properties."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from groupkeeper.cli.java.values import trim
from groupkeeper.java_numbers import INT_MAX, LONG_MAX, parse_number


class BadValue(ValueError):
    """A property whose value its rule doesn't allow. The text is Kafka's."""


class PropertyRule(NamedTuple):
    """The rule for a value: its type, and the least and greatest number, or the allowed texts."""

    type: str
    least: float | None = None
    greatest: float | None = None
    allowed: tuple[str, ...] = ()
    any_case: bool = False


_NOT_NEGATIVE = PropertyRule("LONG", 0)

# The rules of Kafka's AdminClientConfig that can refuse a value, in the order in which it checks them.
ADMIN_RULES: Mapping[str, PropertyRule] = {
    "metadata.max.age.ms": _NOT_NEGATIVE,
    "send.buffer.bytes": PropertyRule("INT", -1),
    "receive.buffer.bytes": PropertyRule("INT", -1),
    "reconnect.backoff.ms": _NOT_NEGATIVE,
    "reconnect.backoff.max.ms": _NOT_NEGATIVE,
    "retry.backoff.ms": _NOT_NEGATIVE,
    "retry.backoff.max.ms": _NOT_NEGATIVE,
    "enable.metrics.push": PropertyRule("BOOLEAN"),
    "request.timeout.ms": PropertyRule("INT", 0),
    "socket.connection.setup.timeout.ms": PropertyRule("LONG"),
    "socket.connection.setup.timeout.max.ms": PropertyRule("LONG"),
    "connections.max.idle.ms": PropertyRule("LONG"),
    "retries": PropertyRule("INT", 0, INT_MAX),
    "default.api.timeout.ms": PropertyRule("INT", 0),
    "metrics.sample.window.ms": _NOT_NEGATIVE,
    "metrics.num.samples": PropertyRule("INT", 1),
    "metrics.recording.level": PropertyRule("STRING", allowed=("INFO", "DEBUG", "TRACE")),
    "client.dns.lookup": PropertyRule(
        "STRING", allowed=("use_all_dns_ips", "resolve_canonical_bootstrap_servers_only")
    ),
    "security.protocol": PropertyRule(
        "STRING", allowed=("PLAINTEXT", "SASL_PLAINTEXT", "SASL_SSL", "SSL"), any_case=True
    ),
    "sasl.kerberos.ticket.renew.window.factor": PropertyRule("DOUBLE"),
    "sasl.kerberos.ticket.renew.jitter": PropertyRule("DOUBLE"),
    "sasl.kerberos.min.time.before.relogin": PropertyRule("LONG"),
    "sasl.login.refresh.window.factor": PropertyRule("DOUBLE", 0.5, 1.0),
    "sasl.login.refresh.window.jitter": PropertyRule("DOUBLE", 0.0, 0.25),
    "sasl.login.refresh.min.period.seconds": PropertyRule("SHORT", 0, 900),
    "sasl.login.refresh.buffer.seconds": PropertyRule("SHORT", 0, 3600),
    "sasl.login.connect.timeout.ms": PropertyRule("INT"),
    "sasl.login.read.timeout.ms": PropertyRule("INT"),
    "sasl.login.retry.backoff.max.ms": PropertyRule("LONG"),
    "sasl.login.retry.backoff.ms": PropertyRule("LONG"),
    "sasl.oauthbearer.assertion.algorithm": PropertyRule("STRING", allowed=("ES256", "RS256"), any_case=True),
    "sasl.oauthbearer.assertion.claim.exp.seconds": PropertyRule("INT", 0, 86400),
    "sasl.oauthbearer.assertion.claim.jti.include": PropertyRule("BOOLEAN"),
    "sasl.oauthbearer.assertion.claim.nbf.seconds": PropertyRule("INT", 0, 3600),
    "sasl.oauthbearer.jwks.endpoint.refresh.ms": PropertyRule("LONG"),
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms": PropertyRule("LONG"),
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms": PropertyRule("LONG"),
    "sasl.oauthbearer.clock.skew.seconds": PropertyRule("INT"),
    "sasl.oauthbearer.header.urlencode": PropertyRule("BOOLEAN"),
    "metadata.recovery.strategy": PropertyRule("STRING", allowed=("NONE", "REBOOTSTRAP"), any_case=True),
    "metadata.recovery.rebootstrap.trigger.ms": _NOT_NEGATIVE,
}

_OTHER_NAMES = """
bootstrap.servers client.id metric.reporters
sasl.client.callback.handler.class sasl.jaas.config sasl.kerberos.kinit.cmd sasl.kerberos.service.name
sasl.login.callback.handler.class sasl.login.class sasl.mechanism
sasl.oauthbearer.client.credentials.client.id sasl.oauthbearer.client.credentials.client.secret
sasl.oauthbearer.expected.audience sasl.oauthbearer.expected.issuer sasl.oauthbearer.jwks.endpoint.url
sasl.oauthbearer.jwt.retriever.class sasl.oauthbearer.jwt.validator.class sasl.oauthbearer.scope
sasl.oauthbearer.scope.claim.name sasl.oauthbearer.sub.claim.name sasl.oauthbearer.token.endpoint.url
security.providers
ssl.cipher.suites ssl.enabled.protocols ssl.endpoint.identification.algorithm ssl.engine.factory.class
ssl.key.password ssl.keymanager.algorithm ssl.keystore.certificate.chain ssl.keystore.key ssl.keystore.location
ssl.keystore.password ssl.keystore.type ssl.protocol ssl.provider ssl.secure.random.implementation
ssl.trustmanager.algorithm ssl.truststore.certificates ssl.truststore.location ssl.truststore.password
ssl.truststore.type
""".split()
"""Names of the admin client's properties that have no rule, as far as one may set them in a file."""

_IS_NEAR = 0.85


def misspelt(properties: Mapping[str, str]) -> dict[str, str]:
    """Unknown property names, each with the similar known name.

    Names that resemble none, as those of producers and consumers, are left out: one file often serves several clients.
    """
    from difflib import get_close_matches

    known = [*ADMIN_RULES, *_OTHER_NAMES]
    unknown = [name for name in properties if name not in known and name not in _OF_OTHER_CLIENTS]
    near = {name: get_close_matches(name, known, n=1, cutoff=_IS_NEAR) for name in unknown}
    return {name: found[0] for name, found in near.items() if found}


_OF_OTHER_CLIENTS = ("bootstrap.controllers", "metadata.max.idle.ms", "sasl.server.callback.handler.class")
"""Properties of Kafka's clients that resemble one of the admin client's."""

_INTEGERS = {"INT": INT_MAX, "LONG": LONG_MAX, "SHORT": 2**15 - 1}


def check_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties with blanks around the values taken off. Raises BadValue for the first that isn't right."""
    checked = {name: trim(value) if name in ADMIN_RULES else value for name, value in properties.items()}
    for name, rule in ADMIN_RULES.items():
        if name in checked:
            problem = _problem(checked[name], rule)
            if problem is not None:
                raise BadValue(f"Invalid value {checked[name]} for configuration {name}: {problem}")
    return checked


def _problem(text: str, rule: PropertyRule) -> str | None:
    if rule.type == "BOOLEAN":
        return None if text.lower() in ("true", "false") else "Expected value to be either true or false"
    if rule.type == "STRING":
        texts = [each.upper() for each in rule.allowed] if rule.any_case else rule.allowed
        if (text.upper() if rule.any_case else text) in texts:
            return None
        case = " (case insensitive)" if rule.any_case else ""
        return f"String must be one of{case}: {', '.join(rule.allowed)}"
    number: float | None
    if rule.type == "DOUBLE":
        try:
            number = float(text)
        except ValueError:
            number = None
    else:
        number = parse_number(text, _INTEGERS[rule.type])
    if number is None:
        return f"Not a number of type {rule.type}"
    if rule.least is not None and number < rule.least:
        return f"Value must be at least {rule.least}"
    if rule.greatest is not None and number > rule.greatest:
        return f"Value must be no more than {rule.greatest}"
    return None
