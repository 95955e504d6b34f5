"""What the sources of traces of transfers have in common, which are read over a link, and not through sinks."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from rvtrace_gdb.session import program as session_program
from rvtrace_gdb.session import report
from rvtrace_gdb.session.capture.model import SavedRegisters
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.decoded_capture import DecodedCapture
from rvtrace_gdb.session.description.memory import believed
from rvtrace_gdb.session.description.model import Description, EncoderDescription
from rvtrace_gdb.session.errors import BadOption
from rvtrace_gdb.session.sources import TraceOwner, TraceSource
from rvtrace_gdb.session.sources.options import FILTER_OPTIONS, TRIGGER_OPTIONS, trace_request
from rvtrace_gdb.session.target.link import ConnectLink, Link, Marks, checked, open_link, states
from rvtrace_gdb.session.target.target_state import LinkReader, SavedTarget, wishes_of
from rvtrace_gdb.support.errors import Progress, RvtraceError, silent

CHOICES = ("to", "harts")
"""The options that say what is traced, not how."""


class TransferSource(TraceSource):
    """A trace of transfers of *harts* on the target that *link* leads to."""

    shows_halts = False

    def __init__(self, link: Link, harts: Sequence[int]) -> None:
        self.link, self.harts = link, list(harts)
        self.tracing = self.incomplete = True
        self.failure: RvtraceError | None = None
        self.notes: list[str] = []
        self._marks = Marks(link)

    def is_of(self, openocd: str | None) -> bool:
        return self._marks.is_own(openocd)

    def unchanged(self, runs: int | None) -> tuple[object, ...] | None:
        """Return a value that stays the same as long as nothing runs, None if that is unknown."""
        if runs is None:
            return None
        try:
            halted = set(states(self.link, self.harts).values()) == {"halted"}
            return (runs, self._device_state()) if halted else None
        except RvtraceError:
            return None

    def begins_at(self, saved: Iterable[SavedRegisters]) -> None:
        """Note where halted harts were when tracing began: nothing, where the trace says it."""
        return

    def _device_state(self) -> object:
        """Return what the registers say. Raises ComponentError and transport errors."""
        raise NotImplementedError

    def abandon(self) -> None:
        self.tracing = self.incomplete = False
        self.failure = None

    def close(self) -> None:
        self.link.close()


_Source = TypeVar("_Source", bound=TransferSource)


def begin_transfers(
    session: TraceOwner, description: Description, context: Context, options: Mapping[str, Any], connect: ConnectLink,
    start_source: Callable[[Link], _Source], places: Sequence[tuple[str, int, range]], progress: Progress = silent,
) -> list[str]:  # fmt: skip
    """Start tracing, and drop the trace that the session had. Return lines about what was set up.

    *start_source* starts the source over a link. *places*: name, hart and registers of each device.

    Raises NoElf, BadElf, WrongXlen, BadOption, Busy, ComponentError, and the transport's errors.
    """
    image = session_program.program_of(context.elf).image()
    trace_request(options, image)  # raises the reason
    wishes = wishes_of(options, context.save_memory)
    as_encoders = [EncoderDescription(name, registers.start, hart, ()) for name, hart, registers in places]
    link = open_link(description, as_encoders[0], checked(connect, context.openocd), as_encoders[1:])
    try:
        for encoder in as_encoders:
            session_program.check_xlen(image, description, encoder.hart, link)
        session.check_free(TransferSource)
        if session.live is not None:
            session.live.abandon()
        live = start_source(link)
    except BaseException:
        link.close()
        raise
    live.state = SavedTarget(LinkReader(link), live.harts, image, believed(description), wishes)
    with link.unpolled():
        live.state.begin(progress)
    live.begins_at(live.state.registers)
    live.notes += live.state.unsaid()
    target = session_program.CodeOnTarget(link, tuple(registers for _, _, registers in places))
    program = session_program.program_of(context.elf, target, context.others)
    capture = session_program.new_capture(description.name, image)
    return session.begin(live, DecodedCapture(capture, program, target), report.target(description))


def refuse_filters(options: Mapping[str, Any], what: str, allowed: Sequence[str] = ()) -> None:
    """Raise BadOption for filters and triggers, which would mislead where there are none. *what*: "TACIT has no ...";
    *allowed*: those that there are.
    """
    refused = [name for name in (*FILTER_OPTIONS, *TRIGGER_OPTIONS) if name not in allowed and options.get(name)]
    if refused:
        named = ", ".join(f"-{name.replace('_', '-')}" for name in refused)
        raise BadOption(f"{what}: leave out {named}")


def without_effect(options: Mapping[str, Any], what: str, effective: Sequence[str] = ()) -> list[str]:
    """Return notes about options that only encoders of N-Trace and E-Trace support. *what*: "a TRACER has no settings
    besides its hart"; *effective*: the options that have an effect.
    """
    known = (*CHOICES, *effective)
    asked = [name for name, value in options.items() if name not in known and value and not name.startswith("save")]
    if not asked:
        return []
    return [f"{what}; options without effect: {', '.join(name.replace('_', '-') for name in asked)}"]
