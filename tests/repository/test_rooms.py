"""The import arrows of docs/architecture.md: who may import whom. Read from the source, so no code path is missed."""

import ast
import gc
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import rvtrace_gdb

PACKAGE = Path(rvtrace_gdb.__file__).parent
NAME = PACKAGE.name
TESTS = Path(__file__).resolve().parent.parent

# room -> rooms it may import besides itself; `transport.simulated` is a room of its own inside `transport`, and the
# tables of options are one inside `gdbext`: they run without gdb.
TABLES = "gdbext tables"
TABLE_MODULES = ("gdbext.progress_bar", "gdbext.options", "gdbext.start_options")
# The table of encoder features is one inside `controlregs`: gdb's Python reads it, too.
FEATURES = "encoder features"
ARROWS: dict[str, set[str]] = {
    "support": set(),
    "rows": set(),
    "controlregs": {"support", FEATURES},
    "transport": {"support"},
    "decode": {"support"},
    "transport.simulated": {"support", "decode", "controlregs", "transport", FEATURES},
    "session": {
        "support", "controlregs", "transport", "transport.simulated", "decode", "views", "reports", "rows", FEATURES,
    },
    "views": {"support", "decode"},
    "reports": {"support", "decode", "views"},
    "console": {"support", "session", "views", "reports", "decode", "transport.simulated", "rows", TABLES, FEATURES},
    "gdbext": {"rows", TABLES},
    TABLES: {FEATURES},
    FEATURES: set(),
}
ROOMS = {name.partition(".")[0] for name in ARROWS if name not in (TABLES, FEATURES)}
FORKS = "session.fork", "session.replay.running_fork"
# What may come from outside the project: everything else is the standard library.
LIBRARIES = {
    "decode": {"demangle", "elftools"},
    "gdbext": {"gdb"},
    "console": {"anyio", "mcp", "prompt_toolkit", "pygdbmi", "riscv"},
    "session": {"zstandard"},
    "transport": {"usb"},
    "reports": {"jinja2"},
}


def room_of(module: str) -> str:
    """*module*: without the name of the package, as `decode.program.image`."""
    first_two = ".".join(module.split(".")[:2])
    if first_two in (*TABLE_MODULES, "controlregs.encoder_features"):
        return TABLES if first_two in TABLE_MODULES else FEATURES
    return "transport.simulated" if module.startswith("transport.simulated") else module.partition(".")[0]


def modules() -> Iterator[tuple[str, Path]]:
    """Each module of a room, `decode.program.image`, with its file."""
    for room in sorted(ROOMS):
        for path in sorted((PACKAGE / room).rglob("*.py")):
            yield ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__"), path


@cache
def tree(path: Path) -> ast.Module:
    """The syntax tree of a file, which several tests look at: it is not to be changed.

    Nothing in it is garbage, so that the collector, which would take three quarters of the time, does not look there,
    neither now nor later.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        return ast.parse(path.read_text(encoding="utf-8"))
    finally:
        gc.freeze()
        if collects:
            gc.enable()


@cache
def imports_of(path: Path) -> tuple[str, ...]:
    """Absolute names of all modules a file imports, at any depth; of this package in full: `from x import y` is x.y."""
    return tuple(_imports(path))


def _imports(path: Path) -> Iterator[str]:
    for node in statements(tree(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}, line {node.lineno}: imports here are absolute"
            assert node.module is not None
            inside = node.module.partition(".")[0] == NAME
            yield from (f"{node.module}.{alias.name}" for alias in node.names) if inside else [node.module]


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """What *node* has of statements, at any depth, without their expressions, which import nothing."""
    for field in ("body", "orelse", "finalbody", "handlers", "cases"):
        for inner in getattr(node, field, ()):
            yield inner
            yield from statements(inner)


def forbidden(room: str) -> Iterator[str]:
    """What the modules of *room* import and must not."""
    for module, path in modules():
        if room_of(module) != room:
            continue
        for imported in imports_of(path):
            top, _, rest = imported.partition(".")
            if top == NAME:
                allowed = not rest or rest == "__file__" or room_of(rest) in {room, *ARROWS[room]}
            else:
                allowed = top in sys.stdlib_module_names or top in LIBRARIES.get(module.partition(".")[0], set())
            if not allowed:
                yield f"{module} imports {imported}"


@pytest.mark.parametrize("room", ARROWS)
def test_imports_follow_the_arrows(room: str) -> None:
    assert list(forbidden(room)) == []


def test_the_proxy_knows_nothing_of_who_uses_it() -> None:
    """It asks the past through its own interfaces: of the session it has types of values alone."""
    names = {name for module, path in modules() if module.startswith("session.proxy.") for name in imports_of(path)}
    ours = {".".join(name.split(".")[1:4]) for name in names if name.startswith(f"{NAME}.session.")}
    others = {name for name in ours if not name.startswith("session.proxy")}
    assert others == {"session.capture.model", "session.past.past"}


def test_every_module_is_in_a_room() -> None:
    assert {room_of(module) for module, _ in modules()} == set(ARROWS)
    assert {path.name for path in PACKAGE.iterdir() if path.is_dir()} - {"__pycache__"} == ROOMS


def test_there_is_one_import_name() -> None:
    """In a checkout the rooms lie on top, where another import name would find them: a second copy of everything."""
    files = [*TESTS.rglob("*.py"), *(TESTS.parent / "benchmarks").rglob("*.py"), *TESTS.parent.glob("scripts/*.py")]
    names = {*ROOMS, "rvtrace"}
    # Only files with a line that may be such an import are looked at in full, which takes a while.
    suspect = re.compile(rf"(?:^|[;:])\s*(?:import|from)\s(?:.*(?<![.\w]))?(?:{'|'.join(names)})\b", re.MULTILINE)
    assert suspect.search("import os, decode") and suspect.search("if x: from session.rpc import y")
    bare = [
        f"{path}: {imported}"
        for path in files if suspect.search(path.read_text(encoding="utf-8"))
        for imported in imports_of(path) if imported.partition(".")[0] in names
    ]  # fmt: skip
    assert bare == []


def test_imports_at_any_depth_are_seen(tmp_path: Path) -> None:
    inside = "from rvtrace_gdb.decode.program import image, elf as e"
    blocks = ("def later():", "class A:", "if x:", "if x: pass\nelse:", "try: pass\nexcept E:", "try: pass\nfinally:",
              "for x in y:", "while x:", "with x:", "async def later():", "match x:\n  case 1:")  # fmt: skip
    for number, block in enumerate(blocks):
        file = tmp_path / f"{number}.py"
        file.write_text(f"import os.path\n{block}\n    {inside}\n")
        ours = {"rvtrace_gdb.decode.program.image", "rvtrace_gdb.decode.program.elf"}
        assert set(imports_of(file)) == {"os.path", *ours}, block


def imported_modules() -> dict[str, set[str]]:
    """Module -> the modules of the package it imports: also inside functions, and for type checkers alone."""
    names = {module for module, _ in modules()}

    def target(imported: str) -> str:
        inside = imported.partition(".")[2]
        return inside if inside in names else inside.rpartition(".")[0]

    found: dict[str, set[str]] = {}
    for module, path in modules():
        ours = (imported for imported in imports_of(path) if imported.startswith(f"{NAME}."))
        found[module] = {target(imported) for imported in ours} & names - {module}
    return found


def circles(graph: dict[str, set[str]]) -> list[set[str]]:
    """The groups of modules each of which leads to all others of its group."""
    reached: dict[str, set[str]] = {}
    for start in graph:
        found: set[str] = set()
        ahead = [start]
        while ahead:
            fresh = graph[ahead.pop()] - found
            found |= fresh
            ahead += fresh
        reached[start] = found
    groups = {frozenset({start, *(it for it in found if start in reached[it])}) for start, found in reached.items()}
    return sorted((set(group) for group in groups if len(group) > 1), key=sorted)


def test_modules_do_not_import_each_other_in_a_circle() -> None:
    assert circles(imported_modules()) == []


def test_a_circle_is_found() -> None:
    graph = {"a": {"b"}, "b": {"c", "d"}, "c": {"a"}, "d": set(), "e": {"a", "f"}, "f": {"e"}}
    assert circles(graph) == [{"a", "b", "c"}, {"e", "f"}]


def test_forks_alone_use_the_simulated_hart_in_the_session() -> None:
    target = f"{NAME}.transport.simulated"
    users = {module for module, path in modules() if any(it.startswith(target) for it in imports_of(path))}
    assert {it for it in users if it.startswith("session.") and not it.startswith(FORKS)} == set()
