"""What is asked of the past at the shell: a history, and the place in it before which the answer holds."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from rvtrace_gdb.console.options.request import RequestedTrace
from rvtrace_gdb.console.options.value_places import PlaceText, value_place
from rvtrace_gdb.console.output import CommandOutput, OutputOptions
from rvtrace_gdb.console.trace_text import say_about_trace
from rvtrace_gdb.decode.history.positions import history_position
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.tandem.wording import register_name, regno_of
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.past.choice import past_of
from rvtrace_gdb.session.past.past import Past
from rvtrace_gdb.session.selected_history import SelectedHistory
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.support.text import printable


class PastError(RvtraceError):
    """Arguments that name nothing of this trace."""


@dataclass(frozen=True)
class PastRequest:
    """What a command line asks about the past. *at*: before this instruction, None: at the end. *places*: as they were
    typed, and *file*. *values*: one of `CHOICES`. *count*: how many writers of a place. *all*: also registers that are
    not known.
    """

    trace: RequestedTrace
    file: str
    output: OutputOptions
    hart: int | None
    at: int | None
    places: tuple[str, ...]
    values: str
    count: int = 1
    all: bool = False


class PastQuery(NamedTuple):
    """A history that is asked, from *file*. *number*: of the instruction before which the answer holds; one more than
    there are: the end of the history.
    """

    file: str
    session: Session
    selected: SelectedHistory
    shown: CommandOutput
    number: int
    at: int | None

    def past(self) -> Past | None:
        return past_of(self.session, self.selected, self.shown.progress)

    @property
    def image(self) -> Image:
        history = self.selected.history
        return self.selected.program.image_of(history.context_at(min(self.number, len(history)) - 1))


def answer_request(show: Callable[[PastQuery, PastRequest], Iterator[str]], request: PastRequest) -> int:
    with CommandOutput(request.output, "reading the trace") as shown:
        session = Session()
        say_about_trace(request.trace, session, shown)
        selected = session.selected(Context(hart=request.hart, values=request.values), shown.progress)
        length = len(selected.history)
        if request.at is not None and request.at > length:
            raise PastError(f"--at {request.at}: the history has the numbers 1 to {length}")
        number = length + 1 if request.at is None else request.at
        shown.rows(show(PastQuery(request.file, session, selected, shown, number, request.at), request))
    return 0


def common_name(name: str) -> str:
    """Return the name that a register has among those that are known: sp of x2."""
    number = regno_of(name)
    return name if name == "pc" or number is None else register_name(number).split(" ")[0]


def place_parameters(text: str, query: PastQuery) -> dict[str, Any]:
    """Return a place, and its name, as the parameters of the method `who_wrote`. Raises PlaceError."""
    selected, position = query.selected, history_position(query.number)
    named = PlaceText(text, query.image, printable(query.file))
    found = value_place(query.session, selected, named, position, query.shown.progress)
    if "register" not in found:
        return {"name": text, **found}
    name = str(found["register"])
    return {"name": f"${name}" if text.removeprefix("$") == name else f"{text} (in ${common_name(name)})", **found}
