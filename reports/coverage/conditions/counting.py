"""The test vectors of a program's decisions in a history."""

from collections.abc import Sequence

from rvtrace_gdb.decode.calls.call_history import CallHistory
from rvtrace_gdb.decode.history.history import AnyPath, History, Path
from rvtrace_gdb.decode.program.elf import Elf
from rvtrace_gdb.decode.program.image import ContextImages, Image
from rvtrace_gdb.decode.program.source_lines import SourceLines
from rvtrace_gdb.reports.coverage.conditions.condition_values import EvaluationCounter
from rvtrace_gdb.reports.coverage.conditions.program_decisions import ProgramDecision, program_decisions
from rvtrace_gdb.reports.coverage.counting import conditional_branches
from rvtrace_gdb.reports.coverage.program_coverage import ProgramCoverage, identity_of
from rvtrace_gdb.support.errors import Progress, silent


def add_conditions(
    programs: Sequence[ProgramCoverage],
    history: History,
    program: ContextImages,
    calls: CallHistory,
    part: range,
    progress: Progress = silent,
) -> None:
    """Add what the conditions of decisions were to the coverage of the programs of a history. *calls*: its index of
    calls; *part*: the positions that count. Raises what *progress* raises.

    Of a history in which several programs ran by turns nothing is determined.
    """
    several = any(program.image_of(context) is not program.base for _, context in history.contexts)
    entries = _entries_of_part(history, part)
    places = {identity_of(elf): (elf, bias) for elf, bias in program.base.layers}
    for found in programs:
        if found.identity not in places:
            continue
        elf, bias = places[found.identity]
        copies = [copy for it in _decisions_of_elf(elf, bias) for copy in it.copies or ()]
        counter = EvaluationCounter(copies, one_stack=len(set(calls.stretches.stacks)) == 1)
        if copies and not several:
            counter.add(entries, progress)
        for number, copy in enumerate(copies):
            key = tuple(pc - bias for pc in copy.key)
            found.vectors.setdefault(key, set()).update(counter.vectors[number])
            if several or number in counter.doubtful:
                found.doubtful_decisions.add(key)


def _decisions_of_elf(elf: Elf, bias: int) -> list[ProgramDecision]:
    alone = Image(elf.xlen)
    alone.add_elf(elf, bias)
    return program_decisions(alone, SourceLines(alone), list(conditional_branches(alone)))


def _entries_of_part(history: History, part: range) -> Sequence[AnyPath]:
    if part == range(len(history)):
        return history.entries
    return [Path(list(entry.chunks(first, stop))) for entry, first, stop in history.pieces(part.start, part.stop)]
