"""What a capture says of a hart besides its trace: the facts from which values are reconstructed.

They hold only where the history joins them: what was saved at the start, if the first instruction is where the hart
stood then and nothing before it is missing; what was saved at the stop, if the last instruction leads there.
"""

from collections.abc import Iterable, Mapping

from rvtrace_gdb.decode.history.events import HALTS, Start, StartReason, Stop
from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.decode.program.context_images import ContextImages
from rvtrace_gdb.decode.program.csrs import F, X
from rvtrace_gdb.decode.program.elf import Elf
from rvtrace_gdb.decode.reconstruction.facts import HartMachine, KnownState, KnownValue, StopState, own_ram
from rvtrace_gdb.session.capture.model import Capture, Captured, SavedAt, SavedMemory, SavedRegisters
from rvtrace_gdb.session.past.halts import begins_as_saved, halt_writes
from rvtrace_gdb.session.past.reconstructed.facts import HartFacts
from rvtrace_gdb.session.queries.ends import can_lead_to
from rvtrace_gdb.session.selected_history import SelectedHistory

_MISA = 0x301
_MACHINE_MODE = 3
REGISTERS = "registers"
"""Memory is left out, in `SelectedHistory.values`."""
_ALWAYS = ("I", "M", "A", "C", "F", "D", "S", "Zba", "Zbb", "Zbc", "Zbs", "Zicond", "Zcb")
"""What ran is what the hart has: encodings of these do not overlap, so all of them are understood."""
_FLOATING_POINT = ("F", "D")
"""Those that have registers, which a hart without them does not have."""
_BEGINS = (StartReason.EXIT_FROM_DEBUG, StartReason.TRACE_ENABLED, StartReason.TRACING_STARTS, StartReason.UNSPECIFIED)
"""With these a trace begins that was started while the hart was halted."""


def known_of(capture: Capture, selected: SelectedHistory, captured: Captured | None = None) -> HartFacts:
    """Return what a capture says of the hart of a history. *captured*: what the history was decoded from."""
    saved = {it.at: it for it in capture.registers if it.hart == selected.hart}
    start, stop = saved.get(SavedAt.START), saved.get(SavedAt.STOP)
    written = [it for it in capture.written if it.hart == selected.hart]
    halts = halt_writes(selected.history, written, captured)
    begins = start is not None and _begins_at(selected, start) and begins_as_saved(halts, written)
    ends = stop is not None and ends_at(selected.history, selected.program, stop.pc)
    return HartFacts(
        machine_of(capture, selected, [it for it in (start, stop) if it is not None]),
        _beginning(capture, selected.program, start) if start is not None and begins else None,
        halts,
        _stop_state(capture, stop) if stop is not None and ends else None,
        memory=selected.values != REGISTERS,
    )


def machine_of(capture: Capture, selected: SelectedHistory, saved: Iterable[SavedRegisters] = ()) -> HartMachine:
    """Return what a hart is, by the program's attributes and what was read of misa."""
    hart, elves = selected.hart, [elf for elf, _ in selected.program.base.elves]
    misa = next((it.registers[_MISA] for it in saved if it.registers.get(_MISA)), None)
    harts = {hart, *(it.hart for it in capture.encoders), *(it.hart for it in capture.records)}
    return HartMachine(
        capture.xlen,
        _extensions(elves, misa),
        own_ram(capture.ranges, hart, harts),
        machine_only=misa is not None and not _has_extension(misa, "S"),
    )


def _extensions(elves: Iterable[Elf], misa: int | None) -> tuple[str, ...]:
    """Return the extensions whose instructions are executed. Zcmp has encodings of Zcd, so one of them is chosen; with
    Zfinx the instructions of F and D use the integer registers.
    """
    elves = list(elves)
    in_x = any("zfinx" in elf.isa or "zdinx" in elf.isa for elf in elves)
    absent = [name for name in _FLOATING_POINT if in_x or (misa is not None and not _has_extension(misa, name))]
    extensions = tuple(name for name in _ALWAYS if name not in absent)
    return (*extensions, "Zcmp") if any(elf.zcm for elf in elves) else extensions


def _has_extension(misa: int, letter: str) -> bool:
    return bool(misa >> ord(letter) - ord("A") & 1)


def _begins_at(selected: SelectedHistory, start: SavedRegisters) -> bool:
    """Return whether the first instruction of a history ran when what was saved at the start held."""
    history = selected.history
    if selected.overwritten or not len(history) or history.pc(0) != start.pc:
        return False
    first = next(iter(history.events_between(0, 1)), None)
    return first is not None and isinstance(first.fact, Start) and first.fact.reason in _BEGINS


def ends_at(history: History, program: ContextImages, pc: int) -> bool:
    """Return whether a history certainly ends where a hart is halted at *pc*."""
    last = len(history)
    stops = [event.fact for event in history.events_between(last, last + 1) if isinstance(event.fact, Stop)]
    return all(it.reason in HALTS for it in stops) and can_lead_to(history, program, pc)


def _beginning(capture: Capture, program: ContextImages, start: SavedRegisters) -> KnownState:
    memory = [*_loaded_segments(program)] if start.at_entry else []
    memory += [(it.address, it.data) for it in _saved_memory(capture, SavedAt.START)]
    x, f, csrs = _files(start.registers)
    return KnownState(0, x, f, csrs, _privilege(start), memory)


def _privilege(saved: SavedRegisters) -> KnownValue:
    if saved.privilege is not None:
        return saved.privilege
    misa = saved.registers.get(_MISA)
    has_others = misa is None or _has_extension(misa, "S") or _has_extension(misa, "U")
    return None if has_others else _MACHINE_MODE


def _loaded_segments(program: ContextImages) -> Iterable[tuple[int, bytes]]:
    """Return what a loader has put into memory."""
    for elf, bias in program.base.elves:
        for segment in elf.segments:
            yield segment.paddr + bias, segment.data


def _stop_state(capture: Capture, stop: SavedRegisters) -> StopState:
    pieces = _saved_memory(capture, SavedAt.STOP)

    def memory(address: int, size: int) -> bytes:
        for piece in pieces:
            if piece.address <= address < piece.address + len(piece.data):
                return piece.data[address - piece.address : address - piece.address + size]
        return b""

    return StopState(stop.pc, *_files(stop.registers), memory)


def _saved_memory(capture: Capture, at: SavedAt) -> list[SavedMemory]:
    return [it for it in capture.memory if it.at is at]


def _files(registers: Mapping[int, int]) -> tuple[list[KnownValue], list[KnownValue], dict[int, int]]:
    """Return the integer registers, the floating-point registers, and the CSRs."""
    x = [0, *(registers.get(X + number) for number in range(1, 32))]
    f = [registers.get(F + number) for number in range(32)]
    if not registers.get(_MISA):  # a single in registers of 32 bits is not one in registers of 64 bits
        f = [None if it is None or it < 1 << 32 else it for it in f]
    return x, f, {number: value for number, value in registers.items() if number < X}
