"""A model that does what Spike's golden logs say, and what a trap does to mstatus as the privileged architecture says.

What it does comes from the log alone: neither registers nor memory that were written into it change that.
"""

from collections.abc import Mapping
from functools import lru_cache

from rvtrace_gdb.decode.program.csrs import MTIME, PRIVILEGE
from rvtrace_gdb.session.verify.model import PC, Model, ModelFailed, ModelStep, ModelStore, ModelTrap
from tests.decode.tandem import corpus
from tests.decode.tandem.corpus import golden_steps, parameters_of, program_of

MSTATUS, MTVEC, MEPC, MCAUSE, MTVAL, MEDELEG = 0x300, 0x305, 0x341, 0x342, 0x343, 0x302
SSTATUS, SEPC, SCAUSE, STVAL, STVEC = 0x100, 0x141, 0x142, 0x143, 0x105
VS = 3 << 9
"""Of mstatus: there is no vector extension in the model."""
CAUSES = {
    "trap_instruction_access_fault": 1, "trap_illegal_instruction": 2, "trap_breakpoint": 3,
    "trap_load_address_misaligned": 4, "trap_load_access_fault": 5, "trap_store_address_misaligned": 6,
    "trap_store_access_fault": 7, "trap_user_ecall": 8, "trap_supervisor_ecall": 9, "trap_machine_ecall": 11,
    "trap_instruction_page_fault": 12, "trap_load_page_fault": 13, "trap_store_page_fault": 15,
}  # fmt: skip
"""Names in the log, as riscv-isa-sim's riscv/trap.h has them; numbers of the privileged architecture."""


@lru_cache(maxsize=4)
def steps_of(name: str) -> tuple[corpus.Step, ...]:
    """The log from the program's entry on."""
    steps, entry = list(golden_steps(name)), program_of(name).entry
    first = next(at for at, step in enumerate(steps) if step.pc == entry)
    return tuple(steps[first:])


@lru_cache(maxsize=4)
def memory_of(name: str) -> Mapping[int, int]:
    """By address, of the program as it is loaded."""
    return {at + i: byte for at, data in program_of(name).segments for i, byte in enumerate(data)}


class Replay(Model):
    """*name*: of the trace. *steps* that were made are counted."""

    def __init__(self, name: str) -> None:
        self._log, self._xlen = steps_of(name), parameters_of(name).xlen
        self._name = name
        self.steps = 0
        self.reset()

    def reset(self) -> None:
        self._next = 0
        self.registers = dict.fromkeys(range(0x1000, 0x1040), 0)
        self.registers |= {PRIVILEGE: 3, PC: self._log[0].pc, MTIME: 0, 0x304: 0, 0x344: 0, MEDELEG: 0, 0x303: 0}
        self.registers |= dict.fromkeys((MEPC, MCAUSE, MTVAL, MTVEC, SEPC, SCAUSE, STVAL, STVEC, 3, 0x180), 0)
        self.registers[MSTATUS] = 0xA_0000_0000 if self._xlen == 64 else 0
        self.memory = dict(memory_of(self._name))

    def read_register(self, regno: int) -> int | None:
        return self.registers.get(regno)

    def write_register(self, regno: int, value: int) -> None:
        if regno in self.registers:
            self.registers[regno] = value & ~VS if regno == MSTATUS else value

    def read_memory(self, address: int, size: int) -> bytes | None:
        if not 0x8000_0000 <= address < 0x9000_0000:
            return None
        return bytes(self.memory.get(address + at, 0) for at in range(size))

    def write_memory(self, address: int, data: bytes) -> bool:
        if not 0x8000_0000 <= address < 0x9000_0000:
            return False
        self.memory |= {address + at: byte for at, byte in enumerate(data)}
        return True

    def step(self) -> ModelStep:
        self.steps += 1
        pc = self.registers[PC]
        at = self._find(pc)
        if at is None:
            return self._trapped(pc, None, ModelTrap(1), pc, 0)
        self._next = at + 1
        step = self._log[at]
        if step.cause is not None:
            interrupt = step.cause.startswith("interrupt")
            cause = int(step.cause.partition("#")[2]) if interrupt else CAUSES[step.cause]
            return self._trapped(
                pc, None if interrupt else step.word, ModelTrap(cause, interrupt), self._to(at), step.tval
            )
        changed, before = self._changes(step), self.registers[MSTATUS]
        self.registers |= changed
        if 1 in step.csrs:
            self.registers[3] = self.registers[3] & ~0x1F | step.csrs[1]
        return self._stepped(step, changed, self._to(at), before)

    def _stepped(self, step: corpus.Step, changed: dict[int, int], to: int, before: int) -> ModelStep:
        """*before*: mstatus, whose MPP and SPP say where xRET goes."""
        if step.word in (0x3020_0073, 0x1020_0073):
            mode = before >> 11 & 3 if step.word == 0x3020_0073 else before >> 8 & 1
            changed[PRIVILEGE] = self.registers[PRIVILEGE] = mode
        self.registers[PC] = to
        stores = tuple(ModelStore(address, data, self._physical(address)) for address, data in step.stores)
        for address, data in step.stores:
            self.write_memory(self._physical(address) or 0, data)
        return ModelStep(step.pc, step.word, to, changed, stores)

    def _physical(self, address: int) -> int | None:
        """Addresses of the virtual environment are not translated here."""
        return address if 0x8000_0000 <= address < 0x9000_0000 else None

    def _changes(self, step: corpus.Step) -> dict[int, int]:
        changed = {0x1000 + number: value for number, value in step.x.items()}
        changed |= {0x1020 + number: value for number, value in step.f.items()}
        return changed | step.csrs

    def _to(self, at: int) -> int:
        if at + 1 == len(self._log):
            raise ModelFailed("the log ends here")
        return self._log[at + 1].pc

    def _find(self, pc: int) -> int | None:
        """The step at an address: the next one, else one nearby."""
        if self._next < len(self._log) and self._log[self._next].pc == pc:
            return self._next
        near = sorted(range(max(self._next - 50, 0), min(self._next + 50, len(self._log))), key=self._distance)
        return next((at for at in near if self._log[at].pc == pc), None)

    def _distance(self, at: int) -> tuple[int, int]:
        return abs(at - self._next), -at

    def _trapped(self, pc: int, word: int | None, trap: ModelTrap, to: int, tval: int) -> ModelStep:
        """Privileged Architecture, "Machine Status Registers": xPIE, xIE, xPP; "Machine Trap Delegation"."""
        registers, mode = self.registers, self.registers[PRIVILEGE]
        status, cause = registers[MSTATUS], trap.cause | trap.interrupt << self._xlen - 1
        deleg = registers[0x303] if trap.interrupt else registers[MEDELEG]
        if mode < 3 and deleg >> trap.cause & 1:
            status = status & ~0x122 | (status & 2) << 4 | (mode & 1) << 8
            changed = {MSTATUS: status, SEPC: pc, SCAUSE: cause, STVAL: tval, PRIVILEGE: 1}
        else:
            status = status & ~0x1888 | (status & 8) << 4 | mode << 11
            changed = {MSTATUS: status, MEPC: pc, MCAUSE: cause, MTVAL: tval, PRIVILEGE: 3}
        registers |= changed
        registers[PC] = to
        return ModelStep(pc, word, to, changed, (), trap)

    def configuration(self) -> list[str]:
        return ["model: Spike's log"]

    def close(self) -> None:
        return None
