"""Spike's log of commits, the other way round: the line of a step, as `console/spike_worker/log.py` reads them."""

from rvtrace_gdb.decode.tandem.layout import FPR, GPR
from rvtrace_gdb.session.tandem.model import Expected


def logged(step: Expected, xlen: int, flen: int) -> str:
    """From the digits of the pc on; before stands the privilege mode. Other spellings than Spike's are other steps."""
    digits, size = xlen // 4, 8 if step.instr & 3 == 3 else 4
    words = [f"{step.pc:0{digits}x} (0x{step.instr:0{size}x})"]
    for regno, value in step.registers.items():
        if regno < FPR:
            words.append(f"x{regno - GPR:<2} 0x{value:0{digits}x}")
        else:
            words.append(f"f{regno - FPR:<2} 0x{value:0{flen // 4}x}")
    if step.load is not None:
        words.append(f"mem 0x{step.load:0{digits}x}")
    if step.store is not None:
        address, length, value = step.store
        words.append(f"mem 0x{address:0{digits}x} 0x{value:0{2 * length}x}")
    return " ".join(words) + "\n"
