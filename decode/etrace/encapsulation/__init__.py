"""How packets travel: every transport E-Trace packets come in, to packets and back.

`Encapsulation` says which; its deframer and framer do the work.
"""

from rvtrace_gdb.decode.etrace.encapsulation.choice import NAMES, Encapsulation
from rvtrace_gdb.decode.etrace.encapsulation.interface import (
    CannotCarry,
    CutOff,
    Deframer,
    Framer,
    Idle,
    Item,
    Kind,
    Packets,
    Places,
)
from rvtrace_gdb.decode.streams import Lost

__all__ = [
    "NAMES",
    "CannotCarry",
    "CutOff",
    "Deframer",
    "Encapsulation",
    "Framer",
    "Idle",
    "Item",
    "Kind",
    "Lost",
    "Packets",
    "Places",
]
