"""`groupkeeper` itself: what programs import, and what that costs."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

import pytest

import groupkeeper

SOURCE = Path(groupkeeper.__file__).read_text()


def modules_after(program: str) -> set[str]:
    """The modules of the package that a program has imported."""
    names = "print(*[name for name in sys.modules if name.startswith('groupkeeper')])"
    command = [sys.executable, "-c", f"import sys\n{program}\n{names}"]
    return set(subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.split())


def test_every_name_is_there() -> None:
    for name in groupkeeper.__all__:
        assert getattr(groupkeeper, name) is not None
    assert set(groupkeeper.__all__) <= set(dir(groupkeeper))
    with pytest.raises(AttributeError, match="no attribute 'Admim'"):
        getattr(groupkeeper, "Admim")  # noqa: B009


def test_type_checkers_see_the_names_where_they_are() -> None:
    """Those under TYPE_CHECKING are those that are imported at run time, from the same modules."""
    seen = {
        alias.name: node.module
        for node in ast.walk(ast.parse(SOURCE))
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("groupkeeper")
        for alias in node.names
    }
    assert seen == groupkeeper._MODULE_BY_NAME


def test_nothing_is_imported_before_it_is_used() -> None:
    assert modules_after("import groupkeeper") == {"groupkeeper"}
    assert "groupkeeper.broker" not in modules_after("from groupkeeper import Admin")


def test_errors_are_those_that_calls_raise() -> None:
    from groupkeeper import errors
    from groupkeeper.client.errors import ClientError, UnsupportedVersion
    from groupkeeper.protocol.errors import GroupIdNotFound, KafkaError

    assert errors.UnsupportedVersion is UnsupportedVersion
    assert (errors.ClientError, errors.KafkaError, errors.GroupIdNotFound) == (ClientError, KafkaError, GroupIdNotFound)
    names: dict[str, object] = {}
    exec("from groupkeeper.errors import *", names)
    names.pop("__builtins__")
    assert all(isinstance(each, type) and issubclass(each, Exception) for each in names.values())
    assert names["UnsupportedVersion"] is UnsupportedVersion


def test_the_failure_that_all_raises_has_one_note_with_its_key() -> None:
    from groupkeeper import Batch, TopicPartition
    from groupkeeper.protocol.errors import UnknownTopicOrPartition

    batch = Batch[TopicPartition, int](failed={TopicPartition("orders", 3): UnknownTopicOrPartition()})
    for _ in range(2):
        with pytest.raises(UnknownTopicOrPartition) as raised:
            batch.all()
        (note,) = raised.value.__notes__
        assert "orders" in note
        assert "3" in note


def test_one_base_catches_every_error_of_calls_plans_and_settings() -> None:
    from groupkeeper import GroupkeeperError, client, errors, operations
    from groupkeeper.broker import settings
    from groupkeeper.pipeline.errors import SourceError
    from groupkeeper.security.errors import BadCredentials

    assert errors.GroupkeeperError is GroupkeeperError
    found = {
        each
        for package in (client, operations, settings)
        for module in walk_packages(package.__path__, f"{package.__name__}.")
        for name, each in vars(import_module(module.name)).items()
        if isinstance(each, type) and issubclass(each, Exception) and not name.startswith("_")
        if each.__module__.startswith(package.__name__)
    }
    assert len(found) > 40
    found |= {SourceError, BadCredentials, errors.KafkaError}
    assert [each for each in found if not issubclass(each, GroupkeeperError)] == []


def test_errors_of_unusable_arguments_are_value_errors_too() -> None:
    from groupkeeper import Broker, GroupkeeperError

    for base in (GroupkeeperError, ValueError):
        with pytest.raises(base, match=r"num\.partitions"):
            Broker(properties={"num.partitions": "many"})
