"""Counts by addresses, from which LLVM's and AutoFDO's own programs make profiles for compilers.

The addresses are distances from the first segment that is loaded: for llvm-profgen, of code; for AutoFDO, of anything.

Source: LLVM 19, llvm/tools/llvm-profgen/PerfReader.h (unsymbolized profile); AutoFDO 0.19, sample_reader.cc (text).
"""

from collections.abc import Iterator

from rvtrace_gdb.decode.program.elf import Elf
from rvtrace_gdb.reports.pgo.code_ranges import code_ranges, taken_branches
from rvtrace_gdb.reports.pgo.program_counts import ProgramCounts


def unsymbolized_lines(program: ProgramCounts) -> list[str]:
    """Return what `llvm-profgen --unsymbolized-profile` reads."""
    base = _base(program.elf, code=True)
    ranges = [f"{it.first - base:x}-{it.last - base:x}:{it.times}" for it in code_ranges(program)]
    return [*_block(ranges), *_block(_branches(program, base))]


def autofdo_lines(program: ProgramCounts) -> list[str]:
    """Return what `create_llvm_prof --profiler=text` reads."""
    base = _base(program.elf, code=False)
    ranges = [f"{it.first - base:x}-{it.last - base:x}:{it.times}" for it in code_ranges(program)]
    counts = [f"{pc - base:x}:{times}" for pc, times in sorted(program.ran.items())]
    return [*_block(ranges), *_block(counts), *_block(_branches(program, base))]


def _base(elf: Elf, *, code: bool) -> int:
    return min((part.vaddr for part in elf.segments if part.executable or not code), default=0)


def _branches(program: ProgramCounts, base: int) -> list[str]:
    return [f"{it.source - base:x}->{it.target - base:x}:{it.times}" for it in taken_branches(program)]


def _block(lines: list[str]) -> Iterator[str]:
    yield str(len(lines))
    yield from lines

