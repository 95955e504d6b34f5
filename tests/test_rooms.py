"""The import arrows of docs/architecture.md: who may import whom. Read from the source, so no code path is missed."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

HOME = Path(__file__).resolve().parent.parent

# room -> rooms it may import besides itself; `transport.simulated` is a room of its own inside `transport`, and the
# tables of options one inside `gdbext`: they run without gdb.
TABLES = "gdbext tables"
TABLE_MODULES = ("gdbext.bars", "gdbext.options", "gdbext.start_options")
ARROWS: dict[str, set[str]] = {
    "support": set(),
    "controlregs": {"support"},
    "transport": {"support"},
    "decode": {"support"},
    "transport.simulated": {"support", "decode", "controlregs", "transport"},
    "session": {"support", "controlregs", "transport", "decode"},
    "views": {"support", "decode"},
    "console": {"support", "session", "views", "decode", "transport.simulated", TABLES},
    "gdbext": {TABLES},
    TABLES: set(),
}
ROOMS = {name.partition(".")[0] for name in ARROWS if name != TABLES}
# What may come from outside the project: everything else is the standard library.
LIBRARIES = {
    "decode": {"elftools"},
    "gdbext": {"gdb"},
    "console": {"prompt_toolkit", "pygdbmi", "riscv"},
    "transport": {"usb"},
}


def room_of(module: str) -> str:
    if ".".join(module.split(".")[:2]) in TABLE_MODULES:
        return TABLES
    return "transport.simulated" if module.startswith("transport.simulated") else module.partition(".")[0]


def sources() -> list[Path]:
    return sorted(path for room in ROOMS for path in (HOME / room).rglob("*.py"))


def imports_of(path: Path) -> Iterator[str]:
    """Absolute names of all modules a file imports, at any depth."""
    package = path.relative_to(HOME).with_suffix("").parts
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: -node.level]) if node.level else ""
            name = ".".join(part for part in (base, node.module or "") if part)
            yield from (f"{name}.{alias.name}" for alias in node.names) if name in ROOMS else [name]


@pytest.mark.parametrize("path", sources(), ids=lambda path: str(path.relative_to(HOME)))
def test_imports_follow_the_arrows(path: Path) -> None:
    own = room_of(".".join(path.relative_to(HOME).with_suffix("").parts))
    for module in imports_of(path):
        top = module.partition(".")[0]
        if top in ROOMS:
            room = room_of(module)
            assert room == own or room in ARROWS[own], f"{own} must not import {module}"
        else:
            allowed = LIBRARIES.get(own, set())
            assert top in sys.stdlib_module_names or top in allowed, f"{own} must not depend on {top}"


def test_the_walk_sees_relative_and_nested_imports() -> None:
    """The walk itself: it must see an import inside a function and a relative one."""
    found = set(imports_of(HOME / "gdbext" / "tracer.py"))
    assert {"gdb", "gdbext.client"} <= found or {"gdb", "gdbext"} <= found
