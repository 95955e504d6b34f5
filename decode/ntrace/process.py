"""The PROCESS field of an Ownership message: privilege mode and context.

Source: N-Trace 1.0, "Ownership Message": PROCESS = {CONTEXT, V[0], PRV[1:0], FORMAT[1:0]}. High bits that are 0 may be
left out, V included.
"""

from enum import IntEnum
from typing import NamedTuple


class Format(IntEnum):
    """Why it was sent, and what CONTEXT is."""

    PRIVILEGE = 0
    """V or PRV changed; no CONTEXT."""
    RESERVED = 1
    SCONTEXT = 2
    HCONTEXT = 3


class Process(NamedTuple):
    """The sub-fields. *prv* and *v*: as the ISA encodes privilege modes."""

    format: Format
    prv: int
    v: int
    context: int

    @classmethod
    def of(cls, field: int) -> "Process":
        """The sub-fields of PROCESS."""
        return cls(Format(field & 3), field >> 2 & 3, field >> 4 & 1, field >> 5)
