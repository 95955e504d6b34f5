"""A module of gdb commands as docs/architecture.md describes one: a toy command, and a toy list.

It is sourced in gdb after rvtrace.py, see `test_toy_command`.
"""

from typing import NamedTuple

from rvtrace_gdb.gdbext.command import Command
from rvtrace_gdb.gdbext.paged_list import PagedList, split_range
from rvtrace_gdb.gdbext.tracer import print_lines, tracer
from rvtrace_gdb.rows import list_rows


class ToyRow(NamedTuple):
    """A row of the toy list."""

    number: int
    name: str


class Toy(Command, name="trace toy"):
    """Print what the toy method answers."""

    def invoke(self, argument: str, from_tty: bool) -> None:
        print_lines(tracer().request("toy", name=argument))


class Toys(Command, name="trace toys"):
    """Print the toy list."""

    def invoke(self, argument: str, from_tty: bool) -> None:
        expression, numbers = split_range(argument)
        toys = PagedList("toys", name=expression)
        toys.show(self, numbers, lambda page: (f"{row.number}\t{row.name}" for row in page.rows))


COMMANDS = (Toy, Toys)

list_rows.ROW_TYPES["toys"] = ToyRow
for command in COMMANDS:
    command()
