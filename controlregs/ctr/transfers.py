"""Kinds of control transfers, as ctrdata.TYPE and the filter bits of the control registers number them.

Ref: RISC-V Control Transfer Records 1.0, "Transfer Type Filtering"; draft 0.1.4, 3.3. The numbers are the same in both.
"""

from enum import IntEnum


class TransferType(IntEnum):
    NONE = 0  # not used by CTR; what is read where the hart does not implement TYPE
    EXCEPTION = 1
    INTERRUPT = 2
    TRAP_RETURN = 3
    NOT_TAKEN_BRANCH = 4
    TAKEN_BRANCH = 5
    RESERVED_6 = 6
    RESERVED_7 = 7
    INDIRECT_CALL = 8
    DIRECT_CALL = 9
    INDIRECT_JUMP = 10  # without linkage
    DIRECT_JUMP = 11
    COROUTINE_SWAP = 12
    FUNCTION_RETURN = 13
    OTHER_INDIRECT_JUMP = 14  # with linkage, in another register than x1 and x5
    OTHER_DIRECT_JUMP = 15

    @property
    def plural(self) -> str:
        """As in "taken branches"."""
        return self.name.lower().replace("_", " ") + ("es" if self.name.endswith("H") else "s")


RECORDABLE = tuple(TransferType(code) for code in (1, 2, 3, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15))
FILTER_LSB = 32  # the filter of a type is bit 32 + its number; of not-taken branches it enables, else it inhibits
