"""rvtrace's own simulated hart as a model: RV32 or RV64 IMAFDC with M and U mode, in this process."""

from rvtrace_gdb.console.models.machine import COUNTERS, DCSR, HALTING, BadModel, ModelMachine, memory_line
from rvtrace_gdb.decode.program.csrs import FFLAGS, FRM, MIP, MSTATUS, MTIME, PRIVILEGE, is_counter
from rvtrace_gdb.decode.program.instructions import ATOMIC, CAS_FAILURE, STORE, STORE_FAILURE
from rvtrace_gdb.session.verify.model import PC, ModelFailed, ModelStep, ModelStore, ModelTrap
from rvtrace_gdb.transport.simulated.bus import Bus, BusError
from rvtrace_gdb.transport.simulated.clint import MEI, MSI, MTI, MTIMECMP, Clint
from rvtrace_gdb.transport.simulated.clint import MTIME as MTIME_OFFSET
from rvtrace_gdb.transport.simulated.hart.block import INSTRUCTION_ACCESS_FAULT, Accessed, TrapEntry
from rvtrace_gdb.transport.simulated.hart.csr import IllegalCsr
from rvtrace_gdb.transport.simulated.hart.hart import Hart
from rvtrace_gdb.transport.simulated.hart.reports import HartItem

_X, _F = range(0x1000, 0x1020), range(0x1020, 0x1040)
_TIME, _TIMEH, _CSRS = 0xC01, 0xC81, range(1 << 12)
_STORES = (STORE, ATOMIC)
_STORED_NOTHING = (CAS_FAILURE, STORE_FAILURE)
_LETTERS = "imafdc"
_MORE = frozenset({
    "zicsr", "zifencei", "zicntr", "zihpm", "zmmul", "zaamo", "zalrsc", "zca", "zcf", "zcd",
})  # fmt: skip
_NEVER = (1 << 64) - 1
_MACHINE, _USER = 3, 0
_NO_CSR = frozenset({0x03, 0x13, 0x17, 0x1B, 0x23, 0x33, 0x37, 0x3B, 0x63, 0x67, 0x6F})
"""The opcodes of instructions that change no CSR: loads, stores, arithmetic, branches of I and M."""


class Simulated:
    """The simulated hart as a model. Raises BadModel for an unsupported hart, ModelFailed without enough memory."""

    def __init__(self, machine: ModelMachine) -> None:
        _check_machine(machine)
        self._machine = machine
        self._hart = hart = Hart(_bus(machine), machine.xlen, machine.letters.upper(), machine.start)
        self._clint = Clint(hart, None)
        hart.reports_accesses = True
        self._f_mask = (1 << machine.flen) - 1
        self._csrs_now: dict[int, int] | None = None
        self._watched = [number for number in _CSRS if self._changes(number)]
        self.reset()

    def _changes(self, number: int) -> bool:
        """Whether a step may change this CSR: not a constant, nor a counter."""
        return number >> 10 != 3 and not is_counter(number) and self._csr(number) is not None

    def _csr(self, number: int) -> int | None:
        try:
            return self._hart.csr_read(number, debug=True)
        except IllegalCsr:
            return None

    # -- Appendix A

    def read_register(self, regno: int) -> int | None:
        hart = self._hart
        if regno in _X:
            return hart.x[regno - _X.start]
        if regno in _F:
            return hart.f[regno - _F.start] & self._f_mask
        if regno in (PC, PRIVILEGE, MTIME):
            return {PC: hart.pc, PRIVILEGE: hart.privilege, MTIME: hart.mtime}[regno]
        return self._csr(regno) if regno in _CSRS else None

    def write_register(self, regno: int, value: int) -> None:
        hart, self._csrs_now = self._hart, None
        if regno in _X:
            if regno > _X.start:
                hart.x[regno - _X.start] = value
        elif regno in _F:
            hart.f[regno - _F.start] = value | _NEVER & ~self._f_mask
        elif regno == PC:
            hart.pc = value
        elif regno == PRIVILEGE:
            hart.privilege = value if value in (_USER, _MACHINE) else hart.privilege
        elif regno in (MTIME, _TIME, _TIMEH):
            self._set_time(regno, value)
        elif regno in _CSRS:
            self._write_csr(COUNTERS.get(regno, regno), value)

    def _set_time(self, regno: int, value: int) -> None:
        high = regno == _TIMEH
        size = 8 if regno == MTIME else self._machine.xlen // 8
        self._clint.write(MTIME_OFFSET + 4 * high, size, value)

    def _write_csr(self, number: int, value: int) -> None:
        hart = self._hart
        if number == MIP:
            for line in (MSI, MTI, MEI):
                hart.set_interrupt(line, bool(value >> line & 1))
        if number == DCSR:
            value &= ~HALTING
        status = hart.csr.mstatus
        try:
            hart.csr_write(number, value, debug=True)
        except IllegalCsr:
            return
        if FFLAGS <= number <= FRM + 1:  # the write has set mstatus.FS to Dirty
            hart.csr_write(MSTATUS, status, debug=True)

    def read_memory(self, address: int, size: int) -> bytes | None:
        try:
            return self._hart.bus.read_bytes(address, size)
        except BusError:
            return None

    def write_memory(self, address: int, data: bytes) -> bool:
        try:
            self._hart.bus.write_bytes(address, data)
        except BusError:
            return False
        self._hart.flush_blocks()
        return True

    def step(self) -> ModelStep:
        hart = self._hart
        pc, privilege = hart.pc, hart.privilege
        x, f, csrs = list(hart.x), list(hart.f), self._csrs_now or self._csrs()
        retired: list[HartItem] = []
        hart.retired = retired
        hart.step()
        registers = {_X[i]: value for i, value in enumerate(hart.x) if value != x[i]}
        registers |= {_F[i]: value & self._f_mask for i, value in enumerate(hart.f) if value != f[i]}
        stores, instr, trap = [], None, None
        for item in retired:
            if isinstance(item, Accessed):
                stores += self._stored(item)
            elif isinstance(item, TrapEntry):
                trap = ModelTrap(item.cause, item.interrupt)
        if trap is None or not (trap.interrupt or trap.cause == INSTRUCTION_ACCESS_FAULT):
            instr = hart.block.words[0]
        if trap is not None or instr is None or not _keeps_csrs(instr):
            before, csrs = csrs, self._csrs()
            registers |= {number: now for number, now in csrs.items() if now != before[number]}
        self._csrs_now = csrs
        if hart.privilege != privilege:
            registers[PRIVILEGE] = hart.privilege
        return ModelStep(pc, instr, hart.pc, registers, tuple(stores), trap)

    def _csrs(self) -> dict[int, int]:
        read = self._hart.csr.read
        return {number: read(number, True) for number in self._watched}

    def _stored(self, access: Accessed) -> list[ModelStore]:
        if access.kind not in _STORES or access.operation in _STORED_NOTHING:
            return []
        data = self._hart.bus.read(access.address, access.size).to_bytes(access.size, "little")
        return [ModelStore(access.address, data, access.address)]

    def reset(self) -> None:
        hart, self._csrs_now = self._hart, None
        for address, data in self._machine.program:
            hart.bus.write_bytes(address, data)
        hart.reset()
        hart.x[:] = hart.f[:] = [0] * 32
        self._clint.write(MTIMECMP, 8, _NEVER)
        self._write_csr(MIP, 0)

    def configuration(self) -> list[str]:
        return [
            "model: the simulated hart of rvtrace",
            f"ISA: {self._machine.isa}",
            f"privilege modes: {self._machine.modes}",
            "address translation: none",
            "PMP regions: 0",
            "triggers: 4",
            "misaligned accesses: trap",
            memory_line(self._machine.memory),
        ]

    def close(self) -> None:
        """Do nothing: there are no resources to release."""


def _keeps_csrs(instr: int) -> bool:
    """Whether an instruction that retired changes no CSR; compressed floating-point instructions may."""
    if instr & 3 == 3:
        return instr & 0x7F in _NO_CSR
    return instr & 3 == 1 or not instr >> 13 & 1


def _check_machine(machine: ModelMachine) -> None:
    wrong = [name for name in (*machine.letters, *machine.more) if name not in _MORE and name not in _LETTERS]
    if wrong or "i" not in machine.letters:
        raise BadModel(f"the simulated hart has IMAFDC, not {(wrong or ['e'])[0].capitalize()}: the model spike may")
    if machine.priv != "mu":
        raise BadModel(f"the simulated hart has modes M and U, not {machine.modes}: the model spike has")
    if machine.pmp:
        raise BadModel("the simulated hart has no PMP: the model spike has")


def _bus(machine: ModelMachine) -> Bus:
    """Return the bus with its memory; the fast memory is the one that the program starts in."""
    first = next((part for part in machine.memory if 0 <= machine.start - part[0] < part[1]), machine.memory[0])
    try:
        bus = Bus(*first)
        for part in machine.memory:
            if part != first:
                bus.add_ram(*part)
    except (OSError, OverflowError) as error:
        raise ModelFailed(f"there is no memory for the simulated hart ({error}): give it less") from None
    return bus
