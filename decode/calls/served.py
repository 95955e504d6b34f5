"""Gaps in which a debugger served an `ebreak`: a semihosting call. The program went on right behind it.

The `ebreak` of a call (`slli x0, x0, 0x1f; ebreak; srai x0, x0, 7`) enters debug mode and never retires, so traces end
with what leads to it, and the debugger moves the pc past it: the trace goes on at another place. Nothing of the program
ran in between, so the calls under way are the same. The same holds for any `ebreak` that a debugger passes over.

Source: RISC-V Semihosting, version 0.4, chapter 2; RISC-V Debug Specification 1.0, 4.8.1 (dcsr.ebreakm).
"""

from collections import Counter

from rvtrace_gdb.decode.history.events import GAP_KINDS, HALTS, EventKind, Start, Stop
from rvtrace_gdb.decode.history.history import Event, History
from rvtrace_gdb.decode.program.image import CodeMissing, Image, Program

_EBREAKS = (0x0010_0073).to_bytes(4, "little"), (0x9002).to_bytes(2, "little")


def served_calls(history: History, program: Program) -> dict[int, int]:
    """Return, by position, the gaps after which the program went on behind an `ebreak`, each with its address.

    Whether what ran before leads there is left to the caller.
    """
    gaps = set(history.gap_positions)
    causes = Counter(event.position for event in history.events if event.kind in GAP_KINDS and event.position in gaps)
    found: dict[int, int] = {}
    for event in history.events:
        if causes.get(event.position) == 1 and event.next_pc is not None and _is_halt(event):
            ebreak = _ebreak_before(program.image_of(history.context_at(event.position)), event.next_pc)
            if ebreak is not None:
                found[event.position] = ebreak
    return found


def _is_halt(event: Event) -> bool:
    """Return whether a debugger halted the hart, and let it go on elsewhere. E-Trace does not say who did."""
    fact = event.fact
    if event.kind is not EventKind.TRACE_OFF or not isinstance(fact, Stop) or fact.reason not in HALTS:
        return False
    return isinstance(fact.then, Start) and fact.then.reason.resumes


def _ebreak_before(image: Image, pc: int) -> int | None:
    for code in _EBREAKS:
        try:
            if image.read(pc - len(code), len(code)) == code:
                return pc - len(code)
        except CodeMissing:
            continue
    return None
