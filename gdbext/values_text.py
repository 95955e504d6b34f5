"""What is said of the values that are known in the past: for gdb and for the command line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rvtrace_gdb.gdbext.row_text import Fields
from rvtrace_gdb.gdbext.rows import KnownRegisters, ValuesRow

ABSENT = {
    "not-saved": "nothing was saved where the trace begins: `trace start` saves registers of a halted hart",
    "begins-late": "what was saved at `trace start` does not belong to the first instruction of the trace",
    "overwritten": "older trace was overwritten, so that what was saved at the start is too old: `trace start"
    " -stop-on-wrap` keeps the beginning, a larger buffer more of it",
    "no-memory": "memory was not saved at the start: `trace start -with-memory` saves it, a program that begins at its"
    " entry needs that least",
    "no-ram": "no RAM is declared: [[memory]] in the target description says what only this hart writes"
    " (docs/target-description.md)",
    "shared-ram": "the RAM is that of several harts, or of DMA: `private` in [[memory]] of the target description says"
    " what only one hart writes",
    "registers-only": "`set trace values registers` leaves memory out",
    "not-stopped": "nothing is known of the hart where the trace ends",
    "gaps": "behind a gap everything is unknown until it is written again",
    "halts": "a debugger halted the hart in between, and may have written anything: `trace connect` before the trace"
    " lets rvtrace see what it writes",
    "too-long": "the history is long, and only its end was executed again: `trace values -all` does the rest",
}
"""Why no more is known: a line for each reason, and what would help."""
_SOURCES = {
    "trace": "Registers and memory are in the trace.",
    "off": "Nothing is reconstructed: `set trace values on` shows registers and memory, as far as they are known.",
    "none": "No register but pc is known in this trace.",
}
_STARTS = {
    "": "nothing is known",
    "registers": "registers were saved",
    "memory": "registers and memory were saved",
    "program": "registers were saved; memory is as the program file has it",
}
_ASSUMED = (
    "assumed:  nothing but the hart writes that memory, constants of the program are not",
    "          written, and the code that ran is the program's",
)


def lines(row: ValuesRow, xlen: int = 64) -> Iterator[str]:
    """Yield the answer of `trace values`."""
    if row.source != "reconstructed":
        yield _SOURCES[row.source]
        if row.source == "trace":
            yield from _shares(row)
        return
    what = "Registers and memory are" if row.ram else "Registers are"
    yield f"{what} reconstructed from the instructions that ran."
    yield f"start:    {_STARTS[row.start]}"
    yield f"stop:     {_STARTS[row.stop]}"
    digits = xlen // 4
    for begin, end in row.ram:
        yield f"memory:   0x{begin:0{digits}x}-0x{end - 1:0{digits}x}"
    yield from _shares(row)
    yield from _ASSUMED if row.ram else ()
    for number, pc in row.contradicted:
        yield (
            f"wrong:    instruction {number}, at {pc:#x}, cannot have done what the trace says with these values:"
            " something else writes that memory; less is believed"
        )
    for reason in row.absent:
        yield f"note:     {ABSENT[reason]}"


def _shares(row: ValuesRow) -> Iterator[str]:
    if row.known:
        yield f"known:    {_shared(row.known)}, at {row.places} places of the trace"
    if row.here:
        yield f"here:     {_counted(row.here)}, at {row.number}"


def _shared(known: Sequence[KnownRegisters]) -> str:
    return ", ".join(_share(it) for it in known if it.of)


def _share(it: KnownRegisters) -> str:
    if it.known in (0, it.of):
        return f"{'all' if it.known else 'no'} {it.kind}"
    return f"{min(100 * it.known / it.of, 99.9):.1f} % of the {it.kind}"


def _counted(known: Sequence[KnownRegisters]) -> str:
    return ", ".join(f"{it.known} of {it.of} {it.kind}" for it in known if it.of)


def fields(row: ValuesRow) -> Fields:
    """Return the answer for programs."""
    made: Fields = {"hart": row.hart, "source": row.source, "number": row.number}
    made |= {"start": row.start or None, "stop": row.stop or None, "absent": list(row.absent) or None}
    made["ram"] = [{"begin": f"{begin:#x}", "end": f"{end:#x}"} for begin, end in row.ram] or None
    made["known"] = [it._asdict() for it in row.known] or None
    made["here"] = [it._asdict() for it in row.here] or None
    made["places"] = row.places
    made["contradicted"] = [{"number": number, "addr": f"{pc:#x}"} for number, pc in row.contradicted] or None
    return {name: value for name, value in made.items() if value is not None}
