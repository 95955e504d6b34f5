"""What a tandem trace knows of a hart at a moment: registers by gdb's names, memory, and frames.

Memory comes from, in this order: stores; later loads within the program's memory, which is no device; code and
constants of the program that no store has changed.

`Unwinder` finds out which callers gdb's own unwinder would find, and the values that rvtrace's unwinder must provide
for the others. gdb's unwinder uses call frame information, registers, and the stack. Where these are known it is
better: only its frames have local variables on the stack. Where they are unknown, it would stop, or invent callers. The
trace contains the true callers: so gdb's way is followed here first, and gdb's unwinder is used as long as it leads to
the caller in the trace.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, pairwise
from typing import NamedTuple

from rvtrace_gdb.decode.calls.frame import UNKNOWN, Kind
from rvtrace_gdb.decode.calls.frames import CallFrame
from rvtrace_gdb.decode.program.csrs import CSRS
from rvtrace_gdb.decode.program.debug_info import AT, IN, SAME, VALUE, CallFrames, Rule, Rules
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.tandem.decoder import Tandem
from rvtrace_gdb.decode.tandem.memory import PAGE, Store
from rvtrace_gdb.decode.tandem.protocol import FPR
from rvtrace_gdb.decode.tandem.state import State
from rvtrace_gdb.decode.tandem.wording import NUMBERS, regno_of
from rvtrace_gdb.session.replay.backend import TracedRegisters

_MACHINE = "mstatus misa mie mtvec mscratch mepc mcause mtval mip"
_EBREAK = 4  # bytes
_BREAKPOINTS = {(4, 0x0010_0073), (2, 0x9002), (2, 0x0073), (2, 0x0010)}
"""Size and value of stores that write an ebreak, whole or in halves, or a c.ebreak."""
_BOXED = 0xFFFF_FFFF << 32  # a single-precision value in a wider register


class Registers(Mapping[str, int]):
    """The registers known at a moment, by all their names; each value is searched when it is requested."""

    def __init__(self, state: State, pc: int | None, flen: int) -> None:
        self._state, self._pc, self._flen = state, pc, flen

    def __getitem__(self, name: str) -> int:
        value = self._value(name)
        if value is None:
            raise KeyError(name)
        return value

    def __iter__(self) -> Iterator[str]:
        return (name for name in ("pc", *NUMBERS) if self._value(name) is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _value(self, name: str) -> int | None:
        if name == "pc":
            return self._pc
        number = regno_of(name)
        if number is None:
            return None
        value = self._state.register(number)
        is_single = self._flen == 32 and FPR <= number < FPR + 32
        return value | _BOXED if is_single and value is not None else value


def registers(tandem: Tandem, position: int) -> Registers:
    """Return the registers before the instruction at a position; at the end of the history, after the last one."""
    history, state = tandem.history, tandem.before(position)
    pc = history.pc(position) if position < len(history) else state.pc
    return Registers(state, pc, tandem.trace.parameters.flen)


def stay_known(tandem: Tandem, position: int, names: list[str]) -> bool:
    """Return whether registers are known at a position, and do not become unknown after it."""
    group, index = tandem.group_of(position), tandem.index
    lost = [*index.resets, *(gap.group for gap in index.breaks)]
    known = registers(tandem, position)
    return all(name in known for name in names) and not any(each >= group for each in lost)


def traced_registers(tandem: Tandem) -> TracedRegisters:
    """Return which registers a trace has, and those that every hart has in machine mode."""
    names = {number: name for name, number in CSRS.items()}
    numbers = {CSRS[name] for name in _MACHINE.split()} | tandem.index.registers.known_csrs()
    csrs = {names.get(number, f"csr{number}"): number for number in sorted(numbers)}
    return TracedRegisters(tandem.trace.parameters.flen, csrs)


def prepare(tandem: Tandem) -> None:
    """Sort the tables that are otherwise sorted at the first access: gdb waits only briefly for a packet."""
    tandem.before(len(tandem.history)).memory(0, 1, loads=True)
    for writes in tandem.index.memory.values():
        writes.last(0, 0, 1)


class Memory:
    """The memory of a tandem trace. *image*: the program."""

    def __init__(self, tandem: Tandem, image: Image) -> None:
        self.tandem, self.image = tandem, image
        self._ram = _merged(sorted(_extents(image)))
        self._breakpoints = _breakpoints(tandem)

    def known(self, position: int, address: int, size: int) -> bytes:
        """Return the known bytes of *size* bytes at *address*, up to the first unknown one."""
        state = self.tandem.before(position)
        found = self._without_breakpoints(state, address, state.memory(address, size))
        found = self._without_what_changed(state, address, found)
        if None in found:
            found = self._with_loads(state, address, found)
        if None in found:
            found = self._with_constants(state, address, found)
        return bytes(byte for byte in found[: found.index(None) if None in found else None] if byte is not None)

    def _without_breakpoints(self, state: State, address: int, found: list[int | None]) -> list[int | None]:
        """Replace a debugger's breakpoints by the program's code: gdb would take them for
        breakpoints in the program.
        """
        end = address + len(found)
        for begin in self._breakpoints[bisect_right(self._breakpoints, address - _EBREAK) :]:
            if begin >= end:
                break
            last = state.memory_writer(begin, 1)
            code = self.image.constant(begin, _EBREAK)
            by_debugger = last is not None and not self.tandem.index.retired[last.group]
            if last is None or not by_debugger or not code or (last.size, last.value) not in _BREAKPOINTS:
                continue
            for at in range(max(begin, address), min(begin + min(last.size, len(code)), end)):
                found[at - address] = code[at - begin]
        return found

    def _without_what_changed(self, state: State, address: int, found: list[int | None]) -> list[int | None]:
        """Remove bytes for which a load read another value than was stored: another hart's, or a device's."""
        loads = self.tandem.index.loads.get(state.space)
        if loads is None:
            return found
        stores = list(_stores(state, address, len(found)))
        for at, load in enumerate(loads.last(state.group, address, len(found))):
            store = stores[at]
            if load is None or load.value is None or store is None or load.group <= store.group or found[at] is None:
                continue
            loaded = load.value >> 8 * (address + at - load.address) & 0xFF
            if loaded != found[at]:
                found[at] = loaded if self._is_ram(address + at) else None
        return found

    def _with_loads(self, state: State, address: int, found: list[int | None]) -> list[int | None]:
        if not any(self._is_ram(address + at) for at, byte in enumerate(found) if byte is None):
            return found
        loaded = state.memory(address, len(found), loads=True)
        return [
            other if byte is None and self._is_ram(address + at) else byte
            for at, (byte, other) in enumerate(zip(found, loaded, strict=True))
        ]

    def _with_constants(self, state: State, address: int, found: list[int | None]) -> list[int | None]:
        """Add bytes of the program that it does not write, up to the first byte that is unknown, or was written
        nevertheless.
        """
        written = list(_stores(state, address, len(found)))
        found, constant, begin = list(found), b"", 0
        for at, byte in enumerate(found):
            if byte is None:
                if at >= begin + len(constant):
                    constant, begin = self.image.constant(address + at, len(found) - at), at
                if not constant or written[at] is not None:
                    break
                found[at] = constant[at - begin]
        return found

    def _is_ram(self, address: int) -> bool:
        i = bisect_right(self._ram, (address, 1 << 64)) - 1
        return i >= 0 and address < self._ram[i][1]


def _breakpoints(tandem: Tandem) -> list[int]:
    """Return where a debugger stored breakpoints, in increasing order."""
    stores = (store for group in tandem.index.initializations for _, store in tandem.stored(group))
    return sorted({store.address for store in stores if (store.size, store.value) in _BREAKPOINTS})


def _stores(state: State, address: int, size: int) -> Iterator[Store | None]:
    """Yield the last store to each byte, even if its value is unknown or may not have lasted."""
    end = address + size
    while address < end:
        stop = min(end, (address // PAGE + 1) * PAGE)
        place = state.place(address)
        yield from place.writes.last(state.group, place.address, stop - address)
        address = stop


def _extents(image: Image) -> Iterator[tuple[int, int]]:
    """Yield where the program is in memory: begin and end."""
    for elf, bias in image.elves:
        for section in elf.sections:
            yield section.start + bias, section.end + bias
        for segment in elf.segments:
            yield segment.vaddr + bias, segment.vaddr + bias + len(segment.data)
            yield segment.paddr + bias, segment.paddr + bias + len(segment.data)


def _merged(extents: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the same addresses without overlaps, in increasing order."""
    merged: list[tuple[int, int]] = []
    for begin, end in extents:
        if merged and begin <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((begin, end))
    return merged


Integers = dict[int, int]
"""The integer registers that are known."""

_SP, _RA = 2, 1
_PRESERVED = (_SP, 3, 4, 8, 9, *range(18, 28))  # gp, tp, s0 to s11: a function preserves them


class Unwound(NamedTuple):
    """A frame. *native*: gdb's own unwinder finds its caller. *sp*: the canonical frame address, None: unknown.

    *saved*: the caller's integer registers, for rvtrace's unwinder.
    """

    frame: CallFrame
    native: bool
    sp: int | None
    saved: Integers


class Unwinder:
    """The unwinder of one program. *memory*: what gdb can read."""

    def __init__(self, tandem: Tandem, memory: Memory, cfi: CallFrames) -> None:
        self._tandem, self._memory, self._cfi = tandem, memory, cfi
        self._bytes = tandem.trace.parameters.xlen // 8

    def frames(self, position: int, frames: Iterable[CallFrame]) -> Iterator[Unwound]:
        """Yield the frames of *frames*, which is the call stack at a position, innermost first.

        gdb's identity of a frame must not change while the function runs: it is the stack pointer at its call, which
        call frame information calls the canonical frame address.
        """
        known = _known(self._tandem.before(position))
        waiting = chain[CallFrame | None](frames, (None,))
        for number, (frame, caller) in enumerate(pairwise(waiting)):
            assert frame is not None
            left = {} if caller is None else self._when_left(caller)
            found = self._natively(frame, known, position, is_caller=number > 0)
            if found is not None and (caller is None or (found[0] == caller.pc and found[1].get(_SP) == left.get(_SP))):
                known = found[1]
                yield Unwound(frame, True, known.get(_SP), {})
            else:
                sp = left.get(_SP) if found is None else found[1][_SP]
                known = left
                yield Unwound(frame, False, sp, known)

    def _natively(
        self, frame: CallFrame, known: Integers, position: int, *, is_caller: bool
    ) -> tuple[int | None, Integers] | None:
        """Return the pc to which gdb's unwinder would return, and the registers there; None: it cannot find them."""
        inside = frame.pc - (1 if is_caller else 0)  # gdb looks up a caller at the address of the call
        rules = None if frame.pc == UNKNOWN else self._cfi.at(inside)
        if rules is None or rules.cfa[0] not in known:
            return None
        register, offset = rules.cfa
        callers = self._callers(rules, self._address(known[register] + offset), known, position)
        ra = callers.get(rules.ra)
        return None if ra is None else ra & ~1, callers  # jalr clears bit 0

    def _callers(self, rules: Rules, cfa: int, known: Integers, position: int) -> Integers:
        """Return the caller's registers, as gdb's unwinder finds them."""
        found = {_SP: cfa}
        for register in range(1, 32):
            rule = rules.registers.get(register, None if register == _SP else Rule(SAME))
            value = None if rule is None else self._value(register, rule, cfa, known, position)
            if value is not None:
                found[register] = value
        return found

    def _value(self, register: int, rule: Rule, cfa: int, known: Integers, position: int) -> int | None:
        if rule.kind in (SAME, IN):
            return known.get(register if rule.kind == SAME else rule.n)
        address = self._address(cfa + rule.n)
        if rule.kind == VALUE:
            return address
        if rule.kind == AT:
            data = self._memory.known(position, address, self._bytes)
            return int.from_bytes(data, "little") if len(data) == self._bytes else None
        return None

    def _when_left(self, caller: CallFrame) -> Integers:
        """Return the known registers of a caller: those that a called function preserves, all before a trap."""
        if caller.call is None:
            return {}
        if caller.kind is Kind.TRAP:
            return _known(self._tandem.after(self._tandem.group_of(caller.call)))
        before = _known(self._tandem.before(caller.call))
        found = {register: before[register] for register in _PRESERVED if register in before}
        return found if caller.pc == UNKNOWN else {**found, _RA: caller.pc}

    def _address(self, value: int) -> int:
        return value & (1 << 8 * self._bytes) - 1


def _known(state: State) -> Integers:
    return {number: value for number, value in enumerate(state.xs()) if value is not None}
