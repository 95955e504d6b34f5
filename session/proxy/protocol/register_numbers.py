"""The registers that gdb knows, by their numbers in the Debug Specification (3.7, "Abstract Register Numbers"): CSRs
from 0, x0 to x31 from 0x1000, f0 to f31 from 0x1020; and those of a halted hart, as its stub returns them.

gdb's numbers of x and f registers and of the pc are those of its riscv-tdep.h; a stub numbers its CSRs as it likes.
"""

from collections.abc import Sequence

from rvtrace_gdb.decode.program.csrs import CSRS, F, X
from rvtrace_gdb.session.proxy.protocol.target_xml import TargetXml, XmlRegister

PC = -1
GDB_PC = 32
_FIRST_F, _AFTER_F = 33, 65
_CSRS = """
    misa fcsr mstatus mie mtvec mscratch mepc mcause mtval medeleg mideleg stvec sscratch sepc scause stval satp
"""
_READ = frozenset({CSRS[name] for name in _CSRS.split()})
"""The CSRs that programs compute with. Others change by themselves, or their values do not matter."""


def debug_number(register: XmlRegister) -> int | None:
    """Return a register's number in the Debug Specification; None if it has none, and for the pc."""
    number = register.number
    if number < GDB_PC:
        return X + number
    if _FIRST_F <= number < _AFTER_F:
        return F + number - _FIRST_F
    name = register.name.removeprefix("csr_")
    if name.startswith("csr") and name[3:].isdecimal():
        return int(name[3:])
    return CSRS.get(name)


def numbered(description: TargetXml) -> dict[int, XmlRegister]:
    """Return the registers of a description by their numbers in the Debug Specification, without the pc."""
    numbers = ((debug_number(register), register) for register in description.registers.values())
    return {number: register for number, register in numbers if number is not None}


def value_of(answer: bytes) -> int | None:
    """Return the value in an answer to p, None if there is none."""
    try:
        return int.from_bytes(bytes.fromhex(answer.decode()), "little") if answer else None
    except ValueError:
        return None


def pc_in(description: TargetXml, g: bytes) -> int | None:
    """Return the pc in an answer to g, None if it is not there."""
    pc = description.by_name.get("pc")
    if pc is None:
        return None
    at = 2 * sum(register.size for register in description.registers.values() if register.number < pc.number)
    digits = g[at : at + 2 * pc.size]
    return value_of(digits) if len(digits) == 2 * pc.size else None


def packets_of(description: TargetXml) -> list[bytes]:
    """Return the packets that read the registers of a halted hart."""
    return [b"g", *(b"p%x" % register.number for register in _beside_g(description).values())]


def values_in(description: TargetXml, answers: Sequence[bytes]) -> dict[int, int]:
    """Return the registers in the answers to `packets_of`, by number, with the pc."""
    by_name = {} if answers[0][:1] == b"E" else description.values(answers[0])
    values = {it: by_name.get(found.name) for it, found in numbered(description).items() if X <= it < F}
    values |= {it: value_of(answer) for it, answer in zip(_beside_g(description), answers[1:], strict=True)}
    values[PC] = by_name.get("pc")
    return {number: value for number, value in values.items() if value is not None}


def _beside_g(description: TargetXml) -> dict[int, XmlRegister]:
    """Return the registers that an answer to g need not contain."""
    return {it: found for it, found in numbered(description).items() if it >= F or it in _READ}
