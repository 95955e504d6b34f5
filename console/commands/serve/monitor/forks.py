"""`fork` of `monitor trace`: going on live from a place of the past, and how far that does what was traced."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from rvtrace_gdb.console.commands.serve.monitor.request import MonitorRequest
from rvtrace_gdb.console.trace_text import parts_of_text
from rvtrace_gdb.rows.fork_text import fork_check_lines
from rvtrace_gdb.rows.list_rows import Place
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.support.text import printable
from rvtrace_gdb.views.addresses import address_text

USAGE = (
    "monitor trace fork [NUMBER]\n"
    "       monitor trace fork -end\n"
    "       monitor trace fork -check [RANGE] [-through-devices]\n\n"
    "The debugger is in the fork after the next command that runs the program, such as\n"
    "`stepi` (LLDB: `thread step-inst`), which stops there. Nothing of it reaches the\n"
    "target. -check says how far a fork that nobody changes does what was traced."
)
_LEADS = "The next step goes there, and stops: `stepi`; in LLDB `thread step-inst`."


class ForkUsage(RvtraceError):
    """Words that `fork` does not take."""


class _PlainText:
    """Addresses and texts without colours."""

    def paint(self, what: str, text: str) -> str:
        return printable(text)

    def address_text(self, place: Place) -> str:
        symbol = None if len(place) == 1 else (place[1], place[2])
        return address_text(place[0], 64, symbol, self.paint, short=True)


def fork_lines(request: MonitorRequest, words: Sequence[str]) -> Iterator[str]:
    """Yield the lines of `fork`. Raises ForkUsage, NoFork, and as `goto`."""
    options = {word.lstrip("-") for word in words if word.startswith("-")}
    rest = [word for word in words if not word.startswith("-")]
    if "check" in options and options <= {"check", "through-devices"}:
        return _checked_lines(request, ",".join(rest), through_devices="through-devices" in options)
    number = rest[0] if len(rest) == 1 and not options else ""
    if options - {"end"} or (options and rest) or (rest and not number.isdecimal()) or len(number) > 20:
        raise ForkUsage("trace fork: a number, -end or -check: `trace help fork`")
    return _leading_lines(request, int(number) if number else None, leaves=bool(options))


def _leading_lines(request: MonitorRequest, number: int | None, *, leaves: bool) -> Iterator[str]:
    places = request.places
    places.debugger.context = replace(places.debugger.context, thread_hart=places.hart)
    leads = places.debugger.leave_fork() if leaves else places.debugger.go_into_fork(number, places.progress)
    yield from leads.lines
    yield _LEADS


def _checked_lines(request: MonitorRequest, numbers: str, *, through_devices: bool) -> Iterator[str]:
    from rvtrace_gdb.session.fork.check import fork_checks  # the simulated hart: few need it

    places = request.places
    hart = places.selected().hart
    found = fork_checks(
        places.session, Context(hart=hart), numbers, places.progress, through_devices=through_devices
    )
    yield from parts_of_text(fork_check_lines(one, _PlainText(), several=False) for one in found)
