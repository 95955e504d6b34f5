"""E-Trace as gem5's probe of its O3 CPU writes it: packets whose fields are those of a protobuf message."""

from rvtrace_gdb.decode.branches.gem5.decoder import history_of
from rvtrace_gdb.decode.branches.gem5.packets import items_of

__all__ = ["history_of", "items_of"]
