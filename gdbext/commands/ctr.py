"""The `trace ctr` commands: Control Transfer Records, in which a hart itself keeps its last jumps, calls and traps."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator
from typing import Any

import gdb

from rvtrace_gdb.gdbext import completion, csr_access, settings, start_options
from rvtrace_gdb.gdbext.command import Command
from rvtrace_gdb.gdbext.commands import control_transfers
from rvtrace_gdb.gdbext.harts import hart_of
from rvtrace_gdb.gdbext.mi.fields import MiRows
from rvtrace_gdb.gdbext.options import OptionError
from rvtrace_gdb.gdbext.paged_list import PagedList
from rvtrace_gdb.gdbext.replay import position
from rvtrace_gdb.gdbext.replay.mode import mode
from rvtrace_gdb.gdbext.text import print_line
from rvtrace_gdb.gdbext.tracer import arguments, print_lines, tracer
from rvtrace_gdb.rows.answers import OFF_HART
from rvtrace_gdb.rows.list_rows import Page
from rvtrace_gdb.rows.list_text import row_fields


class CtrCommand(Command, name="trace ctr", kind=gdb.COMMAND_RUNNING, completer=gdb.COMPLETE_NONE, is_prefix=True):
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

    def invoke(self, argument: str, from_tty: bool) -> None:
        word = argument.strip().partition(" ")[0]
        if word:
            raise gdb.GdbError(f'Undefined trace ctr command: "{word}".  Try "help trace ctr".')
        gdb.execute("help trace ctr")


class CtrStartCommand(Command, name="trace ctr start", kind=gdb.COMMAND_RUNNING):
    __doc__ = f"""Begin to record control transfers in the hart itself.
{start_options.CTR_TABLE.usage()}

{start_options.CTR_TABLE.explained()}

{start_options.TRANSFER_TYPES_HELP}

A note says what the hart cannot do, and recording starts without it; a depth
that it does not have is refused. Earlier records are lost. The program has to
be stopped."""

    def invoke(self, argument: str, from_tty: bool) -> None:
        words = arguments(argument, "See `help trace ctr start`.")
        try:
            options = start_options.ctr_request(words, _thread_harts)
        except OptionError as error:
            raise gdb.GdbError(f"trace ctr start: {error}") from None
        options["version"] = options["version"] or settings.ctr_version()
        if csr_access.access_params() is None:
            raise gdb.GdbError("Nothing to record: gdb is not connected to a target. `trace connect` does that.")
        print_lines(request("ctr_start", options=options))
        mode.suggest_connect()

    def complete(self, text: str, word: str | None) -> list[str]:
        return completion.words(text, word, start_options.CTR_TABLE.complete(text))


class CtrStopCommand(Command, name="trace ctr stop", kind=gdb.COMMAND_RUNNING, completer=gdb.COMPLETE_NONE):
    """Stop recording control transfers, and read out the records.
Usage: trace ctr stop

The records can still be shown. The hart's registers are restored to what they
were before `trace ctr start`. The program has to be stopped."""

    def invoke(self, argument: str, from_tty: bool) -> None:
        self.refuse_argument(argument)
        print_lines(request("ctr_stop"))


class ClearCommand(Command, name="trace ctr clear", kind=gdb.COMMAND_RUNNING, completer=gdb.COMPLETE_NONE):
    """Clear the records; recording continues.
Usage: trace ctr clear"""

    def invoke(self, argument: str, from_tty: bool) -> None:
        self.refuse_argument(argument)
        print_lines(request("ctr_clear"))


class CtrStatusCommand(Command, name="trace ctr status", kind=gdb.COMMAND_STATUS, completer=gdb.COMPLETE_NONE):
    """Show what the hart records, and how much of it there is.
Usage: trace ctr status"""

    def invoke(self, argument: str, from_tty: bool) -> None:
        self.refuse_argument(argument)
        print_lines(request("ctr_status"))


class ShowCommand(Command, name="trace ctr show", completer=gdb.COMPLETE_NONE):
    """Print the recorded control transfers, newest first.
Usage: trace ctr show [/MODIFIERS] [--json] [RANGE]

A line for each: its number, which the hart gives it (the newest is 0),
its source and target address, its type, whether it was mispredicted, and the
cycles since the one before, if the hart records them. The line below, in
brackets, has how many instructions ran from the target of the next older one
to the source of this one, with their numbers in `trace history`, or why that
is not known.

Modifiers: /i with the instructions, in the order they ran; /m or /s source
lines, /r raw instruction bytes, /f no function names, /p no mark at the
current instruction: as in `trace history`; these show instructions, too.

--json: an object for each, for programs (docs/console.md has the fields).

RANGE: nothing, the newest ten, and then the next older ten each time;
  -      the ten before those shown last
  N      ten starting with number N
  A,B    numbers A to B inclusive
  A,+N   N records starting with A
  A,-N   N records ending with A
`set record instruction-history-size` sets how many.

A trap into a mode that is not recorded, or out of one, has one address only.
The hart's registers are left as they are, and recording continues when the
program runs."""

    def invoke(self, argument: str, from_tty: bool) -> None:
        as_json = re.search(r"(?:^|\s)--json(?=\s|$)", argument)
        if as_json:
            argument = argument[: as_json.start()] + argument[as_json.end() :]
        asked = control_transfers.parse(argument)
        records = control_transfers.Records(asked.style)
        with csr_access_of_session() as access:
            lines = _json_lines if as_json else records.lines
            PagedList("records", access=access).show(self, asked.numbers, lines)


def _json_lines(page: Page) -> Iterator[str]:
    """Return an object for each record, for programs."""
    fields = MiRows()
    return (json.dumps(row_fields(row, fields)) for row in page.rows)


class CtrStackCommand(Command, name="trace ctr stack", kind=gdb.COMMAND_STACK, completer=gdb.COMPLETE_NONE):
    """Print the calls under way as the hart recorded them, as `backtrace` does.
Usage: trace ctr stack

After `trace ctr start -ras` the hart keeps only calls, as many as it has
entries; otherwise the calls that have not returned since the oldest record
are shown.
No memory of the program is read: the stack may be damaged, and the program
needs no unwind information.

The address is that of the call (`backtrace` has the one after it). "[called
f]" names the function that was called if the frame above is in another one: a
trap came, or f jumped there. Values of arguments are not known. A note says
where gdb's own backtrace ends early or differs.

Calls are missing that were under way when recording began, and the oldest
ones if there were more than the hart keeps. After longjmp, exceptions, or when
the program has switched stacks, calls may be shown that have ended."""

    def invoke(self, argument: str, from_tty: bool) -> None:
        self.refuse_argument(argument)
        found = request("ctr_stack")
        print_lines(found)
        frames = [control_transfers.CtrFrame(it["pc"] or 0, it["call"], it["to"]) for it in found["frames"]]
        recorded = control_transfers.Recorded(frames, found["full"], found["ras"])
        if position.number() is not None:
            print("These are the calls in the present; `backtrace` shows those where you are in the past.")
        for line in control_transfers.stack_lines(recorded, control_transfers.unwind(len(frames))):
            print_line(line)


def request(method: str, **params: Any) -> Any:
    """Return the session's result. Raises gdb.GdbError."""
    with csr_access_of_session() as access:
        return tracer().request(method, context=tracer().context(), access=access, **params)


@contextlib.contextmanager
def csr_access_of_session() -> Iterator[dict[str, Any] | None]:
    """Yield how the session reaches CSRs; afterwards gdb reads its registers anew."""
    access = csr_access.access_params()
    try:
        yield access
    finally:
        if access is not None:
            tracer().connection = access["connection"]
            csr_access.flush_registers()


def _thread_harts() -> list[int]:
    """Return the harts of all threads; none if gdb does not know them because the target runs."""
    try:
        tracer().learn_harts()
        harts = {hart_of(thread) or 0 for thread in gdb.selected_inferior().threads()}
        return sorted(harts - {OFF_HART})
    except gdb.error:
        return []


COMMANDS = (CtrCommand, CtrStartCommand, CtrStopCommand, ClearCommand, CtrStatusCommand, ShowCommand, CtrStackCommand)
