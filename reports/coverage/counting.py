"""The coverage of the programs of a history, from its counts (`decode/coverage.py`), without a walk over what ran."""

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from itertools import pairwise

from rvtrace_gdb.decode import coverage
from rvtrace_gdb.decode.calls.call_history import CallHistory
from rvtrace_gdb.decode.coverage import ExecutionCounts
from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.decode.program.context_images import ContextImages
from rvtrace_gdb.decode.program.elf import Elf
from rvtrace_gdb.decode.program.image import CodeMissing, Image
from rvtrace_gdb.decode.program.instructions import UndecodableInstruction
from rvtrace_gdb.reports.coverage.gaps import MaybeRan, maybe_ran
from rvtrace_gdb.reports.coverage.jump_tables import is_table_jump, jump_tables
from rvtrace_gdb.reports.coverage.program_coverage import (
    BranchOutcome,
    JumpOutcome,
    Outcomes,
    ProgramCoverage,
    merged,
)
from rvtrace_gdb.support.errors import Progress, silent


def program_coverages(
    history: History,
    program: ContextImages,
    calls: CallHistory,
    *,
    part: range | None = None,
    overwritten: bool = False,
    progress: Progress = silent,
) -> list[ProgramCoverage]:
    """Return the coverage of each program (ELF file) of a history. *calls*: its index of calls; *part*: the positions
    that count, default: all; *overwritten*: trace that was older was lost.

    Raises what *progress* raises.
    """
    part = range(len(history)) if part is None else part
    maybe = maybe_ran(history, program, part, overwritten=overwritten and not part.start, progress=progress)
    counts: dict[Image, ExecutionCounts] = {}
    for image, places in stretches(history, program, part).items():
        whole = places == [range(len(history))]
        counts[image] = coverage.counts(history, None if whole else places, progress, calls if whole else None)
    return of_images(counts, maybe, sum(position in part for position in history.gap_positions))


def of_images(counts: Mapping[Image, ExecutionCounts], maybe: MaybeRan, gaps: int) -> list[ProgramCoverage]:
    """Return the coverage of each program of one run, by what was counted in its images. *gaps*: how many it has."""
    sums = merged(one for image, counted in counts.items() for one in _of_image(image, counted, maybe))
    for one in sums:
        one.runs, one.gaps = 1, gaps
    return sums


def stretches(history: History, program: ContextImages, part: range) -> dict[Image, list[range]]:
    """Return the positions at which each program ran; the one that all contexts share comes first."""
    found: dict[Image, list[range]] = {program.base: []}
    borders = [part.start, *(at for at, _ in history.contexts if at in part[1:]), part.stop]
    for start, stop in pairwise(borders):
        places = found.setdefault(program.image_of(history.context_at(start)), [])
        if places and places[-1].stop == start:
            start = places.pop().start
        if start < stop:
            places.append(range(start, stop))
    return found


def _of_image(image: Image, counted: ExecutionCounts, maybe: MaybeRan) -> Iterator[ProgramCoverage]:
    rest = sorted(counted.ran)
    for elf, bias in image.layers:
        own: set[int] = set()
        for start, end, moved in _placed_segments(elf, bias):
            inside = rest[bisect_left(rest, start) : bisect_left(rest, end)]
            own.update(inside)
            if moved != bias:  # code at its physical address
                yield _of_elf(elf, moved, image, _counts_of(counted, set(inside)), MaybeRan())
                own.difference_update(inside)
            rest = [pc for pc in rest if not start <= pc < end] if inside else rest
        yield _of_elf(elf, bias, image, _counts_of(counted, own), maybe)


def _placed_segments(elf: Elf, bias: int) -> Iterator[tuple[int, int, int]]:
    """Yield (start, end, bias) of where the code of a file is in memory."""
    for segment in elf.segments:
        if segment.executable:
            yield segment.vaddr + bias, segment.vaddr + bias + len(segment.data), bias
            if segment.paddr != segment.vaddr and not bias:
                yield segment.paddr, segment.paddr + len(segment.data), segment.paddr - segment.vaddr


def _counts_of(counted: ExecutionCounts, own: set[int]) -> ExecutionCounts:
    """Return the counts of some instructions."""
    if len(own) == len(counted.ran):
        return counted
    return counted._replace(
        ran={pc: counted.ran[pc] for pc in own},
        steps={step: count for step, count in counted.steps.items() if step[0] in own or step[1] in own},
        resumed={step: count for step, count in counted.resumed.items() if step[0] in own or step[1] in own},
    )


def _of_elf(elf: Elf, bias: int, image: Image, counted: ExecutionCounts, maybe: MaybeRan) -> ProgramCoverage:
    alone = Image(elf.xlen)
    alone.add_elf(elf, bias)
    branches = ((pc, coverage.branch_outcomes(counted, image, pc)) for pc in counted.ran)
    found = ProgramCoverage(
        elf,
        ran={pc - bias: count for pc, count in counted.ran.items()},
        outcomes={pc - bias: Outcomes(it.taken, it.not_taken) for pc, it in branches if it is not None},
        jumps=_jumps(counted, image, bias),
        entered=_entered(counted, alone, bias),
    )
    _add_maybe(found, alone, bias, maybe)
    return found


def _jumps(counted: ExecutionCounts, image: Image, bias: int) -> dict[JumpOutcome, int]:
    """Return how often each indirect jump went where it did."""
    found: dict[JumpOutcome, int] = {}
    jumps = {pc for pc in counted.ran if _is_table_jump(image, pc)}
    for source, target in {**counted.steps, **counted.resumed} if jumps else ():
        times = counted.step(source, target) if source in jumps else 0
        if times:
            found[JumpOutcome(source - bias, target - bias)] = times
    return found


def _is_table_jump(image: Image, pc: int) -> bool:
    try:
        return is_table_jump(image.instruction(pc))
    except (CodeMissing, UndecodableInstruction):
        return False


def _entered(counted: ExecutionCounts, alone: Image, bias: int) -> dict[int, int]:
    if not counted.ran:
        return {}
    ends = {function.start: function.end for function in coverage.functions(alone)}
    entries = coverage.function_entries(counted, alone, ends)
    return {start - bias: number for start, number in entries.items() if number}


def _add_maybe(to: ProgramCoverage, alone: Image, bias: int, maybe: MaybeRan) -> None:
    """Add what may have run."""
    if maybe.everything:
        instructions = list(code_of(alone))
        to.maybe_ran.update(pc - bias for pc in instructions)
        to.maybe_outcomes.update(BranchOutcome(pc - bias, taken) for pc in instructions for taken in (False, True))
        tables = jump_tables(alone, coverage.functions(alone))
        to.maybe_jumps.update(JumpOutcome(pc - bias, it - bias) for pc, targets in tables.items() for it in targets)
        return
    to.maybe_ran.update(pc - bias for pc in maybe.instructions if alone.knows(pc))
    mask = (1 << alone.xlen) - 1
    for pc, way in maybe.ways:
        try:
            instruction = alone.instruction(pc)
        except (CodeMissing, UndecodableInstruction):
            continue
        if instruction.is_branch and instruction.offset is not None:
            to.maybe_outcomes.add(BranchOutcome(pc - bias, way == pc + instruction.offset & mask))
        elif is_table_jump(instruction):
            to.maybe_jumps.add(JumpOutcome(pc - bias, way - bias))


def code_of(image: Image) -> Iterator[int]:
    """Yield the addresses of the instructions of all functions of a program."""
    for function in coverage.functions(image):
        pc = function.start
        while pc < function.end:
            yield pc
            try:
                pc += image.instruction(pc).length
            except (CodeMissing, UndecodableInstruction):
                break


def conditional_branches(image: Image) -> Iterator[int]:
    """Yield the addresses of the conditional branches that have two ways."""
    for pc in code_of(image):
        try:
            instruction = image.instruction(pc)
        except (CodeMissing, UndecodableInstruction):
            continue
        if instruction.is_branch and instruction.offset != instruction.length:
            yield pc
