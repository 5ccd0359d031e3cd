"""sasl.jaas.config: one login module with its options, read as Kafka's JaasConfig does. Values stay out of errors."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from groupkeeper.security.errors import BadCredentials
from groupkeeper.security.mechanisms import MECHANISMS
from groupkeeper.security.mechanisms.mechanism import NAME, LoginModule

_KERBEROS = ("serviceName", "keyTab", "principal", "useKeyTab", "storeKey", "useTicketCache")
_OPTIONS = {*_KERBEROS, *(name for each in MECHANISMS.values() for name in (*each.needs, *each.options))}
"""Options that error texts may name. Any other word may be part of an unquoted password."""

_FLAGS = ("required", "requisite", "sufficient", "optional")
_TOKEN = re.compile(
    r"""\s+ | //[^\r\n]* | /\*.*?\*/ | (?P<open>/\*)
    | (?P<word>[A-Za-z_$\u00a0-\uffff][\w.$\-\u00a0-\uffff]*)
    | (?P<number>[\d.\-][\w.$\-]*)
    | "(?P<double>(?:\\.|[^"\\\r\n])*)" | '(?P<single>(?:\\.|[^'\\\r\n])*)'
    | (?P<quote>["'])
    | (?P<sign>.)""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\([0-3][0-7]{0,2}|[0-7]{1,2}|.)", re.DOTALL)
_CONTROL = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


class _Token(NamedTuple):
    kind: str  # word, number, text (quoted), sign
    text: str


def parse_jaas(text: str) -> LoginModule:
    """The only login module in a configuration. Raises BadCredentials, whose text has no values."""
    tokens = list(_tokens(text))
    modules = []
    position = 0
    while position < len(tokens):
        module, position = _module(tokens, position)
        modules.append(module)
    if not modules:
        raise _bad("it has no login module")
    if len(modules) > 1:
        raise _bad(f"it has {len(modules)} login modules, and only one is allowed")
    return modules[0]


def parse_jaas_file(text: str) -> dict[str, list[LoginModule]]:
    """The login modules of a JAAS file by section, `KafkaServer { … };`. Raises BadCredentials."""
    tokens = list(_tokens(text))
    sections: dict[str, list[LoginModule]] = {}
    position = 0
    while position < len(tokens):
        name = tokens[position]
        if name.kind not in ("word", "text") or tokens[position + 1 : position + 2] != [_Token("sign", "{")]:
            raise BadCredentials("a section must begin with its name and '{', as in: KafkaServer { … };")
        position += 2
        modules = []
        while tokens[position : position + 1] != [_Token("sign", "}")]:
            if position >= len(tokens):
                raise _unended(name)
            module, position = _module(tokens, position)
            modules.append(module)
        if tokens[position + 1 : position + 2] != [_Token("sign", ";")]:
            raise _unended(name)
        sections[name.text] = modules
        position += 2
    return sections


def _unended(section: _Token) -> BadCredentials:
    known = f" {section.text}" if section.text.endswith(("KafkaServer", "KafkaClient")) else ""
    return BadCredentials(f"section{known} does not end with '}};'")


def _module(tokens: list[_Token], position: int) -> tuple[LoginModule, int]:
    name = tokens[position]
    if name.kind not in ("word", "text"):
        raise _bad("it must begin with the class name of a login module")
    class_name = name.text.rpartition(".")[2]
    shown = LoginModule(class_name, {}).title
    if position + 1 >= len(tokens) or tokens[position + 1].text.lower() not in _FLAGS:
        raise _bad(f"after the class name of {shown} the word 'required' must follow")
    position += 2
    options: dict[str, str] = {}
    while position < len(tokens):
        token = tokens[position]
        if token == _Token("sign", ";"):
            return LoginModule(class_name, options), position + 1
        if token.kind == "sign":
            raise _bad(f"a character in the options of {shown} is out of place: put values in double quotes")
        if position + 2 >= len(tokens) or tokens[position + 1] != _Token("sign", "="):
            raise _bad(f"{_option(token)} of {shown} has no value, or no ';': put values with blanks in double quotes")
        value = tokens[position + 2]
        if value.kind not in ("word", "text"):
            raise _bad(f"the value of {_option(token)} of {shown} must be in double quotes")
        options[token.text] = value.text
        position += 3
    raise _bad(f"the entry of {shown} must end with a semicolon")


def _option(token: _Token) -> str:
    return f"the option {token.text}" if token.text in _OPTIONS else "an option"


def _tokens(text: str) -> Iterator[_Token]:
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup
        if kind in ("double", "single"):
            yield _Token("text", _unescaped(match[kind]))
        elif kind == "quote":
            raise _bad("a quote is not closed")
        elif kind == "open":
            raise _bad("a comment is not closed")
        elif kind is not None:
            yield _Token(kind, match[kind])


def _unescaped(text: str) -> str:
    def replace(match: re.Match[str]) -> str:
        code = match[1]
        return chr(int(code, 8)) if code[0] in "01234567" else _CONTROL.get(code, code)

    return _ESCAPE.sub(replace, text)


def _bad(reason: str) -> BadCredentials:
    example = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="…" password="…";'
    return BadCredentials(f"{NAME}: {reason}. Example: {example}")
