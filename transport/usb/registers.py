"""Registers of a halted hart: general ones and CSRs, by abstract commands; where there are none for CSRs, by programs.

A program for the program buffer moves the CSR from or to s0, which is put back behind it.

Ref: RISC-V Debug Specification 1.0, 3.7.1.1 "Access Register", 3.8 "Program Buffer", dcsr and dpc in 4.9; RISC-V
Instruction Set Manual I, chapter "Zicsr" for the instructions.
"""

from collections.abc import Sequence

from rvtrace_gdb.transport.usb.abstract import DATA0, GPR, PROGBUF0, CmdErr, Failed, Result, Step, access_register
from rvtrace_gdb.transport.usb.debug import DebugModule
from rvtrace_gdb.transport.usb.dtm import Access
from rvtrace_gdb.transport.usb.errors import HartNotHalted, RegisterRefused

S0 = 8
DCSR, DPC = 0x7B0, 0x7B1
STEP, PRIVILEGE, VIRTUALIZED = 1 << 2, 3, 1 << 5
EBREAK = 0x0010_0073

Register = int | str
"""A CSR's number, or "pc" or "priv": bits 1:0 the privilege mode, bit 2 V."""
Answer = int | str
_WHY = {
    CmdErr.NOT_SUPPORTED: "the debug module cannot access it",
    CmdErr.EXCEPTION: "the hart has no such CSR, or it cannot be accessed now",
    CmdErr.HALT_RESUME: "the hart is not halted",
    CmdErr.BUS: "bus error",
}


class HartRegisters:
    """Those of hart number *hart*. All methods raise HartNotHalted while it runs, and UsbError leaves."""

    def __init__(self, module: DebugModule, hart: int) -> None:
        self._module, self._hart, self.name = module, hart, module.name
        self._xlen = 0
        self._by_program = False  # abstract commands are known not to reach CSRs

    @property
    def xlen(self) -> int:
        """In bits."""
        if not self._xlen:
            self._select()
            if self._module.datacount >= 2 and isinstance(self._run([_read(GPR | S0, 64)])[0], int):
                self._xlen = 64
            else:
                self._xlen = 32
        return self._xlen

    def read_gpr(self, number: int) -> int:
        return self._accepted(GPR | number, self._run([_read(GPR | number, self.xlen)])[0])

    def write_gpr(self, number: int, value: int) -> None:
        self._accepted(GPR | number, self._run([_write(GPR | number, self.xlen, value)])[0])

    def step(self) -> None:
        """One instruction."""
        dcsr = self._csr(DCSR)
        self._csr(DCSR, dcsr | STEP)
        try:
            self._module.resume(self._hart)
            self._module.wait_halted(self._hart, "did not end its step")
        finally:
            self._csr(DCSR, self._csr(DCSR) & ~STEP | dcsr & STEP)

    def run(self, accesses: Sequence[tuple[Register, int | None]]) -> list[Answer]:
        """As `controlregs.csr_access.CsrAccess.run`: the answers up to and with the first that was refused."""
        self._select()
        xlen, answers = self.xlen, list[Answer]()
        while len(answers) < len(accesses) and not (answers and isinstance(answers[-1], str)):
            rest = accesses[len(answers) :]
            if isinstance(rest[0][0], str):
                answers.append(self._named(rest[0][0], rest[0][1]))
                continue
            numbered = [(regno, value) for regno, value in _leading(rest)]
            answers += [_answer(result) for result in self._csrs(numbered, xlen)]
        return answers

    def _named(self, name: str, value: int | None) -> Answer:
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

    def _csrs(self, accesses: Sequence[tuple[int, int | None]], xlen: int) -> list[Result]:
        """Their results, up to the first failure."""
        if self._by_program:
            return self._programmed(accesses, xlen)
        results = self._run([_access(*access, xlen) for access in accesses])
        last = results[-1]
        if isinstance(last, Failed) and last.cmderr == CmdErr.NOT_SUPPORTED and self._has_room(2):
            results.pop()
            programmed = self._programmed(accesses[len(results) :], xlen)
            self._by_program = isinstance(programmed[0], int) and not results
            results += programmed
        return results

    def _programmed(self, accesses: Sequence[tuple[int, int | None]], xlen: int) -> list[Result]:
        saved = self._run([_read(GPR | S0, xlen)])[0]
        if isinstance(saved, Failed):
            return [saved]
        results: list[Result] = []
        try:
            for regno, value in accesses:
                results.append(self._program(regno, value, xlen))
                if isinstance(results[-1], Failed):
                    break
        finally:
            self._accepted(GPR | S0, self._run([_write(GPR | S0, xlen, saved)])[0])
        return results

    def _program(self, regno: int, value: int | None, xlen: int) -> Result:
        """csrrs s0, regno, zero; or csrrw zero, regno, s0."""
        instruction = regno << 20 | (2 << 12 | S0 << 7 if value is None else S0 << 15 | 1 << 12) | 0x73
        program: tuple[Access, ...] = ((PROGBUF0, instruction),)
        if self._module.progbufsize > 1:
            program += ((PROGBUF0 + 1, EBREAK),)
        if value is None:
            run = Step(access_register(GPR | S0, xlen, postexec=True), program)
            return self._run([run, _read(GPR | S0, xlen)])[-1]
        write = access_register(GPR | S0, xlen, write=True, postexec=True)
        return self._run([Step(write, (*program, *_data(value, xlen)))], once=True)[0]

    def _has_room(self, instructions: int) -> bool:
        """For a program of so many, the last of which is an ebreak."""
        return self._module.progbufsize + self._module.impebreak >= instructions

    def _run(self, steps: Sequence[Step], once: bool = False) -> list[Result]:
        self._module.select(self._hart)
        results = self._module.abstract.run(steps, once=once)
        if isinstance(results[-1], Failed) and results[-1].cmderr == CmdErr.HALT_RESUME:
            raise HartNotHalted(self.name, self._hart, self._module.state(self._hart))
        return results

    def _select(self) -> None:
        state = self._module.state(self._hart)
        if state != "halted":
            raise HartNotHalted(self.name, self._hart, state)

    def _accepted(self, regno: int, result: Result) -> int:
        if isinstance(result, Failed):
            raise RegisterRefused(self.name, self._hart, regno, _reason(result))
        return result


def _leading(accesses: Sequence[tuple[Register, int | None]]) -> list[tuple[int, int | None]]:
    """Those before the first register that has a name."""
    numbered: list[tuple[int, int | None]] = []
    for register, value in accesses:
        if isinstance(register, str):
            break
        numbered.append((register, value))
    return numbered


def _access(regno: int, value: int | None, bits: int) -> Step:
    return _read(regno, bits) if value is None else _write(regno, bits, value)


def _read(regno: int, bits: int) -> Step:
    return Step(access_register(regno, bits), words=bits // 32)


def _write(regno: int, bits: int, value: int) -> Step:
    return Step(access_register(regno, bits, write=True), _data(value, bits))


def _data(value: int, bits: int) -> tuple[Access, ...]:
    return tuple((DATA0 + n, value >> 32 * n & 0xFFFFFFFF) for n in range(bits // 32))


def _answer(result: Result) -> Answer:
    return _reason(result) if isinstance(result, Failed) else result


def _reason(failed: Failed) -> str:
    return _WHY.get(failed.cmderr, f"the abstract command failed with cmderr {int(failed.cmderr)}")
