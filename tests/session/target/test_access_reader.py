"""What is saved through accesses to registers: nothing of a hart that runs, no memory while satp translates."""

from collections.abc import Sequence

from rvtrace_gdb.controlregs.errors import HartRuns
from rvtrace_gdb.controlregs.target import CsrAnswer, CsrName, CsrRequest
from rvtrace_gdb.session.capture.model import SavedAt
from rvtrace_gdb.session.target.access_reader import AccessReader
from rvtrace_gdb.support.errors import Progress, RvtraceError, silent

SATP = 0x180


class Hart:
    """A `CsrAccess` with memory. *ends*: where it can be read no more."""

    name, xlen = "test", 64

    def __init__(self, values: dict[CsrName, int], ends: int = 1 << 32) -> None:
        self.values, self._ends = values, ends

    def run(self, accesses: Sequence[CsrRequest], progress: Progress = silent) -> list[CsrAnswer]:
        if not self.values:
            raise HartRuns(self.name)
        answers: list[CsrAnswer] = []
        for register, _ in accesses:
            answers.append(self.values.get(register, "not there"))
            if isinstance(answers[-1], str):
                break
        return answers

    def read_memory(self, address: int, size: int) -> bytes:
        if address >= self._ends:
            raise RvtraceError("no memory")
        return bytes(size)


def test_a_hart_that_runs_has_no_registers() -> None:
    harts = [Hart({"pc": 4}), Hart({})]
    reader = AccessReader(lambda hart: harts[hart], [0, 1])
    assert reader.halted([0, 1]) == {0} and not reader.all_halted()
    found = reader.registers(0, SavedAt.START)
    assert found is not None and found.pc == 4
    assert reader.registers(1, SavedAt.START) is None


def test_memory_is_read_where_addresses_are_those_of_memory() -> None:
    hart = Hart({"pc": 4, **dict.fromkeys(range(0x1001, 0x1020), 0)}, ends=0x9000_0000)
    reader = AccessReader(lambda number: hart, [0])
    for satp, size in ((0, 8), (8 << 60, 0)):
        csrs: dict[CsrName, int] = dict.fromkeys(range(0x100, 0x400), 0)
        hart.values |= {**csrs, SATP: satp}
        reader.registers(0, SavedAt.STOP)
        assert len(reader.memory(0x8000_0000, 8, silent)) == size
    hart.values[SATP] = 0
    reader.registers(0, SavedAt.STOP)
    assert reader.memory(0x9000_0000, 8, silent) == b""
