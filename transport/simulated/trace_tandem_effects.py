"""What an instruction may change besides the pc: which registers a tandem-trace port must look at when it has retired.

Source: the tables the simulated hart is made of (`templates`, `fp_templates`).
"""

from typing import NamedTuple

from rvtrace_gdb.decode.tandem.group import Instr
from rvtrace_gdb.transport.simulated import fp_templates as fp
from rvtrace_gdb.transport.simulated.csr import TIME
from rvtrace_gdb.transport.simulated.isa import Operation
from rvtrace_gdb.transport.simulated.templates import LOADS, VALUES

NONE = -1
_TIMES = (TIME, TIME + 0x80)


class Effects(NamedTuple):
    """*rd*, *fd*: the integer and the floating-point register it writes, 0 and NONE: none. *csr*: the CSR it writes,
    NONE: none.

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
    """Those of one instruction, if it retires."""
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
    if op.name in fp.STORES:
        return Effects(instr)
    if op.name in fp.TO_INTEGER or op.name.rpartition(".")[0] in fp.TO_INTEGER:
        return Effects(instr, op.rd, floating=True)
    return Effects(instr, fd=op.rd, floating=True)
