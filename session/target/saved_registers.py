"""The registers of a halted hart, as they are saved with a trace: x, f, pc, privilege, and the CSRs that traps and
floating-point instructions depend on. What cannot be read is missing.

Ref: Debug Specification 1.0, 3.7 (numbers); RISC-V Instruction Set Manual II (20240411), "Machine ISA (misa) Register";
the names are those of OpenOCD and gdb.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

from rvtrace_gdb.controlregs.target import CsrAccess, CsrName, CsrRequest
from rvtrace_gdb.decode.program.csrs import CSRS, F, X
from rvtrace_gdb.session.capture.model import SavedAt, SavedRegisters
from rvtrace_gdb.support.errors import RvtraceError

_X = "zero ra sp gp tp t0 t1 t2 fp s1 a0 a1 a2 a3 a4 a5 a6 a7 s2 s3 s4 s5 s6 s7 s8 s9 s10 s11 t3 t4 t5 t6"
_F = (
    "ft0 ft1 ft2 ft3 ft4 ft5 ft6 ft7 fs0 fs1 fa0 fa1 fa2 fa3 fa4 fa5 fa6 fa7 fs2 fs3 fs4 fs5 fs6 fs7 fs8 fs9 fs10 fs11"
    " ft8 ft9 ft10 ft11"
)
_MACHINE = "mhartid mstatus mie mtvec mscratch mepc mcause mtval"
_SUPERVISOR = "medeleg mideleg stvec sscratch sepc scause stval satp"
_MISA, _FCSR = CSRS["misa"], CSRS["fcsr"]
NAMES: Mapping[int, str] = {
    **{CSRS[name]: name for name in ("misa", "fcsr", *_MACHINE.split(), *_SUPERVISOR.split())},
    **{X + number: name for number, name in enumerate(_X.split())},
    **{F + number: name for number, name in enumerate(_F.split())},
}
"""The registers that are saved, by number. Counters and what devices change (mip) are not: they go on by themselves."""


@runtime_checkable
class ReadsAll(Protocol):
    """A way to registers that reads several at once, by their names."""

    def read_all(self, registers: Sequence[str]) -> dict[str, int] | None:
        """Return the values; None: not all of them can be read."""


def read_registers(access: CsrAccess, hart: int, at: SavedAt) -> SavedRegisters | None:
    """Return what can be read, None if that is not even the pc. Raises nothing."""
    try:
        found = _read_values(access, ["pc", "priv", _MISA])
        pc = found.pop("pc", None)
        if pc is None:
            return None
        privilege = found.pop("priv", None)
        numbers = _register_names(found.get(_MISA) or None, access.xlen)
        for kind in (range(X), range(X, F), range(F, F + 32)):
            found |= _read_values(access, [number for number in numbers if number in kind])
    except RvtraceError:
        return None
    values = {number: value for number, value in found.items() if isinstance(number, int)}
    return SavedRegisters(hart, at, pc, values, privilege=privilege)


def _register_names(misa: int | None, xlen: int) -> list[CsrName]:
    """Return the registers to try. *misa*: None if it is not known; then they all may be there."""
    supervisor, single, double = (misa is None or bool(misa >> ord(letter) - ord("A") & 1) for letter in "SFD")
    names = [*_MACHINE.split(), *(_SUPERVISOR.split() if supervisor else ())]
    numbers: list[CsrName] = [X + number for number in range(1, 32)]
    numbers += [CSRS[name] for name in names]
    if single or double:
        numbers += [_FCSR, *(F + number for number in range(32))]
    return numbers


def _read_values(access: CsrAccess, registers: Sequence[CsrName]) -> dict[CsrName, int]:
    """Return the values of those registers that can be read."""
    found: dict[CsrName, int] = {}
    left = list(registers)
    if left and isinstance(access, ReadsAll):
        names = [NAMES[it] if isinstance(it, int) else it for it in left]
        values = access.read_all(names)
        if values is not None:
            return {register: values[name] for register, name in zip(left, names, strict=True)}
    while left:
        accesses: list[CsrRequest] = [(register, None) for register in left]
        answers = access.run(accesses)
        done = [answer for answer in answers if isinstance(answer, int)]
        found.update(zip(left, done, strict=False))
        refused = left[len(done) : len(done) + 1]
        left = left[len(done) + 1 :]
        if refused and isinstance(refused[0], int) and refused[0] >= F:
            break  # no floating-point register can be read
    return found
