"""`trace stack`: how deep the stack was."""

from __future__ import annotations

from typing import Any

from rvtrace_gdb.gdbext import completion, results
from rvtrace_gdb.gdbext.command import Command
from rvtrace_gdb.gdbext.commands.explain import GdbExplainSymbols, range_and_options
from rvtrace_gdb.gdbext.enter_key import RepeatedAnswer
from rvtrace_gdb.gdbext.options import Option, Table
from rvtrace_gdb.gdbext.text import print_line
from rvtrace_gdb.gdbext.tracer import print_lines, tracer
from rvtrace_gdb.rows.stack_rows import StackDepth, stack_depth_of
from rvtrace_gdb.rows.stack_text import SHOWN, more_stack_lines, stack_fields, stack_lines

HART = Option("-hart", ("this hart alone; default: all harts",), number="hart", least=0)
"""The option of the command of the machine interface, too."""
_TOP = Option("-top", ("how many frames and functions are shown, 0: all;", "default: 10"), number="rows", least=0)
STACK = Table("trace stack [RANGE]", (HART, _TOP))


class StackCommand(RepeatedAnswer, Command, name="trace stack"):
    __doc__ = f"""Say how deep the stack was, and what took it.
{STACK.usage()}

{STACK.explained()}

Of each area of memory that sp was in (a stack of its own for interrupts,
the stacks of tasks): how much of it was used, the lowest sp, at which trap
level; the chain of calls there, with the bytes of each frame; and the
functions with the largest frames.

frame: bytes that the function itself takes, by its code that ran; with a
       `+`: and more that the code does not say, as by alloca
depth: bytes of the stack below which sp was never in this function

RANGE: look at what ran from number to number of `trace history` alone, of
one hart: A, A,B or A,+N or A,-N. Enter shows more frames and functions."""

    def __init__(self) -> None:
        super().__init__()
        self._depths: list[StackDepth] = []

    def _show_answer(self, argument: str) -> None:
        numbers, options = range_and_options(argument, STACK, "trace stack")
        found = answer(numbers, options.get("hart"))
        print_lines(found)
        self._depths = found["depths"]
        results.add({"depths": [stack_fields(it) for it in self._depths]})
        top = options.get("top")
        self._shown = self._most = SHOWN if top is None else top
        for number, one in enumerate(self._depths):
            if number:
                print()
            for line in stack_lines(one, GdbExplainSymbols(), several=len(self._depths) > 1, most=self._most):
                print_line(line)

    def _show_more(self) -> None:
        lines = list(more_stack_lines(self._depths, GdbExplainSymbols(), self._shown, self._most)) if self._most else []
        self._shown += self._most
        for line in lines or ["No more frames and functions."]:
            print_line(line)

    def complete(self, text: str, word: str | None) -> list[str] | int:
        return completion.words(text, word, STACK.complete(text))


def answer(numbers: str, hart: int | None) -> dict[str, Any]:
    """Return the session's answer: its lines, and the depths of the stacks of all harts or of one. *numbers*: a RANGE.
    Raises gdb.GdbError.
    """
    asked = {"args": numbers, **({"all": True} if hart is None else {"hart": hart})}
    found: dict[str, Any] = tracer().request("stack", context=tracer().context(), **asked)
    found["depths"] = [stack_depth_of(it) for it in found["depths"]]
    return found


COMMANDS = (StackCommand,)
