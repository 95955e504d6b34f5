"""Accesses in words, for every listing of them.

load 4 bytes at 0x80005b40 <buffer+8> = 0x0000002a
atomic add 8 bytes at 0x80005b48 <lock+0> = 0x0000000000000001, operand 0x0000000000000001
csr rs 0x300 = 0x0000000a00001800, operand 0x0000000000000008
"""

from collections.abc import Callable, Mapping

from rvtrace_gdb.decode.memory_access import CSR, MULTIPLE, Access, AccessNote
from rvtrace_gdb.support.text import printable

SymbolOf = Callable[[int], tuple[str, int] | None]
"""The name and offset of an address, None without one."""


def _no_symbol(address: int) -> tuple[str, int] | None:
    return None


def words(access: Access, xlen: int, symbol_of: SymbolOf = _no_symbol) -> str:
    """What an access did; after " # " what else there is to say. What is not in the trace is left out."""
    text = " ".join(filter(None, (_what(access), _where(access, xlen, symbol_of))))
    if access.value is not None:
        text += f" = {_value(access.value, access.size)}"
    if access.operand is not None:
        text += f", operand {_value(access.operand, access.size)}"
    if access.failed:
        text += ", failed"
    return f"{text} # {note_words(access)}" if access.notes else text


def note_words(access: Access) -> str:
    """What else there is to say of an access, "" for nothing."""
    return "; ".join(_NOTES[note] for note in access.notes)


_PLACE = "its place is not known"
_NOTES: Mapping[AccessNote, str] = {
    AccessNote.LOST_AFTER: "data packets after this one were lost",
    AccessNote.NO_REQUEST: (
        "the response to a load that was requested before the trace began, or whose packet was lost"
    ),
    AccessNote.NOT_YET: "no response in the trace",
    AccessNote.DIFFERS: "told by how it differs from an access that is not in the trace",
    AccessNote.NOT_IN_SYNC: f"{_PLACE}: it came when the trace was not in sync",
    AccessNote.BEYOND: f"{_PLACE}: its instruction is not in the history",
    AccessNote.AMBIGUOUS: f"{_PLACE}: more than one instruction may have made it",
    AccessNote.TOO_FAR: f"{_PLACE}: too much ran before it without being told of",
    AccessNote.DISAGREE: f"{_PLACE}: loads and stores of the trace and of the program do not agree here",
}


def touches(access: Access, begin: int, size: int) -> bool:
    """Whether an access to memory has a byte in common with *size* bytes from *begin* on, as far as its address is
    known.
    """
    if access.address is None or access.kind == CSR:
        return False
    return access.address < begin + size and begin < access.address + access.size


def _what(access: Access) -> str:
    operation = "" if access.operation == MULTIPLE else access.operation
    size = "" if access.kind == CSR else f"{access.size} byte{'s' if access.size > 1 else ''}"
    return " ".join(filter(None, (access.kind, operation, size)))


def _where(access: Access, xlen: int, symbol_of: SymbolOf) -> str:
    if access.address is None:
        return ""
    if access.kind == CSR:
        return f"0x{access.address:03x}"
    symbol = symbol_of(access.address)
    name = "" if symbol is None else f" <{printable(symbol[0])}+{symbol[1]}>"
    return f"at 0x{access.address:0{xlen // 4}x}{name}"


def _value(value: int, size: int) -> str:
    return f"0x{value:0{2 * size}x}"
