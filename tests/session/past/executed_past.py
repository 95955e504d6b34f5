"""A past that is executed again, as little of one as `TandemOfPast` asks for."""

from collections.abc import Mapping

from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.decode.program.csrs import PRIVILEGE
from rvtrace_gdb.decode.reconstruction.forward import Forward
from rvtrace_gdb.session.past.named_registers import NamedRegisters
from rvtrace_gdb.session.past.past import PC, TracedRegisters

_CSRS = {"mscratch": 0x340, "mepc": 0x341, "mcause": 0x342, "mtval": 0x343, "mstatus": 0x300, "fcsr": 3}


class ExecutedPast:
    """*flen*: bits of the floating-point registers, 0 without any."""

    def __init__(self, forward: Forward, history: History, flen: int) -> None:
        self._forward, self.history, self._flen = forward, history, flen

    def traced_registers(self) -> TracedRegisters:
        return TracedRegisters(self._flen, _CSRS)

    def registers(self, position: int) -> Mapping[str, int]:
        hart = self._forward.hart_at(position)
        x, f = list(hart.x), list(hart.f)

        def value(number: int) -> int | None:
            if number == PC:
                return self.history.pc(position)
            if number == PRIVILEGE:
                return hart.privilege
            if number < 0x1000:
                return hart.read_csr(number)
            return x[number - 0x1000] if number < 0x1020 else f[number - 0x1020]

        return NamedRegisters(value, self._flen)

    def memory(self, position: int, address: int, size: int) -> list[int | None]:
        return self._forward.hart_at(position).memory.bytes(address, size)
