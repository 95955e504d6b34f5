"""What gdb answers depends on the user's language, radix and quotes: `gdbext/neutral.py` and `location.py` ask it."""

import ast
import re

import pytest

from tests.helpers.cross_compiler import HOME

_FRAGILE = re.compile(
    r"gdb\.(?:lookup_type|decode_line|parse_and_eval)\("
    r"|gdb\.execute\(f\"(?!set (?:\{name\}|osabi)|target |monitor |trace |enable |help |complete |show user|define "
    r"|tui |\{self\._name\} \{argument\})[^\"]*\{"
)
"""Names of types, locations and expressions as they come; commands that are made of numbers."""
_ALLOWED = {
    "gdbext/neutral.py": None,
    "gdbext/location.py": None,
    "gdbext/commands/goto.py": 'gdb.lookup_type(name)',  # whether a name of the user's is a type in the user's language
}


def _reads_printed(text: str) -> list[str]:
    """Lines that read what a command prints: with some settings it prints more (`neutral.printed`)."""
    tree = ast.parse(text)
    dropped = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and id(node) not in dropped]
    lines = text.splitlines()
    return [lines[it.lineno - 1].strip() for it in calls if ast.unparse(it.func) == "gdb.execute"]


def fragile(path: str, text: str) -> list[str]:
    found = [line.strip() for line in text.splitlines() if _FRAGILE.search(line)] + _reads_printed(text)
    allowed = _ALLOWED.get(path, "")
    return [] if allowed is None else [line for line in found if not allowed or allowed not in line]


def test_gdb_is_asked_in_one_place() -> None:
    found = {}
    for path in sorted((HOME / "gdbext").rglob("*.py")):
        name = str(path.relative_to(HOME))
        if lines := fragile(name, path.read_text(encoding="utf-8")):
            found[name] = lines
    assert found == {}


@pytest.mark.parametrize(
    "line",
    ['x = gdb.lookup_type("void")', "gdb.decode_line(text)", 'gdb.execute(f"info symbol {pc:#x}")',
     'x = "riscv" in gdb.execute("show architecture", to_string=True)'],
)
def test_it_would_be_found(line: str) -> None:
    assert fragile("gdbext/commands/find.py", line) == [line]
