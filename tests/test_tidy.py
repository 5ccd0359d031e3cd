"""The mechanical limits of the code base, checked in one place (complexity and layers: `make check`)."""

import ast
import gc
import importlib
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Set
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest
from tools.conformance import FULL_TESTS

from groupkeeper.broker.api_table import TABLE
from groupkeeper.rules.progress import Trend
from groupkeeper.rules.status import Status

pytestmark = pytest.mark.timeout(240)  # reading all modules takes 10 s, and minutes on a busy machine
ROOT = Path(__file__).resolve().parent.parent
PROTOCOL = "src/groupkeeper/protocol/"
GENERATED = (
    f"{PROTOCOL}messages/", f"{PROTOCOL}index.py", f"{PROTOCOL}errors.py", "src/groupkeeper/api/sync_admin.py",
)  # fmt: skip
MAX_MODULE_LINES = 600
MAX_FUNCTION_LINES = 60
MAX_FIELDS_TOGETHER = 5  # that the docstring of a class may explain
MAX_MODULES = 20  # in a folder
LISTINGS = ("src/groupkeeper/protocol/messages", "src/groupkeeper/broker/apis")  # one module for each message or API
BANNED_WORDS = frozenset(["manager", "managers", "helper", "helpers", "util", "utils", "data", "info", "process"])
# `except Exception` is for the two outermost loops only: how many each file may have.
BROAD_EXCEPT_ALLOWED = {
    "src/groupkeeper/broker/coordination/group_shard.py": 1,  # as FailStop, where every commit comes by
    "src/groupkeeper/broker/coordination/shard_host.py": 1,
    "src/groupkeeper/broker/log/cleaner.py": 3,  # the loop of the cleaner; one log in retention, and in compaction
    "src/groupkeeper/broker/network/acceptor.py": 1,  # the loop that takes connections
    "src/groupkeeper/broker/network/connection.py": 2,  # serving: as bytes arrive, and the task; logins too
    "src/groupkeeper/broker/network/server.py": 2,  # requests that are answered at once, and those that wait
    "src/groupkeeper/broker/shares/leader.py": 1,  # the loop that stores the ends of locks
    "src/groupkeeper/cli/main.py": 1,
}
# Paths of somebody's machine; written in pieces so that this file does not name one.
HOMES = "|".join(["ro" + "ot", "wo" + "rk", "ho" + "me", "Us" + "ers"])
MACHINE_PATH = re.compile(rf"(?<![\w.<>/-])/(?:{HOMES})/\w")
INDEX_OPTION = re.compile(r"://|^\s*(-i|-f|--(extra-)?index-url|--find-links|--trusted-host)\b")

REQUIREMENT = re.compile(r"\b(K\d{2,4}|G[A-Z])-\d{2}\b")

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


class Code(NamedTuple):
    """What the tests look at in a module; whole trees of all modules would need too much memory.

    `names` and `functions` have line, name and length of classes and functions; `imports` the line, module (empty
    for `import x`) and names; `broad` the lines of `except Exception` that do not raise it again.
    """

    name: str
    text: str
    names: list[tuple[int, str]]
    functions: list[tuple[int, str, int]]
    imports: list[tuple[int, str, list[str]]]
    broad: list[int]
    words: list[tuple[int, str]]
    """Texts in the code that are a word of VERDICTS."""
    plain: set[str]
    """Functions outside classes that no decorator hands to somebody else."""
    unexplained: list[tuple[int, str]]
    """Fields of large classes that are not explained where they stand."""


VERDICTS = {*(set(Status) - {Status.OK, Status.UNKNOWN}), *Trend, "overdue"}


SHARED = frozenset(
    """
    Acl AclFilter Admin Checkpoint Cluster Column Config Connection Group GroupState GroupType Member
    Problem Security Settings ShareSession Step Token _Reader
    """.split()
)
"""Names of classes that more than one module has."""

UNNAMED = frozenset(["__dir__", "pytest_configure"])
"""Functions that nothing in src/ names: Python and pytest call them."""


def code_of(name: str) -> Code:
    text = (ROOT / name).read_text(encoding="utf-8")
    tree = ast.parse(text, name)
    code = Code(name, text, [], [], [], [], [], plain_functions(tree), [])
    for node in ast.walk(tree):
        if isinstance(node, Definition):
            code.names.append((node.lineno, node.name))
            if isinstance(node, ast.ClassDef):
                code.unexplained.extend(unexplained(node))
            else:
                code.functions.append((node.lineno, node.name, (node.end_lineno or 0) - node.lineno + 1))
        elif isinstance(node, ast.ImportFrom):
            code.imports.append((node.lineno, node.module or "", [one.name for one in node.names]))
        elif isinstance(node, ast.Import):
            code.imports.append((node.lineno, "", [one.name for one in node.names]))
        elif isinstance(node, ast.ExceptHandler):
            if is_broad(node) and not passes_on(node):
                code.broad.append(node.lineno)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in VERDICTS:
            code.words.append((node.lineno, node.value))
    return code


def plain_functions(tree: ast.Module) -> set[str]:
    functions = [one for one in tree.body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)]
    return {one.name for one in functions if not one.decorator_list}


def unexplained(node: ast.ClassDef) -> Iterator[tuple[int, str]]:
    """Fields of a large tuple or dataclass that its docstring explains, or, if others use it, that may be None without
    a line under them. A sentence of the docstring may say what None means in all fields without one.
    """
    fields = {one: after for one, after in pairwise([*node.body, None]) if isinstance(one, ast.AnnAssign)}
    kinds = {ast.unparse(one).partition("(")[0] for one in (*node.bases, *node.decorator_list)}
    if len(fields) <= MAX_FIELDS_TOGETHER or not kinds & {"NamedTuple", "dataclass"}:
        return
    above = ast.get_docstring(node) or ""
    says_none = re.search(r"\bNone( in [^:.]+)?: |\bNone matches ", above)
    for field, after in fields.items():
        name = ast.unparse(field.target)
        has_line = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
        if re.search(rf"`{name}`|^ *{name}:", above, re.MULTILINE):
            yield field.lineno, f"{node.name}.{name}: move what the docstring says to a line under the field"
        elif not (has_line or says_none or node.name.startswith("_")) and "None" in ast.unparse(field.annotation):
            yield field.lineno, f"{node.name}.{name}: say under the field what None means"


@pytest.fixture(scope="module")
def modules() -> list[Code]:
    """All modules that people write."""
    gc.disable()  # trees have no circles: looking for them takes half of the time
    try:
        return [code_of(name) for name in tracked_files() if name.endswith(".py") and not name.startswith(GENERATED)]
    finally:
        gc.enable()


def tracked_files() -> list[str]:
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listing = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    if listing.returncode != 0:
        pytest.skip("not a git checkout")
    return [name for name in listing.stdout.decode().split("\0") if name and (ROOT / name).is_file()]


def words(identifier: str) -> set[str]:
    """The lower-case words of a snake_case or CamelCase name."""
    return {word.lower() for word in re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])", identifier)}


def test_modules_are_short(modules: list[Code]) -> None:
    long = {module.name: len(module.text.splitlines()) for module in modules}
    assert {name: lines for name, lines in long.items() if lines > MAX_MODULE_LINES} == {}


def test_folders_are_small() -> None:
    count = Counter(str(Path(name).parent) for name in tracked_files() if re.match(r"(src|tests)/.*\.py$", name))
    assert {folder: found for folder, found in count.items() if found > MAX_MODULES and folder not in LISTINGS} == {}


def test_each_folder_says_what_belongs_there() -> None:
    modules = [Path(name) for name in tracked_files() if re.match(r"(src|tests|tools|bench)/.*\.py$", name)]
    folders = {one.parent for one in modules}
    assert {str(folder) for folder in folders if sentences_of(ROOT / folder / "__init__.py") < 2} == set()


def sentences_of(path: Path) -> int:
    """How many sentences a folder's docstring has: what belongs there, and what does not. 0 without one."""
    if not path.exists():
        return 0
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return len(re.findall(r"\w[\w`)\"…]*[.!?](?=\s|$)", text))


def test_tests_import_what_is_there(modules: list[Code]) -> None:
    """`make check` runs no other tests: an import of a module that was moved would be seen only later."""
    names = {Path(name).with_suffix("").as_posix().replace("/", ".") for name in tracked_files() if name[-3:] == ".py"}
    lost = []
    for module in modules:
        for line, source, imported in module.imports:
            if source.startswith("tests."):
                wanted = [f"{source}.{one}" for one in imported] if f"{source}.__init__" in names else [source]
                lost += [f"{module.name}:{line} {one}" for one in wanted if one not in names]
    assert lost == []


def test_what_make_test_leaves_out_is_run_by_another_target(modules: list[Code]) -> None:
    folders = tuple(f"{one}/" for one in (*FULL_TESTS, "tests/browser"))
    marked = [one.name for one in modules if one.name.startswith("tests/") and "mark.conformance" in one.text]
    assert len(marked) > 20
    assert [name for name in marked if not name.startswith(folders) and name != "tests/test_tidy.py"] == []


def test_parts_of_the_pipeline_that_commands_load_are_there(modules: list[Code]) -> None:
    """They are named in strings (`cli/pipeline/parts.py`), which no type checker follows."""
    names = {module_name(name) for name in tracked_files() if re.match(r"src/.*\.py$", name)}
    folders = {"job": "groupkeeper.pipeline.jobs", "part": "groupkeeper.pipeline"}
    loaded = [
        (module.name, f"{folders[kind]}.{part}")
        for module in modules
        if module.name.startswith("src/")
        for kind, part in re.findall(r'import_(job|part)\("([\w.]+)"\)', module.text)
    ]
    assert len(loaded) > 10
    assert [one for one in loaded if one[1] not in names] == []


def test_no_imports_go_in_circles(modules: list[Code]) -> None:
    """Those for types included: modules that need each other are one module, or lack a third."""
    own = {module_name(module.name): module for module in modules if module.name.startswith("src/")}
    imports = {name: imported(module, own.keys()) - {name} for name, module in own.items()}
    left = dict(imports)
    while ends := [module for module, needed in left.items() if not needed & left.keys()]:
        for module in ends:
            del left[module]
    used = {needed for module in left for needed in left[module]}
    assert sorted(left.keys() & used) == []


def test_imports_go_down_the_layers() -> None:
    command = [
        str(Path(sys.executable).with_name("lint-imports")),
        "--no-logo",
    ]  # called here, it would silence all loggers
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout + ended.stderr


def module_name(name: str) -> str:
    return ".".join(Path(name).relative_to("src").with_suffix("").parts).removesuffix(".__init__")


def imported(module: Code, known: Set[str]) -> set[str]:
    """What the module imports: modules, where an imported name is one."""
    found = set()
    for _, source, names in module.imports:
        inner = [f"{source}.{name}" if source else name for name in names]
        found |= {one if one in known or not source else source for one in inner}
    return found


def test_functions_are_short(modules: list[Code]) -> None:
    every = [(f"{one.name}:{line} {name}", lines) for one in modules for line, name, lines in one.functions]
    assert [(where, lines) for where, lines in every if lines > MAX_FUNCTION_LINES] == []


def test_fields_of_large_classes_are_explained_one_by_one(modules: list[Code]) -> None:
    """A paragraph about all fields of a class is read in full to find one, and nobody sees which one it lacks."""
    every = [(f"{one.name}:{line}", what) for one in modules for line, what in one.unexplained]
    assert [one for one in every if one[0].startswith("src/")] == []


def test_names_say_something(modules: list[Code]) -> None:
    # The name of a test is a sentence, and sentences may have any word.
    named = [
        (f"{module.name}:{line} {name}", words(name))
        for module in modules
        for line, name in module.names
        if not name.startswith("test_")
    ]
    named += [(module.name, words(Path(module.name).stem)) for module in modules]
    assert [where for where, parts in named if parts & BANNED_WORDS] == []


def test_a_class_has_a_name_of_its_own(modules: list[Code]) -> None:
    """SHARED is for the same idea on two sides, and may become shorter."""
    places: dict[str, set[str]] = {}
    for module in modules:
        if module.name.startswith("src/"):
            for _, name in module.names:
                if name.lstrip("_")[:1].isupper():
                    places.setdefault(name, set()).add(module.name)
    shared = {name: sorted(found) for name, found in places.items() if len(found) > 1}
    unknown = {name: found for name, found in shared.items() if name not in SHARED}
    assert unknown == {}, "another name, or, for the same idea on two sides, a line in SHARED"
    assert SHARED - shared.keys() == set()


def test_an_object_is_shown_by_the_name_of_its_class(modules: list[Code]) -> None:
    shown = re.compile(r'^class (\w+)(?:(?!^class ).)*?def __repr__\(self\) -> str:\s+return f?"(\w+)\(', re.M | re.S)
    texts = [(one.name, one.text) for one in modules if "def __repr__" in one.text]
    assert [(name, found) for name, text in texts for found in shown.findall(text) if found[0] != found[1]] == []


def test_functions_are_called(modules: list[Code]) -> None:
    """A check that nobody calls has no effect, and the setting that it reads counts as read."""
    sources = (path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    named = Counter(word for text in sources for word in re.findall(r"\w+", text))
    places = [(name, one.name) for one in modules if one.name.startswith("src/") for name in one.plain]
    defined = Counter(name for name, _ in places)
    idle = [(name, module) for name, module in places if named[name] == defined[name]]
    unknown = [one for one in idle if one[0] not in UNNAMED and one not in served()]
    assert unknown == [], "nothing in src/ calls these: call them where they matter, or delete them"
    assert UNNAMED - {name for name, _ in idle} == set()


def test_tuples_that_no_constructor_makes_have_all_fields(modules: list[Code]) -> None:
    """`tuple.__new__(Class, (…))` checks nothing, and mypy doesn't either."""
    for each in modules:
        if not each.name.startswith("src/") or "tuple.__new__" not in each.text:
            continue
        module = importlib.import_module(module_name(each.name))
        for call in ast.walk(ast.parse(each.text)):
            match call:
                case ast.Call(args=[ast.Name(id=name), ast.Tuple(elts=values)]):
                    fields = getattr(getattr(module, name, None), "_fields", values)
                    assert len(values) == len(fields), f"{each.name}:{call.lineno}: give each field of {name} a value"


def served() -> set[tuple[str, str]]:
    """The functions to which the table of APIs leads, with their modules."""
    folder, kinds = "src/groupkeeper/broker/apis", ("handle", "refuse")
    return {(f"{kind}{api.ending}", f"{folder}/{api.module}.py") for api in TABLE.values() for kind in kinds}


def test_broad_except_only_in_the_outermost_loops(modules: list[Code]) -> None:
    # A test's thread may carry any failure to the test that waits for it.
    found = {one.name: one.broad for one in modules if not one.name.startswith("tests/")}
    assert {name: lines for name, lines in found.items() if len(lines) > BROAD_EXCEPT_ALLOWED.get(name, 0)} == {}


def passes_on(handler: ast.ExceptHandler) -> bool:
    """Whether the handler only cleans up and raises the same exception again."""
    last = handler.body[-1]
    return isinstance(last, ast.Raise) and last.exc is None


def is_broad(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    caught = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(isinstance(one, ast.Name) and one.id in {"Exception", "BaseException"} for one in caught)


def test_interrupts_arrive_while_a_loop_starts(modules: list[Code]) -> None:
    own, begins = "src/groupkeeper/coroutines.py", re.compile(r"asyncio\.(run|Runner)\(")
    found = [one.name for one in modules if one.name.startswith("src/") and begins.search(one.text)]
    assert found == [own], f"run_coroutine of {own} takes no Ctrl-C for a cancelled task"


def test_verdicts_are_words_of_the_rules_only(modules: list[Code]) -> None:
    package = "src/groupkeeper/"
    elsewhere = [
        f"{module.name}:{line}: {word!r}"
        for module in modules
        if module.name.startswith(package) and not module.name.startswith(f"{package}rules/")
        for line, word in module.words
    ]
    assert elsewhere == []


def test_names_in_docstrings_stand_between_single_backticks(modules: list[Code]) -> None:
    double = re.compile(r"(?<!`)`{2}(?!`)")
    found = [
        f"{module.name}:{number}"
        for module in modules
        for number, line in enumerate(module.text.splitlines(), 1)
        if double.search(line)
    ]
    assert found == []


def test_a_text_stands_under_what_it_explains(modules: list[Code]) -> None:
    stray = re.compile(r'\n\n *"""')
    assert [each.name for each in modules if each.name.startswith("src/") and stray.search(each.text)] == []


def test_no_machine_paths() -> None:
    found = []
    for name in tracked_files():
        try:
            text = (ROOT / name).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        lines = enumerate(text.splitlines(), 1)
        found += [f"{name}:{number}: {line.strip()}" for number, line in lines if MACHINE_PATH.search(line)]
    assert found == []


def test_only_tests_name_points_of_the_specification() -> None:
    """Readers of sources and documentation would have to look them up: say the thing instead."""
    found = [
        f"{name}:{number}: {line.strip()}"
        for name in tracked_files()
        if name.startswith(("src/", "docs/", "README", "CHANGELOG")) and name.endswith((".py", ".md"))
        for number, line in enumerate((ROOT / name).read_text(encoding="utf-8").splitlines(), 1)
        if REQUIREMENT.search(line)
    ]
    assert found == []


def test_the_pages_of_serve_have_the_same_glossary() -> None:
    served = ROOT / "src/groupkeeper/web/files/glossary.md"
    for_users, _, _ = (ROOT / "docs/glossary.md").read_text().partition("## Words of the code")
    assert served.read_text() == for_users, "run `make docs`"


def test_requirements_name_no_index() -> None:
    for path in sorted((ROOT / "requirements").iterdir()):
        for line in path.read_text().splitlines():
            assert not INDEX_OPTION.search(line), (path.name, line)


def test_locks_hold_every_direct_dependency() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *extras["demo"]]
    served = [*project["dependencies"], *extras["security"], *extras["serve"]]
    every = [*wanted, *(name for extra in extras.values() for name in extra)]
    developed, driven = (
        [line for line in (ROOT / f"requirements/{name}.in").read_text().splitlines() if line and line[0] not in "#-"]
        for name in ("dev", "browser")
    )
    locks = {"demo.txt": wanted, "serve.txt": served, "dev.txt": every + developed, "browser.txt": driven}
    for lock, names in locks.items():
        locked = set(re.findall(r"^([a-z0-9.-]+)==", (ROOT / "requirements" / lock).read_text(), re.MULTILINE))
        needed = {re.split(r"[^A-Za-z0-9-]", name, maxsplit=1)[0] for name in names}
        assert needed - {project["name"]} <= locked, f"run `make lock` ({lock})"
