"""The tables of options in docstrings: they have each option, in the order of the fields."""

import ast
import re
from functools import cache

from tests.repository.test_rooms import PACKAGE, modules, tree

ROOMS = ("console", "controlregs", "decode", "reports", "session", "transport", "views")
NAMES = re.compile(r"(Options|Parameters|Modes)$")
ROW = re.compile(r"^((?:\w+, )*\w+)  +\S", re.MULTILINE)
"""A row of a table: a name, or several, two blanks or more, and what is said of them."""


def fields_of(definition: ast.ClassDef) -> list[str]:
    parts = [part for part in definition.body if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name)]
    return [ast.unparse(part.target) for part in parts if not ast.unparse(part.annotation).startswith("ClassVar")]


def documented_in(definition: ast.ClassDef) -> list[str]:
    """The names of the table in a docstring."""
    return [name for row in ROW.findall(ast.get_docstring(definition) or "") for name in row.split(", ")]


@cache
def options() -> dict[str, ast.ClassDef]:
    """The classes with such a table, by `file:name`."""
    return {
        f"{path.relative_to(PACKAGE)}:{definition.name}": definition
        for module, path in modules()
        if module.partition(".")[0] in ROOMS
        for definition in tree(path).body
        if isinstance(definition, ast.ClassDef) and NAMES.search(definition.name) and documented_in(definition)
    }


def test_they_are_found() -> None:
    formats = ("decode/ntrace/options.py", "decode/etrace/encoder/options.py", "decode/tandem/protocol.py")
    assert {name.partition(":")[0] for name in options()} >= set(formats)
    assert len(fields_of(options()["decode/ntrace/options.py:EncoderOptions"])) > 40


def test_each_option_has_its_row_in_the_order_of_the_fields() -> None:
    documented = {name: documented_in(definition) for name, definition in options().items()}
    assert documented == {name: fields_of(definition) for name, definition in options().items()}
