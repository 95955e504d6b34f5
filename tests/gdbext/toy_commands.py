"""A module of gdb commands as docs/architecture.md describes one: a toy command, and a toy list.

It is sourced in gdb before rvtrace.py defines its commands, see `test_toy_command`.
"""

import sys
from typing import Any, NamedTuple

import gdb


class ToyRow(NamedTuple):
    """A row of the toy list."""

    number: int
    name: str


class Toy(gdb.Command):
    """Print what the toy method answers."""

    def __init__(self) -> None:
        super().__init__("trace toy", gdb.COMMAND_DATA)

    def invoke(self, argument: str, from_tty: bool) -> None:
        ours("tracer").print_lines(ours("tracer").tracer().request("toy", name=argument))


class Toys(gdb.Command):
    """Print the toy list."""

    def __init__(self) -> None:
        super().__init__("trace toys", gdb.COMMAND_DATA)

    def invoke(self, argument: str, from_tty: bool) -> None:
        expression, numbers = ours("paged_list").split_range(argument)
        toys = ours("paged_list").PagedList("toys", name=expression)
        toys.show(self, numbers, lambda page: (f"{row.number}\t{row.name}" for row in page.rows))


COMMANDS = (Toy, Toys)


def ours(module: str) -> Any:
    return sys.modules[f"rvtrace_gdb.gdbext.{module}"]


ours("rows").ROWS["toys"] = ToyRow
for command in COMMANDS:
    command()
