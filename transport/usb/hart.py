"""The registers of a halted hart, and memory as the hart accesses it.

General registers and CSRs are accessed by abstract commands; where these do not reach CSRs, a program in the program
buffer moves the CSR from or to s0, which is restored after it. Memory is accessed through the hart only where the debug
module has no system bus access, by abstract commands or by programs, too.

Ref: RISC-V Debug Specification 1.0, 3.7.1.1 "Access Register", 3.7.1.3 "Access Memory", 3.8 "Program Buffer", dcsr and
dpc in 4.9; RISC-V Instruction Set Manual I for lw and sw, and chapter "Zicsr" for the CSR instructions.
"""

import struct
from collections.abc import Sequence

from rvtrace_gdb.transport.usb.debug_module import (
    DATA0,
    GPR,
    PROGBUF0,
    AbstractCommand,
    CmdErr,
    CommandResult,
    DebugModule,
    StepFailure,
    access_memory,
    access_register,
)
from rvtrace_gdb.transport.usb.errors import AccessRefused, DebugModuleProblem, UsbHartNotHalted, UsbRegisterRefused
from rvtrace_gdb.transport.usb.jtag import DmiAccess

S0_REGISTER = 8
DCSR, DPC = 0x7B0, 0x7B1
STEP, PRIVILEGE, VIRTUALIZED = 1 << 2, 3, 1 << 5
EBREAK = 0x0010_0073

AbstractRegister = int | str
"""A register's number: of a CSR, x0 to x31 from 0x1000, f0 to f31 from 0x1020; or "pc" or "priv": bits 1:0 the
privilege mode, bit 2 V.
"""
AbstractAnswer = int | str
_WHY = {
    CmdErr.NOT_SUPPORTED: "the debug module cannot access it",
    CmdErr.EXCEPTION: "the hart has no such CSR, or it cannot be accessed now",
    CmdErr.HALT_RESUME: "the hart is not halted",
    CmdErr.BUS: "bus error",
}


class HartRegisters:
    """The registers of hart number *hart*. All methods raise UsbHartNotHalted while it runs, and UsbError leaves."""

    def __init__(self, module: DebugModule, hart: int) -> None:
        self._module, self._hart, self.name = module, hart, module.name
        self._xlen = 0
        self._by_program = False  # abstract commands are known not to reach CSRs

    @property
    def xlen(self) -> int:
        """The register width in bits."""
        if not self._xlen:
            self._select()
            if self._module.datacount >= 2 and isinstance(
                self._run_commands([_read_register(GPR | S0_REGISTER, 64)])[0], int
            ):
                self._xlen = 64
            else:
                self._xlen = 32
        return self._xlen

    def read_gpr(self, number: int) -> int:
        return self._accepted(GPR | number, self._run_commands([_read_register(GPR | number, self.xlen)])[0])

    def write_gpr(self, number: int, value: int) -> None:
        self._accepted(GPR | number, self._run_commands([_write_register_command(GPR | number, self.xlen, value)])[0])

    def step(self) -> None:
        """Execute one instruction."""
        dcsr = self._csr(DCSR)
        self._csr(DCSR, dcsr | STEP)
        try:
            self._module.resume(self._hart)
            self._module.wait_halted(self._hart, "did not end its step")
        finally:
            self._csr(DCSR, self._csr(DCSR) & ~STEP | dcsr & STEP)

    def run(self, accesses: Sequence[tuple[AbstractRegister, int | None]]) -> list[AbstractAnswer]:
        """Implement `controlregs.target.CsrAccess.run`: return the answers up to and including the first refusal."""
        self._select()
        xlen, answers = self.xlen, list[AbstractAnswer]()
        while len(answers) < len(accesses) and not (answers and isinstance(answers[-1], str)):
            rest = accesses[len(answers) :]
            if isinstance(rest[0][0], str):
                answers.append(self._access_named(rest[0][0], rest[0][1]))
                continue
            numbered = _leading(rest)
            if numbered[0][0] >= GPR:
                results = self._run_commands([_register_command(*access, xlen) for access in numbered])
            else:
                results = self._csrs(numbered, xlen)
            answers += map(_abstract_answer, results)
        return answers

    def _access_named(self, name: str, value: int | None) -> AbstractAnswer:
        if name == "pc":
            return self._csr(DPC, value)
        if name != "priv":
            return "there is no such register"
        dcsr = self._csr(DCSR)
        if value is None:
            return dcsr & PRIVILEGE | (4 if dcsr & VIRTUALIZED else 0)
        kept = dcsr & ~(PRIVILEGE | VIRTUALIZED)
        return self._csr(DCSR, kept | value & PRIVILEGE | (VIRTUALIZED if value & 4 else 0))

    def _csr(self, regno: int, value: int | None = None) -> int:
        return self._accepted(regno, self._csrs([(regno, value)], self.xlen)[0])

    def _csrs(self, accesses: Sequence[tuple[int, int | None]], xlen: int) -> list[CommandResult]:
        """Return the results of these accesses, up to the first failure."""
        if self._by_program:
            return self._programmed(accesses, xlen)
        results = self._run_commands([_register_command(*access, xlen) for access in accesses])
        last = results[-1]
        if isinstance(last, StepFailure) and last.cmderr == CmdErr.NOT_SUPPORTED and self._has_room(2):
            results.pop()
            programmed = self._programmed(accesses[len(results) :], xlen)
            self._by_program = isinstance(programmed[0], int) and not results
            results += programmed
        return results

    def _programmed(self, accesses: Sequence[tuple[int, int | None]], xlen: int) -> list[CommandResult]:
        saved = self._run_commands([_read_register(GPR | S0_REGISTER, xlen)])[0]
        if isinstance(saved, StepFailure):
            return [saved]
        results: list[CommandResult] = []
        try:
            for regno, value in accesses:
                results.append(self._program(regno, value, xlen))
                if isinstance(results[-1], StepFailure):
                    break
        finally:
            self._accepted(
                GPR | S0_REGISTER, self._run_commands([_write_register_command(GPR | S0_REGISTER, xlen, saved)])[0]
            )
        return results

    def _program(self, regno: int, value: int | None, xlen: int) -> CommandResult:
        """Access a CSR by a program: csrrs s0, regno, zero; or csrrw zero, regno, s0."""
        instruction = (
            regno << 20 | (2 << 12 | S0_REGISTER << 7 if value is None else S0_REGISTER << 15 | 1 << 12) | 0x73
        )
        program: tuple[DmiAccess, ...] = ((PROGBUF0, instruction),)
        if self._module.progbufsize > 1:
            program += ((PROGBUF0 + 1, EBREAK),)
        if value is None:
            run = AbstractCommand(access_register(GPR | S0_REGISTER, xlen, postexec=True), program)
            return self._run_commands([run, _read_register(GPR | S0_REGISTER, xlen)])[-1]
        write = access_register(GPR | S0_REGISTER, xlen, write=True, postexec=True)
        return self._run_commands([AbstractCommand(write, (*program, *_data(value, xlen)))], once=True)[0]

    def _has_room(self, instructions: int) -> bool:
        """Return whether the program buffer holds so many instructions, the last of which is an ebreak."""
        return self._module.progbufsize + self._module.impebreak >= instructions

    def _run_commands(self, steps: Sequence[AbstractCommand], once: bool = False) -> list[CommandResult]:
        self._module.select(self._hart)
        results = self._module.abstract.run(steps, once=once)
        if isinstance(results[-1], StepFailure) and results[-1].cmderr == CmdErr.HALT_RESUME:
            raise UsbHartNotHalted(self.name, self._hart, self._module.state(self._hart))
        return results

    def _select(self) -> None:
        state = self._module.state(self._hart)
        if state != "halted":
            raise UsbHartNotHalted(self.name, self._hart, state)

    def _accepted(self, regno: int, result: CommandResult) -> int:
        if isinstance(result, StepFailure):
            raise UsbRegisterRefused(self.name, self._hart, regno, _reason(result))
        return result


def _leading(accesses: Sequence[tuple[AbstractRegister, int | None]]) -> list[tuple[int, int | None]]:
    """Return the first accesses, those to CSRs, or to other registers that have numbers."""
    numbered: list[tuple[int, int | None]] = []
    for register, value in accesses:
        if isinstance(register, str) or (numbered and (register >= GPR) is not (numbered[0][0] >= GPR)):
            break
        numbered.append((register, value))
    return numbered


def _register_command(regno: int, value: int | None, bits: int) -> AbstractCommand:
    return _read_register(regno, bits) if value is None else _write_register_command(regno, bits, value)


def _read_register(regno: int, bits: int) -> AbstractCommand:
    return AbstractCommand(access_register(regno, bits), words=bits // 32)


def _write_register_command(regno: int, bits: int, value: int) -> AbstractCommand:
    return AbstractCommand(access_register(regno, bits, write=True), _data(value, bits))


def _data(value: int, bits: int) -> tuple[DmiAccess, ...]:
    return tuple((DATA0 + n, value >> 32 * n & 0xFFFFFFFF) for n in range(bits // 32))


def _abstract_answer(result: CommandResult) -> AbstractAnswer:
    return _reason(result) if isinstance(result, StepFailure) else result


def _reason(failed: StepFailure) -> str:
    return _WHY.get(failed.cmderr, f"the abstract command failed with cmderr {int(failed.cmderr)}")


S0, S1 = 8, 9
LW_S0_S0 = 0x0004_2403
SW_S1_S0 = 0x0094_2023
_WHY_NO_MEMORY = {
    CmdErr.EXCEPTION: "the hart took an exception: nothing answers there, or it is protected",
    CmdErr.BUS: "bus error",
    CmdErr.NOT_SUPPORTED: "the debug module cannot access memory",
}


class HartMemory:
    """Memory through hart number *hart*, which must be halted. The methods are those of `SystemBus`."""

    def __init__(self, module: DebugModule, hart: int, registers: HartRegisters) -> None:
        self._module, self._hart, self._registers, self.name = module, hart, registers, module.name
        self._by_program = False  # it is known that there are no abstract commands for memory

    def read32(self, address: int) -> int:
        return int.from_bytes(self._read_words([address], once=True), "little")

    def write32(self, address: int, value: int) -> None:
        self._check_halted()
        result: CommandResult | None = None if self._by_program else self._write_by_command(address, value)
        if result is None:
            result = self._write_by_program(address, value)
        if isinstance(result, StepFailure):
            raise self._refused(address, result, [])

    def read_words(self, address: int, count: int) -> bytes:
        return self._read_words([address + 4 * n for n in range(count)], once=False)

    def read_port(self, address: int, count: int) -> bytes:
        return self._read_words([address] * count, once=True)

    @property
    def _xlen(self) -> int:
        return self._registers.xlen

    def _read_words(self, addresses: Sequence[int], once: bool) -> bytes:
        self._check_halted()
        results = None if self._by_program else self._read_by_command(addresses, once)
        if results is None:
            results = self._read_by_program(addresses, once)
        words = [result for result in results if isinstance(result, int)]
        if isinstance(results[-1], StepFailure):
            raise self._refused(addresses[len(words)], results[-1], words)
        return struct.pack(f"<{len(words)}I", *words)

    def _read_by_command(self, addresses: Sequence[int], once: bool) -> list[CommandResult] | None:
        """Read by abstract commands. Return None if the hart does not support them; nothing was done then."""
        if self._module.datacount < 2 * self._arg1:
            self._without_commands()
            return None
        results = self._run_commands(
            [AbstractCommand(access_memory(32), self._data(a, self._arg1), 1) for a in addresses], once=once
        )
        if not _unsupported(results[0]):
            return results
        self._without_commands()
        return None

    def _write_by_command(self, address: int, value: int) -> CommandResult | None:
        if self._module.datacount < 2 * self._arg1:
            self._without_commands()
            return None
        before = (*self._data(value), *self._data(address, self._arg1))
        result = self._run_commands([AbstractCommand(access_memory(32, write=True), before)], once=True)[0]
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
        """Return the number of the data register where the address of Access Memory begins."""
        return self._xlen // 32

    def _write_by_program(self, address: int, value: int) -> CommandResult:
        """Write by the program sw s1, 0(s0)."""
        with self._borrowed(S0, S1):
            before = self._program(SW_S1_S0) + self._data(address)
            run = AbstractCommand(access_register(GPR | S0, self._xlen, write=True, postexec=True), before)
            return self._run_commands([self._load_register(S1, value), run], once=True)[-1]

    def _read_by_program(self, addresses: Sequence[int], once: bool) -> list[CommandResult]:
        """Read by the program lw s0, 0(s0): two steps for each word."""
        with self._borrowed(S0):
            self._module.dtm.run(self._program(LW_S0_S0))
            run = access_register(GPR | S0, self._xlen, write=True, postexec=True)
            fetch = AbstractCommand(access_register(GPR | S0, 32), words=1)
            steps = [step for address in addresses for step in (AbstractCommand(run, self._data(address)), fetch)]
            results = self._run_commands(steps, once=once)
        failed: list[CommandResult] = [results.pop()] if isinstance(results[-1], StepFailure) else []
        return results[1::2] + failed

    def _check_halted(self) -> None:
        state = self._module.state(self._hart)
        if state != "halted":
            raise UsbHartNotHalted(
                self.name,
                self._hart,
                state,
                "the debug module has no system bus access, so memory and trace registers are reached through a halted "
                "hart only; halt it first",
            )

    def _program(self, instruction: int) -> tuple[DmiAccess, ...]:
        room = self._module.progbufsize > 1
        return ((PROGBUF0, instruction), (PROGBUF0 + 1, EBREAK)) if room else ((PROGBUF0, instruction),)

    def _load_register(self, register: int, value: int) -> AbstractCommand:
        return AbstractCommand(access_register(GPR | register, self._xlen, write=True), self._data(value))

    def _data(self, value: int, at: int = 0) -> tuple[DmiAccess, ...]:
        """Return accesses that write XLEN bits to the data registers from number *at* on."""
        return tuple((DATA0 + at + n, value >> 32 * n & 0xFFFFFFFF) for n in range(self._xlen // 32))

    def _run_commands(self, steps: Sequence[AbstractCommand], once: bool = False) -> list[CommandResult]:
        self._module.select(self._hart)
        return self._module.abstract.run(steps, once=once)

    def _borrowed(self, *numbers: int) -> "_Borrowed":
        return _Borrowed(self._registers, numbers)

    def _refused(self, address: int, failed: StepFailure, words: Sequence[int]) -> AccessRefused:
        reason = _WHY_NO_MEMORY.get(failed.cmderr, f"the abstract command failed with cmderr {int(failed.cmderr)}")
        error = AccessRefused(self.name, address, reason)
        error.partial = struct.pack(f"<{len(words)}I", *words)
        return error


def _unsupported(result: CommandResult) -> bool:
    return isinstance(result, StepFailure) and result.cmderr == CmdErr.NOT_SUPPORTED


class _Borrowed:
    """Registers that are restored at the end of the context."""

    def __init__(self, registers: HartRegisters, numbers: Sequence[int]) -> None:
        self._registers = registers
        self._values = {number: registers.read_gpr(number) for number in numbers}

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        for number, value in self._values.items():
            self._registers.write_gpr(number, value)
