"""`groupkeeper broker`: runs the embedded broker in the foreground until a signal stops it."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
from collections.abc import Coroutine
from typing import Any

from groupkeeper.base_error import InvalidSetting
from groupkeeper.broker.broker import Broker
from groupkeeper.broker.storage.open_files import raise_descriptor_limit
from groupkeeper.cli.framework import garbage
from groupkeeper.cli.framework.commands import ArgumentParser, Command, build_words
from groupkeeper.cli.framework.logs import add_log_format, log_to_stderr
from groupkeeper.coroutines import run_coroutine
from groupkeeper.java_properties import BadEscape, name_in, parse_properties
from groupkeeper.security.mechanisms import MECHANISMS

_DEFAULT_PORT = 9092
_EXIT_BAD_START = 1
_LOGIN = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="USER" password="PASSWORD";'
"""The login of a client, with the values that its user has to fill in."""
_EXIT_FORCED = 130


def run(arguments: argparse.Namespace) -> int:
    """Runs a broker; returns its exit status. Blocks until SIGTERM or SIGINT; a second signal ends it at once."""
    _open_standard_streams()
    raise_descriptor_limit()
    garbage.stop_looking()  # until all is loaded: nothing of that is garbage
    log_to_stderr(arguments, "[%(asctime)s] %(levelname)s %(message)s")
    try:
        properties = _properties(arguments)
        users = _users(arguments.add_user)
        broker = Broker(
            port=arguments.port,
            directory=arguments.data,
            properties=properties,
            users=users,
            acls=arguments.add_acl,
            tls=arguments.tls,
            brokers=arguments.brokers,
            racks=arguments.racks.split(",") if arguments.racks else (),
        )
    except InvalidSetting as error:
        arguments.refuse(str(error))
    except OSError as error:
        arguments.refuse(f"cannot read {error.filename}: {error.strerror}")
    try:
        return _run_loop(_serve(broker, arguments.tls))
    except InvalidSetting as error:
        return _fail(str(error))
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return _fail(f"{where}{error.strerror or error}")


def _open_standard_streams() -> None:
    """Opens closed standard streams: otherwise (`>&-`) a socket would get a stream's number, and be mistaken for it."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)


def _add_arguments(parser: ArgumentParser) -> None:
    users = ", ".join(dict.fromkeys(each.family or each.name for each in MECHANISMS.values() if each.has_users))
    parser.add_argument("--config", metavar="FILE", help="settings in a Java properties file, with Kafka's names")
    parser.add_argument(
        "--port",
        type=_port,
        metavar="N",
        help="listen on port N, on the host of the file's first listener, else 127.0.0.1; 0: any free port; default: "
        "the file's port, else 9092",
    )
    parser.add_argument(
        "--data", metavar="DIR", help="data directory, which overrides the file's; default: log.dirs, else kafka-logs"
    )
    parser.add_argument(
        "--property",
        action="append",
        metavar="NAME=VALUE",
        help="a setting, which overrides the file's; of one of several nodes with its id: 2:log.retention.ms=60000",
    )
    parser.add_argument(
        "--add-user",
        action="append",
        metavar="NAME=PASSWORD",
        help=f"a user that authenticates by SASL ({users}); if the file has no listeners, all clients must "
        "authenticate",
    )
    parser.add_argument(
        "--add-acl",
        action="append",
        metavar="ACL",
        help="what clients may do (an ACL): 'alice READ,DESCRIBE GROUP billing-*' or 'DENY bob ALL TOPIC *'; "
        "once an ACL is given, all that no ACL allows is refused",
    )
    parser.add_argument(
        "--tls",
        action="store_true",
        help="create a throw-away CA and a certificate in the data directory, and print the settings that clients "
        "need; if the file has no listeners, clients must use TLS",
    )
    parser.add_argument(
        "--brokers",
        type=_count,
        default=1,
        metavar="N",
        help="a cluster of N nodes in this process, with ids and ports one after the other; default: 1",
    )
    parser.add_argument("--racks", metavar="RACK,...", help="the racks of these nodes")
    parser.add_argument(
        "--lenient-replication",
        action="store_true",
        help="create topics with as many replicas as there are nodes when clients ask for more, instead of refusing",
    )
    add_log_format(parser)


def _port(text: str) -> int:
    if not text.isdigit() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port (0 to 65535)")
    return int(text)


def _count(text: str) -> int:
    if not text.isdigit() or not 0 < int(text) <= 100:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of brokers (1 to 100)")
    return int(text)


def _properties(arguments: argparse.Namespace) -> dict[str, str]:
    properties = {}
    if arguments.config is not None:
        try:
            with open(arguments.config, encoding="utf-8") as file:
                properties = parse_properties(file.read())
        except UnicodeDecodeError:
            raise InvalidSetting(f"cannot read {arguments.config}: it is not UTF-8 text") from None
        except BadEscape as error:
            raise InvalidSetting(f"cannot read {arguments.config}: line {error.line}: malformed \\u escape") from None
    for given in arguments.property:
        name, separator, value = given.partition("=")
        if not separator:
            raise InvalidSetting(f"--property {name_in(given) or '…'}: expected NAME=VALUE")
        properties[name.strip()] = value.strip()
    if arguments.lenient_replication:
        properties["groupkeeper.lenient.replication"] = "true"
    if "listeners" not in properties and arguments.port is None:
        arguments.port = _DEFAULT_PORT
    if arguments.data is None and "log.dirs" not in properties:
        properties["log.dirs"] = properties.get("log.dir", "kafka-logs")
    return properties


def _users(given: list[str]) -> dict[str, str]:
    users = {}
    for one in given:
        name, separator, password = one.partition("=")
        if not name or not password:
            raise InvalidSetting(f"--add-user {(separator and name) or '…'}: expected NAME=PASSWORD")
        users[name] = password
    return users


def _run_loop(main: Coroutine[Any, Any, int]) -> int:
    try:
        import uvloop
    except ImportError:
        return run_coroutine(main)
    return run_coroutine(main, uvloop.new_event_loop)


async def _serve(broker: Broker, has_own_ca: bool) -> int:
    loop = asyncio.get_running_loop()
    stopped = asyncio.Event()

    def stop() -> None:
        if stopped.is_set():
            sys.exit(_EXIT_FORCED)
        stopped.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    async with broker:
        nodes = ",".join(map(str, broker.fronts))
        print(f"groupkeeper broker {nodes}{build_words()} is ready on {broker.bootstrap_servers}", flush=True)
        if has_own_ca:
            properties = broker.client_properties()
            if "sasl.mechanism" in properties:
                properties["sasl.jaas.config"] = _LOGIN
            print("".join(f"{name}={value}\n" for name, value in properties.items()), end="", flush=True)
        loading = loop.create_task(collect_but_what_is_loaded(broker))
        await stopped.wait()
        loading.cancel()
    return 0


async def collect_but_what_is_loaded(broker: Broker) -> None:
    """Collects garbage once the groups are loaded, but without looking through them: with a million offsets that takes
    0.2 s, in which no request is answered. Collections are rare, as a long request may have many objects.
    """
    await broker.groups.wait_until_loaded()
    garbage.keep_all()
    garbage.look_less_often()
    garbage.look_again()


def _fail(why: str) -> int:
    print(f"groupkeeper broker: {why}", file=sys.stderr)
    return _EXIT_BAD_START


COMMAND = Command(
    _add_arguments,
    run,
    "Run the embedded Kafka broker in the foreground: one process is a whole cluster, of one node or of several.",
    """\
  groupkeeper broker
  groupkeeper broker --port 9092 --data data --property auto.create.topics.enable=false
  groupkeeper broker --brokers 3 --racks a,b,c""",
)
