"""The test vectors of a program's decisions in a history."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rvtrace_gdb.decode.calls.call_history import CallHistory
from rvtrace_gdb.decode.coverage import stretch_entries
from rvtrace_gdb.decode.history.history import AnyPath, History
from rvtrace_gdb.decode.program.context_images import ContextImages
from rvtrace_gdb.decode.program.csrs import ProgramContext
from rvtrace_gdb.decode.program.elf import Elf
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.program.source.source_lines import SourceLines
from rvtrace_gdb.reports.coverage.conditions.condition_values import EvaluationCounter
from rvtrace_gdb.reports.coverage.conditions.matching import CodeDecision
from rvtrace_gdb.reports.coverage.conditions.program_decisions import ProgramDecision, program_decisions
from rvtrace_gdb.reports.coverage.counting import conditional_branches
from rvtrace_gdb.reports.coverage.program_coverage import ProgramCoverage, identity_of
from rvtrace_gdb.support.errors import Progress, silent


class ElfDecisions(NamedTuple):
    """The *copies* of decisions in the code of the ELF file with an *identity*, which was loaded with a *bias*."""

    identity: str
    bias: int
    copies: list[CodeDecision]


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
    several = has_several(program, history.program_contexts)
    entries = entries_of_part(history, part)
    identities = {found.identity for found in programs}
    for of in elf_decisions(program):
        if of.identity in identities:
            counter = EvaluationCounter(of.copies, one_stack=has_one_stack(calls))
            if of.copies and not several:
                counter.add(entries, progress)
            put_conditions(programs, of, counter, several=several)


def elf_decisions(program: ContextImages) -> list[ElfDecisions]:
    """Return the decisions of the files of the program that all contexts share, one for each identity."""
    places = {identity_of(elf): (elf, bias) for elf, bias in program.base.layers}
    return [
        ElfDecisions(identity, bias, [copy for it in _decisions_of_elf(elf, bias) for copy in it.copies or ()])
        for identity, (elf, bias) in places.items()
    ]


def put_conditions(
    programs: Sequence[ProgramCoverage], of: ElfDecisions, counter: EvaluationCounter, *, several: bool
) -> None:
    """Put what was counted of the decisions of a file into its coverage. *several*: programs ran by turns."""
    for found in programs:
        if found.identity == of.identity:
            for number, copy in enumerate(of.copies):
                key = tuple(pc - of.bias for pc in copy.key)
                found.vectors.setdefault(key, set()).update(counter.vectors[number])
                if several or number in counter.doubtful:
                    found.doubtful_decisions.add(key)


def has_several(program: ContextImages, contexts: Iterable[ProgramContext]) -> bool:
    """Return whether another program than the one that all contexts share ran in one of them."""
    return any(program.image_of(context) is not program.base for context in contexts)


def has_one_stack(calls: CallHistory) -> bool:
    """Return whether a program never changed its stack."""
    return len(set(calls.stretches.stacks)) == 1


def _decisions_of_elf(elf: Elf, bias: int) -> list[ProgramDecision]:
    alone = Image(elf.xlen)
    alone.add_elf(elf, bias)
    return program_decisions(alone, SourceLines(alone), list(conditional_branches(alone)))


def entries_of_part(history: History, part: range) -> Sequence[AnyPath]:
    """Return what some positions of a history consist of, in order."""
    return history.entries if part == range(len(history)) else stretch_entries(history, part)
