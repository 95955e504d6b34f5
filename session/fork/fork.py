"""A fork: the simulated hart, with the registers and the memory that are known at a position of a past.

What is not known there is unknown in the fork, too (`transport.simulated.partial`). Memory is what the capture declares
as memory, and what the program has; where nothing is declared, also what sp points to. All other addresses are those of
devices, which a fork does not have.
"""

from collections.abc import Mapping, Set

from rvtrace_gdb.decode.history.history import GAP
from rvtrace_gdb.decode.history.positions import history_number
from rvtrace_gdb.decode.program.csrs import CSRS, SATP, F, X
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.reconstruction.facts import MemoryKind
from rvtrace_gdb.session.capture.model import Capture
from rvtrace_gdb.session.fork.errors import NoFork
from rvtrace_gdb.session.past.named_registers import NamedRegisters
from rvtrace_gdb.session.past.past import PC, Past
from rvtrace_gdb.session.past.program_memory import ProgramMemory
from rvtrace_gdb.session.past.saved_facts import machine_of
from rvtrace_gdb.session.selected_history import SelectedHistory
from rvtrace_gdb.support.extents import Extent, disjoint, without
from rvtrace_gdb.transport.simulated.hart.instructions import MACHINE
from rvtrace_gdb.transport.simulated.partial.hart import PartialHart
from rvtrace_gdb.transport.simulated.partial.memory import PartialMemory
from rvtrace_gdb.transport.simulated.partial.unknown import UNKNOWN, is_unknown

_NOT_EXECUTED = ("S", "Zcmp")
"""Extensions that the simulated hart lacks, whatever the program has."""
_AROUND_SP = 1 << 16
"""Bytes below and above sp that are taken for memory where none is declared."""
_LOOKS = 32
"""How many places of a past are looked at for that."""
_NAMES = {number: name for name, number in CSRS.items()}


class ForkedHart:
    """A hart that goes on from a *position* of a past. *capture*: of which it is.

    Raises NoFork: no values are known there, there is no instruction, addresses are translated, or no memory is known.
    """

    def __init__(self, past: Past | None, selected: SelectedHistory, capture: Capture, position: int) -> None:
        self.past, self.selected, self.position = _with_values(past, selected), selected, position
        registers = self.past.registers(position)
        _check_place(registers, selected, capture, position)
        machine = machine_of(capture, selected)
        self._ranges = capture.ranges
        self._csrs = _known_csrs(self.past, registers)
        extents = _memory_of(capture, self.image, registers.get("sp"), _Stacks(self.past))
        if not extents:
            raise NoFork("where memory is, is not known: the target description says it with [[memory]]")
        memory = PartialMemory(
            extents,
            lambda address, size: self.past.memory(position, address, size),
            _devices_of(capture),
        )
        extensions = tuple(name for name in machine.extensions if name not in _NOT_EXECUTED)
        self.hart = PartialHart(memory, machine.xlen, extensions, registers["pc"])
        self._set_registers(registers)

    @property
    def image(self) -> Image:
        """The program in memory."""
        history = self.selected.history
        return self.selected.program.image_of(history.context_at(min(self.position, len(history) - 1)))

    def memory_name(self, address: int) -> str:
        """Return the name of the declared memory or device at an address, "" without one."""
        found = (it.name for it in self._ranges if it.address <= address < it.address + it.size and it.name)
        return next(iter(sorted(found, key=len)), "")

    # -- what a debugger sees and changes

    def registers(self) -> Mapping[str, int]:
        """Return the known registers, by gdb's names."""
        known = self.past.traced_registers()
        return NamedRegisters(self._known_register, 0 if known is None else known.flen)

    def memory(self, address: int, size: int) -> list[int | None]:
        """Return each byte, None for an unknown one."""
        return self.hart.bus.content(address, size)

    def set_register(self, number: int, value: int) -> bool:
        """Set a register by its number of the Debug Specification, or `PC`. False: a fork does not have it."""
        hart = self.hart
        if number == PC:
            hart.pc = value
        elif X < number < F:
            hart.x[number - X] = value
        elif F <= number < F + 32:
            hart.f[number - F] = value
        elif 0 <= number < X:
            hart.csr.set(number, value)
        else:
            return number == X
        return True

    def write_memory(self, address: int, data: bytes) -> bool:
        """Write memory. False: there is none."""
        if not self.hart.bus.has(address, len(data)):
            return False
        self.hart.bus.write_known(address, data)
        self.hart.flush_blocks()
        return True

    def _known_register(self, number: int) -> int | None:
        hart = self.hart
        if number == PC:
            return hart.pc
        if X <= number < F:
            value = hart.x[number - X]
        elif F <= number < F + 32:
            value = hart.f[number - F]
        elif 0 <= number < X:
            value = hart.csr.read(number, debug=True)
        else:
            return None
        return None if is_unknown(value) else value

    # -- the beginning

    def _set_registers(self, registers: Mapping[str, int]) -> None:
        hart, privilege = self.hart, self.selected.history.context_at(self.position).prv
        hart.csr.begin(self._csrs)
        hart.privilege, hart.csr.is_privilege_known = MACHINE if privilege is None else privilege, privilege is not None
        for number, value in self.past.integers(self.position).items():
            if number:
                hart.x[number] = value
        for number in range(32):
            hart.f[number] = registers.get(f"f{number}", UNKNOWN)

    def breakpoints(self, addresses: Set[int]) -> None:
        """Set where execution stops."""
        self.hart.stop_at(addresses)


def _with_values(past: Past | None, selected: SelectedHistory) -> Past:
    if past is None or past.traced_registers() is None:
        raise NoFork(
            f"no fork of hart {selected.hart}: its trace has no values of registers, and none are reconstructed; save"
            " registers with the trace (`trace save`, with the target halted), or record a tandem trace"
        )
    return past


def _check_place(registers: Mapping[str, int], selected: SelectedHistory, capture: Capture, position: int) -> None:
    history, number = selected.history, history_number(position)
    if position < len(history) and history.pc(position) == GAP:
        raise NoFork(f"no fork at number {number}: the trace is lost there")
    if "pc" not in registers:
        raise NoFork(f"no fork at number {number}: where the hart went on is not known")
    satp, prv = registers.get(_NAMES[SATP], 0), history.context_at(position).prv
    if satp >> (60 if capture.xlen == 64 else 31) or prv == 1:
        raise NoFork(
            f"no fork at number {number}: the hart is in S mode, or translates addresses, which the simulated hart"
            " does not do"
        )


def _known_csrs(past: Past, registers: Mapping[str, int]) -> dict[int, int]:
    traced = past.traced_registers()
    names = {} if traced is None else traced.csrs
    found = {number: registers.get(name) for name, number in names.items()}
    return {number: value for number, value in found.items() if value is not None}


def _devices_of(capture: Capture) -> list[Extent] | None:
    """Return where devices are, as far as declared; None: nothing is."""
    if not capture.ranges:
        return None
    return [Extent(it.address, it.size) for it in capture.ranges if it.kind is MemoryKind.VOLATILE]


class _Stacks:
    """Where sp points to in a past: there is memory, even if nothing says so."""

    def __init__(self, past: Past) -> None:
        self._past = past

    def extents(self) -> list[Extent]:
        length = len(self._past.history)
        places = {length * n // _LOOKS for n in range(_LOOKS + 1)}
        values = {self._past.registers(position).get("sp", 0) for position in sorted(places)}
        return [Extent.between(max(sp - _AROUND_SP, 0) & -16, (sp + _AROUND_SP) & -16) for sp in values if sp]


def _memory_of(capture: Capture, image: Image, sp: int | None, stacks: _Stacks) -> list[Extent]:
    """Return where memory is, first where the stack is."""
    declared = [Extent(it.address, it.size) for it in capture.ranges if it.kind is not MemoryKind.VOLATILE]
    devices = _devices_of(capture) or []
    found = [*declared, *ProgramMemory(image).extents]
    if not declared:
        found += stacks.extents()
    whole = [part for extent in disjoint(found) for part in without(extent, devices)]
    return sorted(whole, key=lambda it: (sp is None or not it.address <= sp <= it.end, -it.size))
