"""A control transfer that a hart recorded, and what is known of how it records them; whatever the version."""

from dataclasses import dataclass
from typing import NamedTuple

from rvtrace_gdb.decode.instructions import IType


class Record(NamedTuple):
    """One transfer.

    source   address of the instruction it left; None: in a mode that is not recorded (the register reads 0)
    target   where it went; None as for *source*
    kind     ctrdata.TYPE, NONE where the hart does not say. Of EXCEPTION and INTERRUPT, *source* did not retire
    mispredicted
    cycles   since the record before, as far as that is known; a lower bound where the exponent cut bits off
    saturated: *cycles* is the most that can be said
    offset   byte of the trace it is at
    reserved  the code in ctrdata.TYPE where that is one no transfer has; 0 without
    """

    source: int | None
    target: int | None
    kind: IType
    mispredicted: bool = False
    cycles: int | None = None
    saturated: bool = False
    offset: int = 0
    reserved: int = 0


def impossible(record: Record, xlen: int) -> str:
    """What a record holds that no hart writes, "" for nothing.

    Control Transfer Records 1.0, "Control Transfer Type Definitions"; Privileged Architecture: virtual addresses of at
    most 57 bits (Sv57), sign-extended, physical ones of at most 56.
    """
    if record.reserved:
        return f"a record of type {record.reserved}"
    for what, address in (("source", record.source), ("target", record.target)):
        if xlen == 64 and address is not None and address >> 56 not in (0, 0xFF):
            return f"a record whose {what} is 0x{address:x}"
    return ""


@dataclass(frozen=True)
class Options:
    """How the hart records.

    kinds     the transfers that were recorded when the records were made; others left no trace
    ras       RAS emulation: calls alone are recorded, and go when the function returns
    end       where the hart stood when the records were read, if it recorded up to there; else None
    hidden    it may have been in modes that are not recorded, or recorded only at times: it left and came back unseen
    """

    kinds: frozenset[IType] = frozenset(IType) - {IType.NONE, IType.NOT_TAKEN, IType.UNINFERABLE_JUMP}
    ras: bool = False
    end: int | None = None
    hidden: bool = False
