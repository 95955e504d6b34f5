"""A tandem-trace port: reports every state change of its hart, instruction by instruction, in the trace protocol.

Everything is reported from the beginning: the program that was loaded, and all registers, as state initializations.
What others than the hart change later is also a state initialization: a debugger's writes, stores of other harts, of
trace sinks, of the host. mip is reported when it changes, mtime before an instruction that reads it, and before an
interrupt.

`effects_of` computes, from the tables the simulated hart is made of (`instructions`), what an instruction may change
besides the pc: which registers the port must examine when it has retired. `ReportedRegisters` knows which registers
there are, and which have changed since they were reported. Debug Mode's own registers and the counters are left out:
the former are not the program's, the latter change with every instruction, and traces do not contain that.

Source: Trace Protocol Specification, version 2018-11-20, chapters 2 and 3, Appendix B.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from itertools import islice
from typing import NamedTuple

from rvtrace_gdb.decode.program import csrs
from rvtrace_gdb.decode.semantics import operations
from rvtrace_gdb.decode.semantics.encodings import Decoder, Operation
from rvtrace_gdb.decode.semantics.operations import AMO, LOADS, VALUES
from rvtrace_gdb.decode.tandem.encoder import Forms, GroupEncoder, Retired
from rvtrace_gdb.decode.tandem.protocol import (
    FPR,
    GPR,
    PICCOLO_2018,
    SIZES,
    SPECIFICATION,
    SUCCESS,
    AdditionalState,
    Element,
    FullRegister,
    Instr,
    MemoryOp,
    MemoryRequest,
    MemoryResponse,
    StateId,
    TandemParameters,
)
from rvtrace_gdb.transport.simulated.clint import MTIME
from rvtrace_gdb.transport.simulated.debug.run_control import END_OF_REGISTERS
from rvtrace_gdb.transport.simulated.hart.block import INSTRUCTION_ACCESS_FAULT, DebugCause, HartBlock, TrapEntry
from rvtrace_gdb.transport.simulated.hart.csr import DCSR, DPC, DSCRATCH1, TIME, IllegalCsr
from rvtrace_gdb.transport.simulated.hart.hart import Hart

NONE = -1
_TIMES = (TIME, TIME + 0x80)


class Effects(NamedTuple):
    """The effects of an instruction. *rd*, *fd*: the integer and the floating-point register it writes, 0 and NONE:
    none. *csr*: the CSR it writes, NONE: none.

    floating      it may raise floating-point exceptions, or make the floating-point state dirty
    system        it may change any CSR
    returns       it may change the privilege mode
    reads_time    it reads the time as a CSR
    amo           which atomic operation it is, by its key in `arithmetic.AMO`
    """

    instr: Instr
    rd: int = 0
    fd: int = NONE
    csr: int = NONE
    floating: bool = False
    system: bool = False
    returns: bool = False
    reads_time: bool = False
    amo: str = ""


def effects_of(op: Operation) -> Effects:
    """Return the effects of one instruction, if it retires."""
    instr = Instr(op.word, op.length)
    if op.name.startswith("csrr"):
        writes = op.name.startswith("csrrw") or op.rs1 != 0
        return Effects(
            instr, op.rd, csr=op.imm if writes else NONE, system=writes, reads_time=op.imm in _TIMES
        )  # fmt: skip
    if op.name in ("mret", "wfi", "sctrclr"):
        return Effects(instr, system=True, returns=op.name == "mret")
    if op.name[0] == "f" and not op.name.startswith("fence"):
        return _floating(op, instr)
    amo = op.name.removeprefix("amo").partition(".")[0] if op.name.startswith("amo") else ""
    return Effects(instr, rd=op.rd if _writes_rd(op.name) else 0, amo=amo)


def _writes_rd(name: str) -> bool:
    atomic = name.startswith(("lr.", "sc.", "amo"))
    return atomic or name in LOADS or name in VALUES or name in ("jal", "jalr")


def _floating(op: Operation, instr: Instr) -> Effects:
    if op.name in operations.FP_STORES:
        return Effects(instr)
    if op.name in operations.FP_TO_INTEGER or op.name.rpartition(".")[0] in operations.FP_TO_INTEGER:
        return Effects(instr, op.rd, floating=True)
    return Effects(instr, fd=op.rd, floating=True)


_PARTS = (csrs.FFLAGS, csrs.FRM)  # reported as fcsr
RegisterValues = tuple[tuple[int, int], ...]
"""(number, value) of registers."""


class ReportedRegisters:
    """The CSRs of *hart*, and the values last reported. mip is handled separately: it changes by itself."""

    def __init__(self, hart: Hart) -> None:
        self._hart = hart
        numbers = (number for number in hart.csr.numbers() if not DCSR <= number <= DSCRATCH1)
        self._numbers = [n for n in numbers if not csrs.is_counter(n) and n not in (csrs.MIP, *_PARTS)]
        self._reported: dict[int, int] = {}
        self.flen_mask = (1 << (64 if "D" in hart.extensions else 32)) - 1

    def everything(self) -> RegisterValues:
        """Return all registers: integer, floating-point, CSRs."""
        hart = self._hart
        self._reported.clear()
        found = [(GPR + n, hart.x[n]) for n in range(1, 32)]
        if "F" in hart.extensions:
            found += [(FPR + n, hart.f[n] & self.flen_mask) for n in range(32)]
        return *found, *self.changed()

    def changed(self, written: int = -1, first: tuple[int, ...] = ()) -> RegisterValues:
        """Return the CSRs that differ from the values last reported; *first* and *written*, which an instruction wrote,
        in any case.
        """
        found: dict[int, int] = {}
        for number in (*first, written, *self._numbers):
            value = self._register_value(number)
            if value is None or number in found:
                continue
            if number in first or number == written or self._reported.get(number) != value:
                found[number] = value
                self._reported[number] = value
        if written in _PARTS:
            found.pop(csrs.FCSR, None)
        return tuple(found.items())

    def one(self, number: int) -> RegisterValues:
        """Return one CSR, if it differs from the value last reported."""
        value = self._register_value(number)
        if value is None or self._reported.get(number) == value:
            return ()
        self._reported[number] = value
        return ((number, value),)

    def of_debugger(self, regno: int) -> RegisterValues:
        """Return what a debugger wrote, by its number for abstract commands."""
        hart = self._hart
        if FPR <= regno < END_OF_REGISTERS:
            return ((regno, hart.f[regno - FPR] & self.flen_mask),)
        if regno >= GPR:
            return ((regno, hart.x[regno - GPR]),) if regno > GPR else ()
        return self.changed() if DCSR <= regno <= DSCRATCH1 or regno == csrs.MIP else self.changed(regno)

    def _register_value(self, number: int) -> int | None:
        """Return a register; None: there is no such register now."""
        if number < 0:
            return None
        try:
            return self._hart.csr_read(number, debug=True)
        except IllegalCsr:
            return None


_AT_ONCE = 64  # memory requests in one state initialization
_TRAP = (csrs.MEPC, csrs.MCAUSE, csrs.MSTATUS, 0x343)
_TIMER = 7


class Addresses(Enum):
    """Which addresses of loads and stores are reported."""

    EFFECTIVE = "effective"
    PHYSICAL = "physical"
    BOTH = "both"


@dataclass(frozen=True)
class TandemBuild:
    """The choices of a port that the protocol leaves open. *pc_physical*: it also reports physical addresses of the pc.
    """

    parameters: TandemParameters
    forms: Forms = field(default_factory=Forms)
    addresses: Addresses = Addresses.EFFECTIVE
    pc_physical: bool = False


class TandemPort:
    """The port of *hart*. `write` gets the bytes: whole groups, whenever the hart stops, and at the end of each of its
    turns.

    *mtime*: the address of the register in memory; None: there is none. `stored` is called with what the hart stores.
    """

    def __init__(self, hart: Hart, build: TandemBuild, write: Callable[[bytes], object], mtime: int | None) -> None:
        self._hart, self._build, self._write, self._mtime = hart, build, write, mtime
        self._buffer = bytearray()
        self._encoder = GroupEncoder(build.parameters, self._buffer.extend, build.forms)
        self._decode = Decoder(hart.xlen, hart.extensions).decode
        self._registers = ReportedRegisters(hart)
        self._access: tuple[str, int, int, int, int] | None = None
        self._outside: list[tuple[int, bytes]] = []
        self._executing = False
        self._mip = -1
        self._pc, self._privilege = hart.pc, hart.privilege
        self.stored: Callable[[int, bytes], object] = lambda address, data: None

    def begin(self, loaded: Iterable[tuple[int, bytes]]) -> None:
        """Begin the trace: *loaded* is in memory."""
        self._encoder.reset()
        for address, data in loaded:
            self._report_memory(address, data)
        self._report_everything()

    # -- what the hart reports

    def begins(self) -> None:
        self._executing = True
        self._report_mip()

    def ends(self) -> None:
        self._executing = False
        self._report_outside()
        if self._hart.triggers.watched:  # one that fired has its hit bit set
            self._initialize(FullRegister(*register) for register in self._registers.changed())
        self.flush()

    def accessed(self, place: int, kind: str, size: int, operation: str, address: int, value: int, *rest: int) -> None:
        if kind != "csr":
            self._access = kind, size, address, value, rest[0] if rest else 0

    def retired(self, block: HartBlock) -> None:
        effects = block.effects
        if not isinstance(effects, Effects):
            effects = block.effects = effects_of(self._decode(block.words[0]))
        hart, access = self._hart, self._access
        self._pc = pc = hart.pc
        retired = Retired(
            pc,
            effects.instr,
            (effects.rd, hart.x[effects.rd]) if effects.rd else None,
            None if effects.fd < 0 else (effects.fd, hart.f[effects.fd] & self._registers.flen_mask),
            own=block.pc,
            pc_paddr=pc if self._build.pc_physical else None,
        )
        if effects.system or effects.floating or hart.ctr is not None:
            retired = self._with_csrs(retired, effects)
        if effects.reads_time:
            self._report_time(hart.mtime - 1)
        if access is not None:
            self._access = None
            retired = self._with_access(retired, effects, *access)
        self._encoder.put(retired)
        if retired.memdata is not None and access is not None:
            self._has_stored(access[2], retired.memdata)
        elif self._outside:
            self._report_outside()
        self._report_mip()

    def trapped(self, trap: TrapEntry) -> None:
        hart = self._hart
        self._access = None
        self._report_mip()
        if trap.interrupt and trap.cause == _TIMER:
            self._report_time(hart.mtime)
        written = self._registers.changed(first=_TRAP)
        self._pc, self._privilege = hart.pc, hart.privilege
        paddr = hart.pc if self._build.pc_physical else None
        instr = self._trapped_instruction(trap)
        self._encoder.put(
            Retired(hart.pc, instr, csrs=written, privilege=hart.privilege, own=trap.epc, pc_paddr=paddr)
        )  # fmt: skip

    def register_written(self, regno: int) -> None:
        self._initialize(FullRegister(*register) for register in self._registers.of_debugger(regno))
        self._report_mip()
        csr = self._hart.csr
        if regno == DPC and csr.debug.dpc != self._pc:
            self._report_pc(csr.debug.dpc)
        elif regno == DCSR:
            self._report_privilege(csr.debug.dcsr & 3)
        self.flush()

    def halted(self, cause: DebugCause) -> None: ...

    def resumed(self) -> None:
        """Report what leaving Debug Mode changed."""
        hart = self._hart
        if hart.pc != self._pc:
            self._report_pc(hart.pc)
        self._report_privilege(hart.privilege)
        self._initialize(FullRegister(*register) for register in self._registers.changed())
        self._report_mip()
        self.flush()

    def reset(self) -> None:
        self._encoder.reset()
        self._report_everything()
        self.flush()

    # -- what others tell

    def memory_written(self, address: int, data: bytes) -> None:
        """Note a write through the bus, by the hart itself or by others. Which of them it was is known when its
        instruction has retired.
        """
        self._outside.append((address, data))
        if not self._executing:
            self._report_outside()
            self.flush()

    def flush(self) -> None:
        """Pass on what was encoded; an end group that was left out is added."""
        self._encoder.finish()
        if self._buffer:
            data = bytes(self._buffer)
            self._buffer.clear()
            self._write(data)

    # -- inside

    def _with_csrs(self, retired: Retired, effects: Effects) -> Retired:
        """Return *retired* with the CSRs that changed. Floating-point exceptions are reported as fcsr."""
        registers, hart = self._registers, self._hart
        if effects.system or hart.ctr is not None:
            first = (csrs.MSTATUS,) if effects.returns else ()
            retired = retired._replace(csrs=registers.changed(effects.csr, first))
        elif effects.floating:
            fcsr = registers.one(csrs.FCSR)
            retired = retired._replace(csrs=registers.one(csrs.MSTATUS), fcsr=fcsr[0][1] if fcsr else None)
        if effects.returns:
            self._privilege = hart.privilege
            retired = retired._replace(privilege=hart.privilege)
        return retired

    def _with_access(
        self, retired: Retired, effects: Effects, kind: str, size: int, address: int, value: int, operand: int
    ) -> Retired:  # fmt: skip
        """Return *retired* with the addresses and the data of a load, a store, or an atomic operation."""
        addresses = self._build.addresses
        retired = retired._replace(
            eaddr=None if addresses is Addresses.PHYSICAL else address,
            paddr=None if addresses is Addresses.EFFECTIVE else address,
        )
        if kind == "load":
            if self._mtime is not None and address & -8 == self._mtime:
                self._report_time(self._hart.mtime - 1)
            return retired._replace(loaded=(size, value))
        if kind == "store":
            return retired._replace(memdata=(size, value), operand=value)
        if not effects.amo:  # a conditional store that failed
            return retired
        result = AMO[effects.amo](value, operand, 8 * size) & (1 << 8 * size) - 1
        return retired._replace(memdata=(size, result), loaded=(size, value), operand=operand)

    def _has_stored(self, address: int, memdata: tuple[int, int]) -> None:
        """Note the hart's own store, which also came through the bus, unless it was a fast one."""
        size, value = memdata
        data = value.to_bytes(size, "little")
        if (address, data) in self._outside:
            self._outside.remove((address, data))
        self._report_outside()
        self.stored(address, data)

    def _trapped_instruction(self, trap: TrapEntry) -> Instr | None:
        """Return the instruction that trapped; None: it was an interrupt, or nothing could be fetched."""
        if trap.interrupt or trap.cause == INSTRUCTION_ACCESS_FAULT:
            return None
        word = self._hart.block.words[self._hart.block.pcs.index(trap.epc)]
        return Instr(word, 4 if word & 3 == 3 else 2)

    def _initialize(self, elements: Iterable[Element]) -> None:
        listed = list(elements)
        if listed:
            self._encoder.initialize(*listed)

    def _report_everything(self) -> None:
        hart = self._hart
        self._privilege = -1
        self._initialize(FullRegister(*register) for register in self._registers.everything())
        self._mip = -1
        self._report_mip()
        self._report_privilege(hart.privilege)
        self._report_pc(hart.pc)

    def _report_pc(self, pc: int) -> None:
        self._pc = pc
        self._encoder.begin(pc)

    def _report_privilege(self, privilege: int) -> None:
        if privilege != self._privilege:
            self._privilege = privilege
            self._encoder.initialize(AdditionalState(StateId.PRIVILEGE_MODE, privilege))

    def _report_mip(self) -> None:
        """Report mip if it has changed, which it does at any time: outside of groups, or in a group of its own as in
        real cores.
        """
        mip = self._hart.mip
        if mip == self._mip:
            return
        self._mip = mip
        if self._build.parameters.dialect in (SPECIFICATION, PICCOLO_2018):
            self._encoder.put_state(FullRegister(csrs.MIP, mip))
        else:
            self._encoder.initialize(FullRegister(csrs.MIP, mip))

    def _report_time(self, mtime: int) -> None:
        self._encoder.put_state(AdditionalState(StateId.MTIME, mtime & (1 << 64) - 1))

    def _report_outside(self) -> None:
        for address, data in self._outside:
            self._report_memory(address, data)
        self._outside.clear()

    def _report_memory(self, address: int, data: bytes) -> None:
        elements = _stores(address, data)
        while batch := list(islice(elements, 2 * _AT_ONCE)):
            self._encoder.initialize(*batch)


def _stores(address: int, data: bytes) -> Iterator[Element]:
    """Return memory requests that store *data*, each with its response."""
    at = 0
    while at < len(data):
        size = next(n for n in reversed(SIZES) if (address + at) % n == 0 and at + n <= len(data))
        value = int.from_bytes(data[at : at + size], "little")
        yield MemoryRequest(address + at, MemoryOp.STORE, SIZES.index(size), value)
        yield MemoryResponse(SIZES.index(size), SUCCESS)
        at += size


def attach(
    harts: Sequence[Hart],
    builds: Sequence[TandemBuild],
    writes: Sequence[Callable[[bytes], object]],
    loaded: Sequence[tuple[int, bytes]],
    clint: int | None,
) -> tuple[TandemPort, ...]:
    """Give each hart a port, and begin their traces; to be called before the harts run. *clint*: its base, None: there
    is none.
    """
    mtime = None if clint is None else clint + MTIME
    ports = tuple(
        TandemPort(hart, build, write, mtime) for hart, build, write in zip(harts, builds, writes, strict=True)
    )
    for hart, port in zip(harts, ports, strict=True):
        hart.witness = port
        others = [other for other in ports if other is not port]
        port.stored = partial(_pass_on, others)
        port.begin(loaded)
        port.flush()
    harts[0].bus.watch = partial(_pass_on, ports)
    return ports


def _pass_on(ports: Sequence[TandemPort], address: int, data: bytes) -> None:
    for port in ports:
        port.memory_written(address, data)
