"""A program on the simulated hart with Control Transfer Records, and what it did as the independent model takes it."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from rvtrace_gdb.transport.simulated.ctr.recorder import CtrBuild
from rvtrace_gdb.transport.simulated.hart.block import Accessed, HartBlock, Situation, TrapEntry
from rvtrace_gdb.transport.simulated.hart.reports import HartItem
from rvtrace_gdb.transport.simulated.machine import Machine, MemoryMap, build
from tests.ctr_model.model import Entry, Event, Instruction, Model, Trap, Write

CONTROL = {"1.0": 0x34E, "0.1.4": 0x381}
HIGH = 0x382  # mctrcontrolh
STATUS = {"1.0": 0x14F, "0.1.4": 0x383}
SELECT = {"1.0": 0x150, "0.1.4": 0x350}
MACHINE = 3
TSELECT, TDATA1, TDATA2 = 0x7A0, 0x7A1, 0x7A2
DMODE, ENTER_DEBUG_AT_EXECUTION = 1, 1 << 12 | 1 << 6 | 1 << 3 | 1 << 2  # mcontrol: action 1, m, u, execute


class Followed:
    """The program, not yet run. `events` has what it did so far, what a debugger wrote included."""

    def __init__(self, elf: Path, ctr: CtrBuild, extensions: str = "IMAFDC") -> None:
        self.machine: Machine = build(elf, extensions=extensions, memory_map=MemoryMap(ram_size=1 << 20), ctr=ctr)
        self.hart = self.machine.hart
        self.hart.reports_accesses = self.hart.reports_situation = True
        self.hart.retired = []
        self.events: list[Event] = []
        self._version = ctr.version
        self._mode, self._cycle = MACHINE, 0

    def write(self, csr: int, value: int) -> None:
        """As a debugger does."""
        self.hart.csr_write(csr, value, debug=True)
        self.events.append(Write(csr, value))

    def run(self, instructions: int, slice_length: int = 1000) -> None:
        """About so many, or until the program has ended itself, or waits for ever."""
        until = self.hart.instret + instructions
        before = -1
        while before < self.hart.instret < until:
            before = self.hart.instret
            self.machine.run_slice(min(slice_length, until - before))
            self._tell()

    def step(self) -> None:
        self.hart.step()
        self._tell()

    def run_to(self, address: int) -> None:
        """As with a hardware breakpoint: to before the instruction there, the present one not counting."""
        for csr, value in ((TSELECT, 0), (TDATA1, 0)):
            self.hart.csr_write(csr, value, debug=True)
        if self.hart.pc == address:
            self.step()
        self.hart.csr_write(TDATA2, address, debug=True)
        self.hart.csr_write(TDATA1, DMODE << self.hart.xlen - 5 | ENTER_DEBUG_AT_EXECUTION, debug=True)
        while self.hart.run(1000) is None:
            pass
        assert self.hart.pc == address
        self._tell()

    def entries(self) -> list[Entry]:
        """All that the depth shows, youngest first, as a debugger reads them; the select register stays as it is."""
        assert self.hart.ctr is not None
        select, found = SELECT[self._version], []
        before = self.hart.csr_read(select, debug=True)
        for entry in range(self.hart.ctr.recorder.buffer.depth):
            self.hart.csr_write(select, 0x200 + entry, debug=True)
            source, target, data = (self.hart.csr_read(select + n, debug=True) for n in (1, 2, 3))
            found.append((source, target, data))
        self.hart.csr_write(select, before, debug=True)
        return found

    def compare(self, model: Model) -> list[Entry]:
        """What the model makes of the events so far is what the recorder has. Returns the entries."""
        model.run(self.events)
        self.events.clear()
        model.reach(self.hart.pc, self.hart.privilege)
        entries = self.entries()
        assert entries == model.entries()
        assert self.hart.csr_read(STATUS[self._version], debug=True) == model.status
        return entries

    def _tell(self) -> None:
        assert self.hart.retired is not None
        self.events += self._told(self.hart.retired)
        self.hart.retired.clear()

    def _told(self, retired: Sequence[HartItem]) -> Iterator[Event]:
        accesses: dict[int, Accessed] = {}
        for item in retired:
            if isinstance(item, Accessed):
                accesses[item.place] = item
            elif isinstance(item, Situation):
                self._mode = item.privilege
            elif isinstance(item, TrapEntry):
                yield Trap(item.epc, item.privilege, item.cause, item.interrupt, self._cycle)
                self._mode = MACHINE
            else:
                block, count = (item, item.n) if isinstance(item, HartBlock) else item
                yield from self._block(block, count, accesses)
                accesses.clear()

    def _block(self, block: HartBlock, count: int, accesses: dict[int, Accessed]) -> Iterator[Event]:
        for place in range(count):
            self._cycle += 1
            yield Instruction(block.pcs[place], self._mode, self._cycle)
            access = accesses.get(place)
            if access is not None and access.kind == "csr":
                yield from _written(access, block.words[place])


def _written(access: Accessed, word: int) -> Iterator[Write]:
    """CSRRS and CSRRC with x0, or with an immediate of 0, do not write (Zicsr)."""
    operand = access.operand or 0
    new = {"rw": operand, "rs": access.value | operand, "rc": access.value & ~operand}
    if access.operation == "rw" or word >> 15 & 31:
        yield Write(access.address, new[access.operation])
