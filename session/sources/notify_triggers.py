"""Trace-notify triggers that `trace start` sets by itself: at places where an encoder, left alone, would not tell a
decoder what it has to know. A trigger with that action lets the encoder synchronize (N-Trace: SYNC 6).

- An encoder that only counts calls for implicit returns (trTeInstImplicitReturnMode 1, and the encoders of SiFive's
  interface before 1.0) takes the returns of the task that comes for those of the task that went. A synchronization
  clears the count, so there is a trigger at each function that switches tasks, as far as the program has known ones.
- Some encoders report a context with synchronizations alone, and send none where a trap handler returns: the target
  description says at which instructions (`context_notify`). The program's are found, while contexts are traced.

What the hart has too few triggers for is said in a warning. All are taken back when the trace ends.

Ref: N-Trace 1.0, "Implicit Return Optimization"; RISC-V Debug Specification 1.0, "Sdtrig" (action 4); libnexus-rv,
contrib/p550/README.md (three triggers on Linux); SpacemiT, trace_user_guide.md (a trigger at each sret).
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from rvtrace_gdb.controlregs.debug_triggers import AsManyAsFree, TriggerPoint
from rvtrace_gdb.controlregs.trace_control.encoder_registers import ImplicitReturnMode, TeFormat, TrigAction
from rvtrace_gdb.controlregs.trace_control.request import EncoderSettings
from rvtrace_gdb.decode.program.image import CodeMissing, Image
from rvtrace_gdb.decode.program.instructions import UndecodableInstruction
from rvtrace_gdb.rows.harts_text import harts_text
from rvtrace_gdb.session.description.model import TRAP_RETURNS, Description
from rvtrace_gdb.session.sources.options import Armed
from rvtrace_gdb.session.tasks.task_system import shipped_systems
from rvtrace_gdb.support.errors import Cancelled, RvtraceError
from rvtrace_gdb.support.text import warning

_NAMED = 4
"""The most places that a line names."""


class Need(NamedTuple):
    """Places where an encoder has to synchronize. *purpose*: what that does; *otherwise*: what happens without it."""

    places: tuple[int, ...]
    purpose: str
    otherwise: str


class _Remark(NamedTuple):
    """What is said of a hart; of several harts once."""

    text: str
    is_warning: bool = False


_SWITCHES = "there the encoder's count of calls begins anew, since tasks switch"
_UNSWITCHED = "behind a task switch the history may go on in a wrong function (trace without -implicit-return)"
_RETURNS = "there the encoder reports the context"
_UNRETURNED = "what follows them has the context of before until the next synchronization"
_NO_SWITCH = (
    f"its encoder counts calls, of whatever task: {_UNSWITCHED}. The program has no function that is known to switch"
    " tasks: if it has one, name it with -trigger-notify"
)


def set_needed(
    armed: Armed,
    description: Description,
    encoders: Mapping[int, EncoderSettings],
    requested: Sequence[int],
    image: Image,
) -> list[str]:
    """Set the triggers that the encoders of harts, with these settings, need for the program in *image*, besides those
    at *requested* places. Return lines for the user. Raises Cancelled.
    """
    places, remarks = NotifyPlaces(image), dict[_Remark, list[int]]()
    for hart, settings in encoders.items():
        needs = [
            need._replace(places=tuple(place for place in need.places if place not in requested))
            for need in places.needed(description, settings)
        ]
        lines = list(_set_triggers(armed, hart, [need for need in needs if need.places], places))
        if counts_calls(settings) and not places.switches and not requested:
            lines.append(_Remark(_NO_SWITCH, True))
        for line in lines:
            remarks.setdefault(line, []).append(hart)
    return [_note_line(line, harts) for line, harts in remarks.items()]


def counts_calls(settings: EncoderSettings) -> bool:
    """Return whether the encoder tells returns by a count of calls alone, which a synchronization clears."""
    return settings.format == TeFormat.N_TRACE and settings.implicit_return == ImplicitReturnMode.DEPTH_COUNTER


class NotifyPlaces:
    """The places of the program in *image* where encoders may have to synchronize."""

    def __init__(self, image: Image) -> None:
        self._image = image
        self._returns: dict[tuple[str, ...], tuple[int, ...]] = {}  # all harts have the same

    @cached_property
    def switches(self) -> tuple[int, ...]:
        """The entries of the functions that are known to switch tasks."""
        names = (name for system in shipped_systems() for name in system.switches)
        return tuple(dict.fromkeys(address for name in names for address, _ in self._image.symbols_named(name)))

    def trap_returns(self, names: tuple[str, ...]) -> tuple[int, ...]:
        """Return where the program has these instructions, a few of `TRAP_RETURNS`, in rising order."""
        if names not in self._returns:
            found = {address for name in names for address in self._words(TRAP_RETURNS[name])}
            self._returns[names] = tuple(sorted(filter(self._begins_instruction, found)))
        return self._returns[names]

    def needed(self, description: Description, settings: EncoderSettings) -> Iterator[Need]:
        """Yield what an encoder with these settings needs."""
        if counts_calls(settings) and self.switches:
            yield Need(self.switches, _SWITCHES, _UNSWITCHED)
        if settings.context and description.context_notify:
            yield Need(self.trap_returns(description.context_notify), _RETURNS, _UNRETURNED)

    def place_list(self, places: Sequence[int]) -> str:
        """Return places as a list in a sentence."""
        words = [self._place_text(place) for place in places[:_NAMED]]
        more = len(places) - len(words)
        words += [f"{more} more"] if more else []
        return " and ".join(part for part in (", ".join(words[:-1]), words[-1]) if part)

    def _place_text(self, place: int) -> str:
        name, offset = self._image.symbol(place) or ("", 0)
        return f"{place:#x}" if not name else f"<{name}{f'+{offset}' * bool(offset)}>"

    def _words(self, word: int) -> Iterator[int]:
        """Yield where code has these four bytes, at whatever address."""
        pattern = re.compile(re.escape(word.to_bytes(4, "little")))
        for elf, bias in self._image.elves:
            for segment in elf.segments:
                found = pattern.finditer(segment.data) if segment.executable else ()
                yield from (segment.vaddr + match.start() + bias for match in found)

    def _begins_instruction(self, address: int) -> bool:
        """Return whether the instructions of the function lead to *address*: the bytes may be of others, or data."""
        at = self._image.function(address)
        if at is None:
            return address % 2 == 0
        try:
            while at < address:
                at += self._image.instruction(at).length
        except (CodeMissing, UndecodableInstruction):
            return address % 2 == 0
        return at == address


def _set_triggers(armed: Armed, hart: int, needs: Sequence[Need], places: NotifyPlaces) -> Iterator[_Remark]:
    """Set triggers for the needs of a hart, the first ones first, and yield what is to be said."""
    for need in needs:
        points = [TriggerPoint(TrigAction.TRACE_NOTIFY, place) for place in need.places]
        try:
            yield from _result_lines(armed.add_free(hart, points), need, places)
        except Cancelled:
            raise
        except RvtraceError as error:
            yield _Remark(f"no trigger at {places.place_list(need.places)}: {error}. So {need.otherwise}", True)


def _result_lines(result: AsManyAsFree, need: Need, places: NotifyPlaces) -> Iterator[_Remark]:
    count, free = len(result.taken), result.free
    if count:
        words = f"trace-notify trigger{'s'[: count > 1]} at {places.place_list(need.places[:count])}"
        yield _Remark(f"{words} ({count} of {free} free trigger{'s'[: free > 1]}): {need.purpose}")
    if missing := need.places[count:]:
        yield _Remark(f"no free trigger for {places.place_list(missing)}: {need.otherwise}", True)


def _note_line(remark: _Remark, harts: Sequence[int]) -> str:
    text = f"{harts_text(harts)}: {remark.text}"
    return warning(text) if remark.is_warning else text
