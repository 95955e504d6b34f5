"""The `trace ctr` commands: Control Transfer Records, which a hart itself keeps of its last jumps, calls and traps."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import gdb

from rvtrace_gdb.gdbext import completion, csr_access, listing, settings, start_options
from rvtrace_gdb.gdbext.commands import control_transfers
from rvtrace_gdb.gdbext.options import BadOption
from rvtrace_gdb.gdbext.replay import mode, position
from rvtrace_gdb.gdbext.text import print_line
from rvtrace_gdb.gdbext.tracer import arguments, hart_of, print_lines, tracer

ROWS_AT_ONCE = 64  # rows fetched per request: with instructions, a listing appears at once and can be interrupted


class Ctr(gdb.Command):
    """Record the last control transfers in the hart itself, and show them.
Usage: trace ctr COMMAND

RISC-V harts with Control Transfer Records (extensions Smctr and Ssctr, or
the draft 0.1.4) keep where their last 16 to 256 control transfers came from
and led to, by themselves: no trace encoder and no memory is needed, and the
program need not know of it.

    (gdb) trace ctr start
    (gdb) continue
    (gdb) trace ctr show

`trace history`, `trace functions`, `reverse-step` and all other commands that
look at what ran work on the records, too: what ran between two of them
follows from the program. How registers are reached is set by
`set trace ctr-access`, the version by `set trace ctr-version`."""

    def __init__(self) -> None:
        super().__init__("trace ctr", gdb.COMMAND_RUNNING, gdb.COMPLETE_NONE, True)

    def invoke(self, argument: str, from_tty: bool) -> None:
        word = argument.strip().partition(" ")[0]
        if word:
            raise gdb.GdbError(f'Undefined trace ctr command: "{word}".  Try "help trace ctr".')
        gdb.execute("help trace ctr")


class Start(gdb.Command):
    __doc__ = f"""Begin to record control transfers in the hart itself.
{start_options.CTR_TABLE.usage()}

{start_options.CTR_TABLE.explained()}

{start_options.TRANSFER_TYPES_HELP}

What the hart cannot do is said, and done without; a depth it does not have is
refused. Records there were are gone. The program has to be stopped."""

    def __init__(self) -> None:
        super().__init__("trace ctr start", gdb.COMMAND_RUNNING)

    def invoke(self, argument: str, from_tty: bool) -> None:
        words = arguments(argument, "See `help trace ctr start`.")
        try:
            options = start_options.ctr_request(words, _harts)
        except BadOption as error:
            raise gdb.GdbError(f"trace ctr start: {error}") from None
        options["version"] = options["version"] or settings.ctr_version()
        if csr_access.way() is None:
            raise gdb.GdbError("Nothing to record: gdb is not connected to a target. `trace connect` does that.")
        print_lines(_ask("ctr_start", options=options))
        mode.suggest_connect()

    def complete(self, text: str, word: str | None) -> list[str]:
        return completion.words(text, word, start_options.CTR_TABLE.complete(text))


class Stop(gdb.Command):
    """Stop recording control transfers, and read out what there is.
Usage: trace ctr stop

What was recorded can still be looked at. The hart's registers are put back as
`trace ctr start` found them. The program has to be stopped."""

    def __init__(self) -> None:
        super().__init__("trace ctr stop", gdb.COMMAND_RUNNING, gdb.COMPLETE_NONE)

    def invoke(self, argument: str, from_tty: bool) -> None:
        _nothing(argument, "trace ctr stop")
        print_lines(_ask("ctr_stop"))


class Clear(gdb.Command):
    """Throw away what was recorded so far; recording goes on.
Usage: trace ctr clear"""

    def __init__(self) -> None:
        super().__init__("trace ctr clear", gdb.COMMAND_RUNNING, gdb.COMPLETE_NONE)

    def invoke(self, argument: str, from_tty: bool) -> None:
        _nothing(argument, "trace ctr clear")
        print_lines(_ask("ctr_clear"))


class Status(gdb.Command):
    """Show what the hart records, and how much of it there is.
Usage: trace ctr status"""

    def __init__(self) -> None:
        super().__init__("trace ctr status", gdb.COMMAND_STATUS, gdb.COMPLETE_NONE)

    def invoke(self, argument: str, from_tty: bool) -> None:
        _nothing(argument, "trace ctr status")
        print_lines(_ask("ctr_status"))


class Show(gdb.Command):
    """Print the control transfers that were recorded, youngest first.
Usage: trace ctr show [/MODIFIERS] [RANGE]

A line for each: its number, which the hart gives it (the youngest is 0),
where it came from and where it led, its type, whether it was mispredicted,
and the cycles since the one before, as far as the hart tells. Below it, in
brackets, stands how many instructions ran from where the next older one led
to up to this one, with their numbers in `trace history`, or why that is not
known.

Modifiers: /i with the instructions, in the order they ran; /m or /s source
lines, /r raw instruction bytes, /f no function names, /p no mark at the
current instruction, as in `trace history`, show them, too.

RANGE: nothing, the youngest ten, and then the next older ten each time;
  -      the ten before those shown last
  N      ten starting with number N
  A,B    numbers A to B inclusive
  A,+N   N records starting with A
  A,-N   N records ending with A
How many is set by `set record instruction-history-size`.

A trap into a mode that is not recorded, or out of one, has one address only.
The hart's registers are left as they are, and it goes on recording
into them when the program runs."""

    def __init__(self) -> None:
        super().__init__("trace ctr show", gdb.COMMAND_DATA, gdb.COMPLETE_NONE)

    def invoke(self, argument: str, from_tty: bool) -> None:
        asked = control_transfers.parse(argument)
        if asked.numbers not in ("", "-", "+"):
            self.dont_repeat()
        found = _ask("ctr_show", args=asked.numbers, size=listing.page_size())
        print_lines(found)
        records = control_transfers.Records(asked.style, found.get("hart"))
        if found["begin"] == 1:
            _print(records.since(found.get("now")))
        for begin in range(found["begin"], found["end"], ROWS_AT_ONCE):
            end = min(begin + ROWS_AT_ONCE, found["end"])
            _print(records.lines(tracer().request("ctr_rows", begin=begin, end=end)))
        if found.get("notice"):
            print_line(found["notice"])


class Stack(gdb.Command):
    """Print the calls under way as the hart recorded them, as `backtrace` does.
Usage: trace ctr stack

After `trace ctr start -ras` the hart keeps calls alone, as many as it has
entries; else those are shown that did not return since the oldest record.
What the program keeps in memory does not matter: the stack may be damaged,
and frames need not be described.

The address is that of the call (`backtrace` has the one behind it). "[called
f]" says which function was called where the frame above is in another one: a
trap came, or f jumped there. Values of arguments are not known. Where gdb's
own backtrace ends early or differs, that is said.

Calls are missing that were under way when recording began, and the oldest
when there were more than the hart keeps. After longjmp, exceptions, or when
the program has switched stacks, calls may be shown that are over."""

    def __init__(self) -> None:
        super().__init__("trace ctr stack", gdb.COMMAND_STACK, gdb.COMPLETE_NONE)

    def invoke(self, argument: str, from_tty: bool) -> None:
        _nothing(argument, "trace ctr stack")
        found = _ask("ctr_stack")
        print_lines(found)
        frames = [control_transfers.Frame(it["pc"] or 0, it["call"], it["to"]) for it in found["frames"]]
        recorded = control_transfers.Recorded(frames, found["full"], found["ras"])
        if position.number() is not None:
            print("In the present; `backtrace` shows the calls in the past where you are.")
        for line in control_transfers.stack_lines(recorded, control_transfers.unwind(len(frames))):
            print_line(line)


def _ask(method: str, **params: Any) -> Any:
    """The session's answer. Raises gdb.GdbError."""
    access = csr_access.way()
    try:
        return tracer().request(method, context=tracer().context(), access=access, **params)
    finally:
        if access is not None:
            tracer().connection = access["connection"]
            csr_access.forget()


def _harts() -> list[int]:
    """All there are, where threads are harts; none where gdb cannot say, because the target runs."""
    try:
        return sorted({hart_of(thread) or 0 for thread in gdb.selected_inferior().threads()})
    except gdb.error:
        return []


def _print(lines: Iterable[str]) -> None:
    """Lines with instructions in them; each as soon as it is known."""
    with listing.readable_code():
        for line in lines:
            print_line(line)


def _nothing(argument: str, command: str) -> None:
    if argument.strip():
        raise gdb.GdbError(f"Usage: {command}")


COMMANDS = (Ctr, Start, Stop, Clear, Status, Show, Stack)
