"""The committed code is what the generator makes of the committed schemas, and those are what the official jars say."""

import pytest
from tools.apache_kafka import NEWEST, cache_folder
from tools.protocol import extract, generate, schema


def test_generated_files_are_up_to_date() -> None:
    outputs = generate.outputs()
    committed = {path: path.read_text() for path in (generate.PROTOCOL / "messages").glob("*.py")}
    for name in ("index.py", "errors.py"):
        committed[generate.PROTOCOL / name] = (generate.PROTOCOL / name).read_text()
    assert set(outputs) == set(committed)
    old = [path.name for path, text in outputs.items() if committed[path] != text]
    assert not old, "run `python -m tools.protocol.generate`"


def test_schemas_are_those_of_the_jars() -> None:
    jars = cache_folder(NEWEST) / "jars"
    if not jars.is_dir():
        pytest.skip("Apache Kafka's jars are not here (make conformance fetches them)")
    assert extract.schemas_text(jars) == generate.SCHEMAS.read_text()


def test_fields_of_a_newer_kafka_do_not_move_arguments() -> None:
    (known,) = schema.load("data D versions 0 flexible none\n  a int8 0+\n  b int8 0+\n")
    (found,) = schema.load("data D versions 0-1 flexible none\n  a int8 0+\n  new int8 1+\n  b int8 0+\n")
    extract.mark_later([found], [known])
    assert [each.name for each in found.root.fields] == ["a", "new", "b"]
    assert [each.name for each in found.root.arguments] == ["a", "b", "new"]
    code = generate.module_text(found)
    assert '("a", "b", "new")' in code
    assert "D(a_a, a_b, a_new)" in code
    extract.mark_later([again := next(schema.load(schema.dump([found])))], [found])
    assert again == found


def test_the_description_is_read_as_it_is_written() -> None:
    messages = list(schema.load(generate.SCHEMAS.read_text()))
    assert list(schema.load(schema.dump(messages))) == messages
