"""`trace native`: the trace as gdb's own `record btrace`.

gdb does not recognize calls on RISC-V (gdb/riscv-tdep.c sets no insn_is_call), so this is for users who need gdb's own
record commands. All other ways to go backward work without it.
"""

from __future__ import annotations

from typing import Any, Callable

import gdb

from rvtrace_gdb.gdbext import neutral
from rvtrace_gdb.gdbext.command import Command
from rvtrace_gdb.gdbext.options import is_plain_number
from rvtrace_gdb.gdbext.tracer import arguments, print_lines, tracer

MICROSECONDS = 36  # per instruction at most: gdb 13 and 16 disassemble each of them, which was measured as 8 to 36 us
LONG = 1.0  # seconds from which on the user is warned
LIMIT = 100_000
USAGE = "Usage: trace native [N | off]"
LIMITS = (
    "gdb does not recognize calls on RISC-V: while it records, `backtrace` has one frame, `finish`, `next` and\n"
    "`reverse-next` do not step over calls, recursion is one line of `record function-call-history`."
    " `trace native off` ends it."
)


def is_active() -> bool:
    """Whether gdb records with its own `record btrace`: it then also goes backward by itself, without the proxy."""
    recording = gdb.current_recording()
    return recording is not None and recording.method == "btrace"


class Limit(gdb.Parameter):
    """The greatest number of instructions that `trace native` gives to gdb."""

    set_doc = "Set how many instructions `trace native` gives gdb at most."
    show_doc = "Show how many instructions `trace native` gives gdb at most."

    def __init__(self) -> None:
        super().__init__("trace native-limit", gdb.COMMAND_DATA, gdb.PARAM_UINTEGER)
        self.value = LIMIT

    def get_show_string(self, svalue: str) -> str:
        return f"`trace native` gives gdb at most {svalue} instructions."


class NativeCommand(Command, name="trace native", kind=gdb.COMMAND_RUNNING):
    __doc__ = f"""Let gdb record by itself (`record btrace`), with what was traced.
{USAGE}

For gdb's own commands `record instruction-history`, `record goto`,
`record function-call-history`, and programs that use them. Without N
gdb gets the newest `set trace native-limit` instructions; it needs
up to {MICROSECONDS} us for each and cannot be interrupted. Give the
command again to begin anew with what ran since. `off` ends it.

gdb does not recognize calls on RISC-V. While it records, `backtrace` has one
frame; `finish`, `next` and `reverse-next` do not step over calls;
recursion is one line of `record function-call-history`. In the past
only the register $pc is known. Without `trace native` all these
work: `reverse-next`, `backtrace`, `trace functions`."""

    def __init__(self) -> None:
        super().__init__()
        self._explained = False

    def invoke(self, argument: str, from_tty: bool) -> None:
        words = arguments(argument, USAGE)
        if words == ["off"]:
            self._end_recording()
            return
        self._record(_limit(words))

    def complete(self, text: str, word: str | None) -> list[str]:  # gdb 16 calls it first with word None
        return ["off"] if "off".startswith(text) else []

    def _record(self, limit: int) -> None:
        if is_active():
            gdb.execute("record stop", to_string=True)
        seconds = max(1, int(gdb.parameter("remotetimeout") or 1))
        result = tracer().request("native", context=tracer().context(), limit=limit, seconds=seconds)
        print_lines(result)
        _announce(result)
        print(_recorded())
        if not self._explained:
            self._explained = True
            print(LIMITS)

    def _end_recording(self) -> None:
        if not is_active():
            raise gdb.GdbError("gdb does not record: there is nothing to end.")
        gdb.execute("record stop", to_string=True)
        gdb.execute("maintenance flush register-cache", to_string=True)  # gdb keeps the frame of where it was
        print("gdb has stopped recording; `reverse-stepi` and the like use the trace again.")


def _limit(words: list[str]) -> int:
    """Return how many instructions gdb is to get at most. Raises gdb.GdbError."""
    if not words:
        value = gdb.parameter("trace native-limit")
        return int(value) if value else (1 << 63) - 1
    if len(words) > 1 or not is_plain_number(words[0]) or not int(words[0]):
        raise gdb.GdbError(f"trace native: {' '.join(words)} is neither a number of instructions nor off. {USAGE}")
    return int(words[0])


def _announce(given: dict[str, Any]) -> None:
    """Print how many instructions gdb gets, and how long it will take."""
    count, length, first = given["instructions"], given["length"], given["first"]
    if first > 1:
        print(
            f"gdb gets the newest {count} of {length} instructions (`trace native N`, `set trace native-limit`);"
            f" its number 1 is number {first} of `trace history`."
        )
    takes = count * MICROSECONDS / 1e6
    if takes >= LONG:
        print(f"gdb takes up to {takes:.0f} s for {count} instructions, and cannot be interrupted.")
        gdb.flush()


def _recorded() -> str:
    """Let gdb record, and return what it prints about the recording. Raises gdb.GdbError.

    gdb decodes what it was given at the first `info record`, and then also warns of gaps, which it counts in its
    summary as well.
    """
    try:
        gdb.execute("record btrace bts", to_string=True)
        printed = neutral.printed("info record")
    except gdb.error as error:
        if is_active():
            gdb.execute("record stop", to_string=True)
        raise gdb.GdbError(str(error)) from None
    return "\n".join(line for line in printed.splitlines() if line.startswith("Recorded "))


COMMANDS: tuple[Callable[[], object], ...] = (Limit, NativeCommand)
"""These are called when rvtrace is loaded, in this order."""
