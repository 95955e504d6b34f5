"""How much is known of a history without values, from what, why not more, and what would help: as facts.

The share is that of a sample of positions.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from rvtrace_gdb.decode.history.events import Loss, Start, Stop
from rvtrace_gdb.decode.history.history import Event, History
from rvtrace_gdb.decode.reconstruction.facts import KnownValue
from rvtrace_gdb.decode.reconstruction.happenings import is_lost
from rvtrace_gdb.session.past.reconstructed.facts import Disagreement, HartFacts
from rvtrace_gdb.support.extents import Extent

SAMPLE = 64
"""Positions that are looked at."""


class KnowledgeLimit(StrEnum):
    """Why not everything is known. Each is documented with its place, and its count."""

    NO_BEGINNING = "no-beginning"
    """Nothing was saved where the trace began."""
    OVERWRITTEN = "overwritten"
    """The trace that begins where the state was saved was overwritten."""
    NO_STOP = "no-stop"
    """The state after the last instruction is not known."""
    MEMORY_OFF = "memory-off"
    """Memory is not wanted."""
    NO_RAM = "no-ram"
    """No range of memory is declared that nothing writes but the hart."""
    MEMORY_NOT_SAVED = "memory-not-saved"
    """What was in RAM at the beginning is not known."""
    GAP = "gap"
    """Part of the trace is missing: the first place, and how many there are."""
    HALT = "halt"
    """A debugger halted the hart, and may have written anything: the first place, and how many there are."""
    TRANSLATION = "translation"
    """Addresses are, or may be, translated from this place on."""
    CONTRADICTION = "contradiction"
    """See `Knowledge.disagreements`: the first place, and how many there are."""
    UNKNOWN_INSTRUCTION = "unknown-instruction"
    """What an instruction does is not known: the last place of one, and how many different ones ran."""


class Remedy(StrEnum):
    """What would help."""

    START_HALTED = "start-halted"
    """Start the trace while the hart is halted."""
    STOP_EARLIER = "stop-earlier"
    """Start the trace nearer to where it stops, or give it a larger buffer."""
    SAVE_MEMORY = "save-memory"
    """Save memory when the trace starts."""
    DECLARE_RAM = "declare-ram"
    """Declare the ranges of RAM."""
    WANT_MEMORY = "want-memory"
    """Want memory."""
    CONNECT = "connect"
    """Let gdb be connected through rvtrace, so that what it writes is known."""
    HALT = "halt"
    """Let the hart be halted where its trace ends."""


class Reason(NamedTuple):
    """*position*: None where there is no place. *places*: how many there are. *pc*: of an instruction."""

    limit: KnowledgeLimit
    position: int | None = None
    places: int = 1
    pc: int | None = None


class Knowledge(NamedTuple):
    """What is known of a history.

    beginning, memory, stop  whether registers are known at the beginning, some RAM there, and registers at the stop
    first     the first position of which anything can be known; *positions*: the length of the history
    rams      the memory that are believed to be written by the hart alone
    sampled   positions that were looked at; *complete*: those at which all integer registers are known
    registers, known  integer registers that were looked at, and those that are known
    """

    beginning: bool
    memory: bool
    stop: bool
    first: int
    positions: int
    rams: Sequence[Extent]
    sampled: int
    complete: int
    registers: int
    known_count: int
    reasons: Sequence[Reason]
    remedies: Sequence[Remedy]
    disagreements: Sequence[Disagreement]
    stop_memory: bool = False
    """Whether RAM is known at the stop."""


def sampled_positions(first: int, length: int) -> Sequence[int]:
    """Return the positions that are looked at, in increasing order."""
    count = min(SAMPLE, length - first + 1)
    return [first + (length - first) * number // max(count - 1, 1) for number in range(count)]


def share(states: Iterable[Sequence[KnownValue]]) -> tuple[int, int, int, int]:
    """Return sampled, complete, registers and known of `Knowledge`, from the integer registers at some positions."""
    sampled = complete = known = 0
    for x in states:
        missing = list(x[1:]).count(None)
        sampled, complete, known = sampled + 1, complete + (not missing), known + 31 - missing
    return sampled, complete, 31 * sampled, known


def reasons(
    history: History,
    facts: HartFacts,
    *,
    overwritten: bool,
    translated: int | None,
    disagreements: Sequence[Disagreement],
    unknown: Sequence[tuple[int, int]],
) -> Iterator[Reason]:
    """Yield why not everything is known. *translated*: from where on addresses are. *unknown*: (position, pc) of the
    instructions that are not known.
    """
    beginning = facts.beginning
    if beginning is None:
        yield Reason(KnowledgeLimit.OVERWRITTEN if overwritten else KnowledgeLimit.NO_BEGINNING)
    if not facts.memory:
        yield Reason(KnowledgeLimit.MEMORY_OFF)
    elif not facts.machine.rams:
        yield Reason(KnowledgeLimit.NO_RAM)
    elif beginning is not None and not beginning.memory:
        yield Reason(KnowledgeLimit.MEMORY_NOT_SAVED)
    if facts.stop is None:
        yield Reason(KnowledgeLimit.NO_STOP)
    halted = {it.position for it in facts.halts}
    first = 0 if beginning is None else beginning.position
    lost = [it for it in history.events if _is_lost(it, facts, halted) and first < it.position < len(history)]
    yield from _reason_at(KnowledgeLimit.HALT, [it.position for it in lost if _is_halt(it)])
    gaps = {*(it.position for it in lost if not _is_halt(it)), *history.gap_positions}
    yield from _reason_at(KnowledgeLimit.GAP, sorted(gaps))
    if translated is not None and facts.memory and facts.machine.rams:
        yield Reason(KnowledgeLimit.TRANSLATION, translated)
    yield from _reason_at(KnowledgeLimit.CONTRADICTION, [it.position for it in disagreements])
    if unknown:
        position, pc = unknown[0]
        yield Reason(KnowledgeLimit.UNKNOWN_INSTRUCTION, position, len(unknown), pc)


def remedies(reasons: Iterable[Reason]) -> Sequence[Remedy]:
    """Return what would help against some reasons."""
    return list(dict.fromkeys(it for reason in reasons for it in _REMEDIES.get(reason.limit, ())))


_REMEDIES: Mapping[KnowledgeLimit, Sequence[Remedy]] = {
    KnowledgeLimit.NO_BEGINNING: (Remedy.START_HALTED, Remedy.SAVE_MEMORY),
    KnowledgeLimit.OVERWRITTEN: (Remedy.STOP_EARLIER,),
    KnowledgeLimit.NO_STOP: (Remedy.HALT,),
    KnowledgeLimit.MEMORY_OFF: (Remedy.WANT_MEMORY,),
    KnowledgeLimit.NO_RAM: (Remedy.DECLARE_RAM,),
    KnowledgeLimit.MEMORY_NOT_SAVED: (Remedy.SAVE_MEMORY,),
    KnowledgeLimit.HALT: (Remedy.CONNECT,),
}


def _is_lost(event: Event, facts: HartFacts, halted: set[int]) -> bool:
    if not isinstance(event.fact, Start | Stop | Loss):
        return False
    return is_lost(event, facts.halts[:1] if event.position in halted else ())


def _is_halt(event: Event) -> bool:
    return isinstance(event.fact, Start) and event.fact.reason.resumes


def _reason_at(limit: KnowledgeLimit, positions: Sequence[int]) -> Iterator[Reason]:
    if positions:
        yield Reason(limit, positions[0], len(positions))
