"""`trace regs` and `trace info`: the trace hardware itself, its registers and how it hangs together."""

from __future__ import annotations

import contextlib
import re
import textwrap
from collections.abc import Iterable, Iterator

import gdb

from rvtrace_gdb.gdbext import completing, csrs, position
from rvtrace_gdb.gdbext.options import BadOption, Option, Table
from rvtrace_gdb.gdbext.printing import print_line
from rvtrace_gdb.gdbext.tracer import arguments, tracer

_LEAST = 20  # columns: what is narrower is not folded
_REGISTER = 2  # columns before the name of a register
_LIVE = Option("-live", ("those of the target, although a capture file is open",))
REGS = Table(
    "trace regs",
    (Option("-all", ("registers that are 0 and not in every component, too",)), _LIVE),
)
INFO = Table("trace info", (Option("-live", ("the target's, although a capture file is open",)),))


class Regs(gdb.Command):
    __doc__ = f"""Print the registers of the trace hardware, field by field, in words.
{REGS.usage()} [COMPONENT ...]

{REGS.explained()}

COMPONENT: the name of an encoder, funnel, or sink in the target description,
or ctr0, ctr1, ...: the Control Transfer Records of hart 0, 1, ..., which has
to stand still for it. Without one: all there are.

Trace components are read through OpenOCD or over USB, also while the program
runs or is traced; nothing is changed, and trace that waits in a register is
left there. While a capture file is open, the registers that are in it are
shown: as they were when its trace was begun."""

    def __init__(self) -> None:
        super().__init__("trace regs", gdb.COMMAND_STATUS)

    def invoke(self, argument: str, from_tty: bool) -> None:
        options, names = _parse("trace regs", REGS, argument)
        access = csrs.way() if any(name.startswith("ctr") for name in names) else None
        found = tracer().request(
            "regs",
            context=tracer().context(),
            access=access,
            names=names,
            everything=options.get("all"),
            live=options.get("live"),
        )
        if found["csrs"]:
            csrs.forget()
        _print(found["lines"])

    def complete(self, text: str, word: str | None) -> list[str]:
        options = text.rpartition(" ")[2].startswith("-")
        return completing.words(text, word, REGS.complete(text) if options else _components())


class Info(gdb.Command):
    __doc__ = f"""Print which trace hardware the target has, and what feeds what.
{INFO.usage()}

{INFO.explained()}

For each component of the target description: its kind and address, the
versions it has, what it can do and what it does now, where its trace comes
from and goes to; and what cannot be reached. What an encoder can do is found
out by trying while it is off; its registers get their values back."""

    def __init__(self) -> None:
        super().__init__("trace info", gdb.COMMAND_STATUS)

    def invoke(self, argument: str, from_tty: bool) -> None:
        options, names = _parse("trace info", INFO, argument)
        if names:
            raise gdb.GdbError("trace info takes no names: `trace regs NAME` shows a component. See `help trace info`.")
        found = tracer().request("info", context=tracer().context(), live=options.get("live"))
        _print(found["lines"], of_file=found["capture"])

    def complete(self, text: str, word: str | None) -> list[str]:
        return completing.words(text, word, INFO.complete(text))


def _parse(command: str, table: Table, argument: str) -> tuple[dict[str, object], list[str]]:
    """Options, and the words that are none. Raises gdb.GdbError."""
    words = arguments(argument, f"See `help {command}`.")
    names = [word for word in words if not word.startswith("-")]
    try:
        return table.parse(word for word in words if word.startswith("-")), names
    except BadOption as error:
        raise gdb.GdbError(f"{command}: {error}") from None


def _components() -> list[str]:
    """The names that can stand there; none where that cannot be found out: a completion has no errors."""
    with contextlib.suppress(gdb.error, gdb.GdbError):
        return sorted(tracer().request("components", context=tracer().context())["names"])
    return []


def _print(lines: Iterable[str], *, of_file: bool = False) -> None:
    if position.number() is not None and not of_file:
        print("In the present:")
    width = gdb.parameter("width")
    for line in lines:
        for part in _folded(line, width if isinstance(width, int) else None):
            print_line(part)


def _folded(line: str, width: int | None) -> Iterator[str]:
    """A long line in several, as wide as the terminal: at the same indentation, or where its text begins.

    *width* None: lines may be of any length.
    """
    head = re.match(r"(\s+|\S+:\s*)?", line)
    indent = len(head.group()) if head and head.group() else 0
    if width is None or len(line) <= width or indent + _LEAST > width:
        yield line
        return
    deeper = 2 if line.startswith(" ") and indent == _REGISTER else 0
    text = line[indent:].replace(" (", "\0(")  # a meaning stays beside its value
    pieces = textwrap.wrap(text, width - indent - deeper, break_long_words=False, break_on_hyphens=False)
    first, *more = (piece.replace("\0", " ") for piece in pieces)
    yield line[:indent] + first
    yield from (" " * (indent + deeper) + piece for piece in more)


COMMANDS = (Regs, Info)
