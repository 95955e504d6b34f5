"""Where a hart was when its encoder sampled its pc, and which calls the encoder reported: a profile without a flow.

What ran between two samples is not known, so nothing is counted but samples. Their shares are those of the hart's time
as far as the encoder samples at equal distances and the program does not keep step with it.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from rvtrace_gdb.decode.history.hart_events import HartEvent, HartEventKind
from rvtrace_gdb.decode.history.history import Event, History
from rvtrace_gdb.decode.program.image import Image, Program
from rvtrace_gdb.decode.program.source.source_lines import SourceLines

NO_SYMBOL = "?"
_CALLS = (HartEventKind.CALL, HartEventKind.JUMP)


@dataclass
class SampleCounts:
    """The counts of the samples and calls of harts.

    samples    how many there are; *placeless*: those whose address is not known
    losses     how often something is lost, or contradicts the program, a sample outside of its code among it
    functions  the samples by the name of their function; `NO_SYMBOL`: without one
    lines      the samples by FILE:LINE, of code that has lines
    calls      how often a call from one function to another was reported
    unended    how many calls lead to an address that is not known
    """

    samples: int = 0
    placeless: int = 0
    losses: int = 0
    functions: Counter[str] = field(default_factory=Counter)
    lines: Counter[str] = field(default_factory=Counter)
    calls: Counter[tuple[str, str]] = field(default_factory=Counter)
    unended: int = 0

    def add(self, history: History, program: Program) -> None:
        """Count the events of a history."""
        names = _PlaceNames(program)
        for event in history.events:
            self.losses += event.is_loss
            if isinstance(event.fact, HartEvent):
                self._add_event(event, event.fact, names, program.image_of(history.context_at(event.position)))

    def _add_event(self, event: Event, fact: HartEvent, names: "_PlaceNames", image: Image) -> None:
        if fact.kind is HartEventKind.PC_SAMPLE:
            self.samples += 1
            if event.last_pc is None:
                self.placeless += 1
                return
            self.functions[names.name_of_function(image, event.last_pc)] += 1
            line = names.line_name(image, event.last_pc)
            if line:
                self.lines[line] += 1
        elif fact.kind in _CALLS and event.last_pc is not None:
            if event.next_pc is None:
                self.unended += 1
            else:
                ends = (names.name_of_function(image, pc) for pc in (event.last_pc, event.next_pc))
                self.calls[next(ends), next(ends)] += 1


class _PlaceNames:
    """Names of functions and lines, each found once."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._functions: dict[tuple[int, int], str] = {}
        self._lines: dict[tuple[int, int], str] = {}
        self._sources: dict[int, SourceLines] = {}

    def name_of_function(self, image: Image, pc: int) -> str:
        """Return the name of the function of an address."""
        known = self._functions.get((id(image), pc))
        if known is None:
            symbol = image.symbol(pc)
            known = self._functions[id(image), pc] = NO_SYMBOL if symbol is None else symbol[0]
        return known

    def line_name(self, image: Image, pc: int) -> str:
        """Return FILE:LINE of an address, "" without one."""
        known = self._lines.get((id(image), pc))
        if known is None:
            sources = self._sources.setdefault(id(image), SourceLines(image))
            known = self._lines[id(image), pc] = sources.line_at(pc)
        return known


def sample_counts(histories: Mapping[int, History], program: Program) -> SampleCounts:
    """Return the counts of some harts together."""
    counts = SampleCounts()
    for history in histories.values():
        counts.add(history, program)
    return counts
