"""The order of functions for a linker: those that ran most, an instruction each, come first, so that they share cache
lines and pages; those that did not run are not in it.

`ld.lld --symbol-ordering-file` takes the names alone. GNU ld has no such option: the same as a part of a linker script,
one input section a line, is for `-ffunction-sections`.
"""

from rvtrace_gdb.reports.pgo.program_counts import ProgramCounts


def section_lines(program: ProgramCounts) -> list[str]:
    """Return input sections of a linker script (for `INCLUDE`)."""
    return [f"*(.text.{name})" for name in hottest(program)]


def hottest(program: ProgramCounts) -> list[str]:
    """Return the linker's names of the functions that ran, the densest first: instructions that ran, for each of its
    own.
    """
    ran: dict[int, int] = {}
    for pc, times in program.ran.items():
        function = program.function_at(pc)
        if function is not None:
            ran[function.start] = ran.get(function.start, 0) + times
    sizes = {function.start: max(function.end - function.start, 1) for function in program.all_functions}
    order = sorted(ran, key=lambda start: (-ran[start] / sizes[start], start))
    return [program.linker_names[start] for start in order if start in program.linker_names]
