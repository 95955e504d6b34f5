"""Memory as a halted hart sees it, for debug modules without system bus access: abstract commands, or programs.

Ref: RISC-V Debug Specification 1.0, 3.7.1.3 "Access Memory", 3.8 "Program Buffer"; the RISC-V Instruction Set Manual I
for lw and sw.
"""

import struct
from collections.abc import Sequence

from rvtrace_gdb.transport.usb.abstract import (
    DATA0,
    GPR,
    PROGBUF0,
    CmdErr,
    Failed,
    Result,
    Step,
    access_memory,
    access_register,
)
from rvtrace_gdb.transport.usb.debug import DebugModule
from rvtrace_gdb.transport.usb.dtm import Access
from rvtrace_gdb.transport.usb.errors import AccessRefused, DebugModuleProblem, HartNotHalted
from rvtrace_gdb.transport.usb.registers import EBREAK, HartRegisters

S0, S1 = 8, 9
LW_S0_S0 = 0x0004_2403
SW_S1_S0 = 0x0094_2023
_WHY = {
    CmdErr.EXCEPTION: "the hart took an exception: nothing answers there, or it is protected",
    CmdErr.BUS: "bus error",
    CmdErr.NOT_SUPPORTED: "the debug module cannot access memory",
}


class HartMemory:
    """Through hart number *hart*, which must be halted. The methods are those of `SystemBus`."""

    def __init__(self, module: DebugModule, hart: int, registers: HartRegisters) -> None:
        self._module, self._hart, self._registers, self.name = module, hart, registers, module.name
        self._by_program = False  # it is known that there are no abstract commands for memory

    def read32(self, address: int) -> int:
        return int.from_bytes(self._read([address], once=True), "little")

    def write32(self, address: int, value: int) -> None:
        self._check_halted()
        result: Result | None = None if self._by_program else self._write_by_command(address, value)
        if result is None:
            result = self._write_by_program(address, value)
        if isinstance(result, Failed):
            raise self._refused(address, result, [])

    def read_words(self, address: int, count: int) -> bytes:
        return self._read([address + 4 * n for n in range(count)], once=False)

    def read_port(self, address: int, count: int) -> bytes:
        return self._read([address] * count, once=True)

    @property
    def _xlen(self) -> int:
        return self._registers.xlen

    def _read(self, addresses: Sequence[int], once: bool) -> bytes:
        self._check_halted()
        results = None if self._by_program else self._read_by_command(addresses, once)
        if results is None:
            results = self._read_by_program(addresses, once)
        words = [result for result in results if isinstance(result, int)]
        if isinstance(results[-1], Failed):
            raise self._refused(addresses[len(words)], results[-1], words)
        return struct.pack(f"<{len(words)}I", *words)

    def _read_by_command(self, addresses: Sequence[int], once: bool) -> list[Result] | None:
        """None: there is no such command, so nothing was done."""
        if self._module.datacount < 2 * self._arg1:
            self._without_commands()
            return None
        results = self._run([Step(access_memory(32), self._data(a, self._arg1), 1) for a in addresses], once=once)
        if not _unsupported(results[0]):
            return results
        self._without_commands()
        return None

    def _write_by_command(self, address: int, value: int) -> Result | None:
        if self._module.datacount < 2 * self._arg1:
            self._without_commands()
            return None
        before = (*self._data(value), *self._data(address, self._arg1))
        result = self._run([Step(access_memory(32, write=True), before)], once=True)[0]
        if not _unsupported(result):
            return result
        self._without_commands()
        return None

    def _without_commands(self) -> None:
        if self._module.progbufsize + self._module.impebreak < 2:
            raise DebugModuleProblem(
                self.name, "the debug module has no way to memory: no system bus access, abstract commands, or programs"
            )
        self._by_program = True

    @property
    def _arg1(self) -> int:
        """The number of the data register where the address of Access Memory begins."""
        return self._xlen // 32

    def _write_by_program(self, address: int, value: int) -> Result:
        """sw s1, 0(s0)."""
        with self._borrowed(S0, S1):
            before = self._program(SW_S1_S0) + self._data(address)
            run = Step(access_register(GPR | S0, self._xlen, write=True, postexec=True), before)
            return self._run([self._load(S1, value), run], once=True)[-1]

    def _read_by_program(self, addresses: Sequence[int], once: bool) -> list[Result]:
        """lw s0, 0(s0): two steps for each word."""
        with self._borrowed(S0):
            self._module.dtm.run(self._program(LW_S0_S0))
            run = access_register(GPR | S0, self._xlen, write=True, postexec=True)
            fetch = Step(access_register(GPR | S0, 32), words=1)
            steps = [step for address in addresses for step in (Step(run, self._data(address)), fetch)]
            results = self._run(steps, once=once)
        failed: list[Result] = [results.pop()] if isinstance(results[-1], Failed) else []
        return results[1::2] + failed

    def _check_halted(self) -> None:
        state = self._module.state(self._hart)
        if state != "halted":
            raise HartNotHalted(
                self.name,
                self._hart,
                state,
                "the debug module has no system bus access, so memory and trace registers are reached through a halted "
                "hart only; halt it first",
            )

    def _program(self, instruction: int) -> tuple[Access, ...]:
        room = self._module.progbufsize > 1
        return ((PROGBUF0, instruction), (PROGBUF0 + 1, EBREAK)) if room else ((PROGBUF0, instruction),)

    def _load(self, register: int, value: int) -> Step:
        return Step(access_register(GPR | register, self._xlen, write=True), self._data(value))

    def _data(self, value: int, at: int = 0) -> tuple[Access, ...]:
        """XLEN bits in the data registers from number *at* on."""
        return tuple((DATA0 + at + n, value >> 32 * n & 0xFFFFFFFF) for n in range(self._xlen // 32))

    def _run(self, steps: Sequence[Step], once: bool = False) -> list[Result]:
        self._module.select(self._hart)
        return self._module.abstract.run(steps, once=once)

    def _borrowed(self, *numbers: int) -> "_Borrowed":
        return _Borrowed(self._registers, numbers)

    def _refused(self, address: int, failed: Failed, words: Sequence[int]) -> AccessRefused:
        reason = _WHY.get(failed.cmderr, f"the abstract command failed with cmderr {int(failed.cmderr)}")
        error = AccessRefused(self.name, address, reason)
        error.partial = struct.pack(f"<{len(words)}I", *words)
        return error


def _unsupported(result: Result) -> bool:
    return isinstance(result, Failed) and result.cmderr == CmdErr.NOT_SUPPORTED


class _Borrowed:
    """Registers that are put back at the end."""

    def __init__(self, registers: HartRegisters, numbers: Sequence[int]) -> None:
        self._registers = registers
        self._values = {number: registers.read_gpr(number) for number in numbers}

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        for number, value in self._values.items():
            self._registers.write_gpr(number, value)
