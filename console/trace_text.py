"""What is said of a trace that a command reads, and the addresses and colours of what it prints as text."""

from collections.abc import Iterable, Iterator

from rvtrace_gdb.console.options.hints import hints_of_history
from rvtrace_gdb.console.options.request import RequestedTrace
from rvtrace_gdb.console.output import CommandOutput
from rvtrace_gdb.rows.list_rows import Place
from rvtrace_gdb.session import report
from rvtrace_gdb.session.decoded_capture import Decoded
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.text import printable
from rvtrace_gdb.views.addresses import address_text


def say_about_trace(trace: RequestedTrace, session: Session, shown: CommandOutput) -> Decoded:
    """Open a trace, decode all of its harts, and say what is to be said of it. Raises as `RequestedTrace.open` and
    `Session.harts`.
    """
    about = trace.open(session)
    decoded = session.harts(progress=shown.progress)
    hint = hints_of_history(session.capture(), decoded, shown.progress)
    shown.say([*about, *report.histories(decoded.harts), *session.warnings(), *hint])
    return decoded


def parts_of_text(each: Iterable[Iterable[str]]) -> Iterator[str]:
    """Yield the lines of several parts, with an empty one between two of them."""
    for number, lines in enumerate(each):
        if number:
            yield ""
        yield from lines


class ShellText:
    """The addresses and the colours of the lines that `rows` makes of a report, an explanation, or a stack."""

    def __init__(self, shown: CommandOutput) -> None:
        self._shown = shown

    def paint(self, what: str, text: str) -> str:
        return self._shown.paint(what, printable(text))

    def address_text(self, place: Place) -> str:
        symbol = None if len(place) == 1 else (place[1], place[2])
        return address_text(place[0], 64, symbol, self._shown.paint, short=True)
