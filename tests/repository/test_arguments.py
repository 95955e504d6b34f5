"""Arguments end at the edge: a command reads its parsed arguments once, into a request; nothing below knows them."""

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.repository.test_rooms import imports_of, modules, statements, tree

OPTIONS = ("console.options.", "console.help_pages", "console.shell_files.")
"""What defines options, and reads them for several commands."""


def readers(path: Path) -> Iterator[str]:
    """The functions that get parsed arguments."""
    for node in statements(tree(path)):
        if isinstance(node, ast.FunctionDef):
            kinds = [ast.unparse(argument.annotation) for argument in node.args.args if argument.annotation is not None]
            if any("Namespace" in kind for kind in kinds):
                yield node.name


def test_only_the_console_reads_arguments() -> None:
    readers_below = [module for module, path in modules() if "argparse" in imports_of(path)]
    assert [module for module in readers_below if not module.startswith("console.")] == []


def test_a_command_reads_its_arguments_where_it_makes_its_request() -> None:
    """In `run`, which the parser calls, and in what makes requests or parts of them."""
    others = {
        f"{module}.{name}"
        for module, path in modules()
        if not module.startswith(OPTIONS) and not module.endswith(".request")
        for name in readers(path)
        if not name.startswith("run") and name not in ("from_arguments", "_request")
    }
    assert others == set()


def test_a_reader_is_found() -> None:
    file = Path(__file__).parent.parent.parent / "console" / "commands" / "sim" / "request.py"
    assert list(readers(file)) == ["sim_request"]
