"""What a halted hart says of its last trap: pc, and xcause, xepc, xtval, xtvec of the mode in which it is.

Ref: RISC-V Instruction Set Manual II (20240411), "Machine-Level CSRs", "Supervisor CSRs", "Hypervisor Extension"
(misa.H; in VS-mode the registers are others, and a debugger reads those of HS-mode); Debug Specification 1.0, dcsr.
"""

from typing import NamedTuple

from rvtrace_gdb.controlregs.target import CsrAccess, CsrRequest
from rvtrace_gdb.decode.program.csrs import CSRS
from rvtrace_gdb.decode.trap_cause import TrapRegisters
from rvtrace_gdb.support.errors import RvtraceError


class _TrapMode(NamedTuple):
    """The CSRs that a trap into one mode writes, and the one that leads to its handler."""

    cause: int
    epc: int
    value: int
    vector: int


_MODES = {
    3: _TrapMode(CSRS["mcause"], CSRS["mepc"], CSRS["mtval"], CSRS["mtvec"]),
    1: _TrapMode(CSRS["scause"], CSRS["sepc"], CSRS["stval"], CSRS["stvec"]),
}
_H, _V, _PRV = 1 << 7, 1 << 5, 3  # of misa, dcsr, priv


def trap_registers(access: CsrAccess) -> TrapRegisters | None:
    """Return what the hart says of the last trap into the mode in which it is.

    None: it cannot be read, or not without doubt, because the hart may be in a guest.
    """
    try:
        return _read_registers(access)
    except RvtraceError:
        return None


def _read_registers(access: CsrAccess) -> TrapRegisters | None:
    where = _read_values(access, "pc", "priv")
    if where is None:
        return None
    pc, privilege = where
    mode = _MODES.get(privilege & _PRV)
    if mode is None or privilege > _PRV or (mode is _MODES[1] and _may_be_guest(access)):
        return None
    values = _read_values(access, *mode)
    return None if values is None else TrapRegisters(privilege, pc, *values)


def _may_be_guest(access: CsrAccess) -> bool:
    """Return whether V may be 1: not all debuggers say so in priv."""
    misa = _read_values(access, CSRS["misa"])
    if misa is not None and misa[0] and not misa[0] & _H:
        return False
    dcsr = _read_values(access, CSRS["dcsr"])
    return dcsr is None or bool(dcsr[0] & _V)


def _read_values(access: CsrAccess, *registers: int | str) -> list[int] | None:
    accesses: list[CsrRequest] = [(register, None) for register in registers]
    answers = access.run(accesses)
    values = [answer for answer in answers if isinstance(answer, int)]
    return values if len(values) == len(registers) else None
