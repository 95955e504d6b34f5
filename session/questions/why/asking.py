"""Questions why about a session's trace: what they are about is made of its history, past and calls."""

from typing import NamedTuple

from rvtrace_gdb.decode.expressions.parts import ValuePart, innermost_part
from rvtrace_gdb.decode.expressions.types import is_scalar, size_of
from rvtrace_gdb.rows.answers import MemoryWindow
from rvtrace_gdb.session.past.choice import PastSource, facts_of, past_of
from rvtrace_gdb.session.past.past import PC
from rvtrace_gdb.session.past.register_writers import RegisterWriters
from rvtrace_gdb.session.questions.why.answer import DEPTH, WhyAnswer
from rvtrace_gdb.session.questions.why.branches import Decisions
from rvtrace_gdb.session.questions.why.links import ValueLinks
from rvtrace_gdb.session.questions.why.names import ProgramNames, WrittenPart
from rvtrace_gdb.session.questions.why.trace import HartRanges, TracedPast
from rvtrace_gdb.session.selected_history import SelectedHistory, call_frames, call_history
from rvtrace_gdb.support.errors import Progress, silent


class WhyQuestion(NamedTuple):
    """What is asked. *position*: before the instruction there. *register*: its number, or *where*: (address, size).
    PC: with *branches*, what let the instruction there run.

    branches  also which branches let it run
    thin      without what addresses and indices are made of
    """

    position: int
    register: int | None = None
    where: tuple[int, int] | None = None
    branches: bool = False
    thin: bool = False
    depth: int = DEPTH


class WrittenBytes(NamedTuple):
    """Bytes *begin* to *end* - 1 of what is at an *address* were written. *window*: the memory around them."""

    address: int
    begin: int
    end: int
    window: MemoryWindow | None


class _HistoryParts(NamedTuple):
    """What questions about a history have in common."""

    trace: TracedPast
    links: ValueLinks
    branches: Decisions
    names: ProgramNames


def answer(
    session: PastSource, selected: SelectedHistory, question: WhyQuestion, progress: Progress = silent, *,
    sources: bool = True,
) -> WhyAnswer:  # fmt: skip
    """Return the answer to a question. *sources*: whether the text of source lines is in it."""
    parts = _history_parts(session, selected, progress, sources=sources)
    parts.trace.progress = progress
    found = WhyAnswer(
        parts.trace, parts.links, parts.branches, parts.names,
        thin=question.thin, depth=question.depth, choices=question.branches,
    )  # fmt: skip
    if question.register == PC:
        found.ask_execution(min(question.position, len(selected.history) - 1))
    elif question.register is not None:
        found.ask_register(question.position, question.register)
    elif question.where is not None:
        found.ask_memory(question.position, *question.where)
    if question.branches and question.register != PC:
        found.ask_branches()
    return found


def expression_place(
    session: PastSource, selected: SelectedHistory, text: str, position: int, progress: Progress = silent
) -> int | tuple[int, int]:
    """Return where an expression of the program has its value: see `ProgramNames.expression`. Raises BadExpression."""
    return _history_parts(session, selected, progress, sources=True).names.expression(position, text)


def is_number_at(
    session: PastSource, selected: SelectedHistory, address: int, size: int, position: int, progress: Progress = silent
) -> bool:
    """Return whether some bytes are one number, or pointer, of the program, as an instruction sees it."""
    found = _history_parts(session, selected, progress, sources=True).names.place(position, address, size)
    return found.type is not None and is_scalar(found.type) and size_of(found.type) == size


class WrittenText(NamedTuple):
    """What was written, by its name, and its value before and after, as gdb prints them; None: it is not known."""

    name: str
    old: str | None
    new: str | None


def written_text(
    session: PastSource, selected: SelectedHistory, text: str, position: int, write: WrittenBytes,
    progress: Progress = silent,
) -> WrittenText | None:  # fmt: skip
    """Return which part of a structure or an array was written that an expression means at a position; None: it means
    neither, or not all of the part is known. Raises what *progress* raises.
    """
    names = _history_parts(session, selected, progress, sources=True).names
    part = names.written_part(position, text, write.begin, write.end - write.begin)
    return None if part is None else _text_of_part(names, position, part, write)


def text_in_part(
    session: PastSource, selected: SelectedHistory, part: ValuePart, position: int, write: WrittenBytes,
    progress: Progress = silent,
) -> WrittenText | None:  # fmt: skip
    """Return the same of a part that is known, one of `expression_parts`."""
    names = _history_parts(session, selected, progress, sources=True).names
    inner = innermost_part(part.type, write.begin - part.offset, write.end - write.begin, into_unions=False)
    written = WrittenPart(part.suffix + inner.suffix, inner.type, part.offset + inner.offset)
    return _text_of_part(names, position, written, write)


def _text_of_part(
    names: ProgramNames, position: int, part: WrittenPart, write: WrittenBytes
) -> WrittenText | None:
    if write.window is None:
        return None
    begin = write.address + part.offset - write.window[0]
    old, new = (it[begin : begin + size_of(part.type)] if begin >= 0 else [] for it in write.window[1:])
    if len(new) < size_of(part.type) or None in new:
        return None
    before, after = (None if None in it else names.content_text(position, part.type, it) for it in (old, new))
    return None if after is None else WrittenText(part.text, before, after)


def expression_parts(
    session: PastSource, selected: SelectedHistory, text: str, position: int, most: int, progress: Progress = silent
) -> tuple[list[ValuePart], int]:
    """Return the elements or members of what an expression means at a position, *most* of them, with their whole names,
    and how many more there are; none of what is not an array or a structure in memory.
    """
    return _history_parts(session, selected, progress, sources=True).names.parts(position, text, most)


def _history_parts(
    session: PastSource, selected: SelectedHistory, progress: Progress, *, sources: bool
) -> _HistoryParts:
    past = past_of(session, selected, progress)
    if past is not None:
        past.prepare(progress)
    history, program = selected.history, selected.program
    calls = call_history(session, selected, progress)
    frames = call_frames(session, selected, progress)

    def build() -> _HistoryParts:
        trace = TracedPast(history, program, past, _writers(session, selected), _hart(session, selected))
        decisions = Decisions(trace, calls, frames)
        return _HistoryParts(trace, ValueLinks(trace), decisions, ProgramNames(trace, sources=sources))

    found = session.cached(_HistoryParts, history, build)
    if found.trace.past is not past:  # other values are wanted now
        return build()
    return found


def _writers(session: PastSource, selected: SelectedHistory) -> RegisterWriters | None:
    from rvtrace_gdb.decode.tandem.decoder import tandem_of

    if tandem_of(selected.history) is not None:
        return None
    facts = facts_of(session, selected)
    if facts is None:
        return RegisterWriters(selected.history, selected.program)
    machine_only = facts.machine.machine_only
    return RegisterWriters(selected.history, selected.program, halts=facts.halts, machine_only=machine_only)


def _hart(session: PastSource, selected: SelectedHistory) -> HartRanges:
    capture = session.capture()
    harts = {selected.hart, *(it.hart for it in capture.encoders), *(it.hart for it in capture.records)}
    return HartRanges(selected.hart, len(harts) > 1, capture.ranges)
