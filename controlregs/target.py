"""What the procedures of this room need from a way to reach a target. Transports satisfy it by having the methods."""

from typing import Protocol, runtime_checkable

from rvtrace_gdb.support.progress import Progress, silent


class Target(Protocol):
    """Registers and memory on the target's system bus, by physical address, whether its harts run or are halted.

    Every method raises leaves of `support.errors.RvtraceError`. One with an attribute `address` means that this access
    was refused, any other that the target cannot be reached at all; `partial`, if there, has the bytes read before it.
    """

    def read32(self, address: int) -> int:
        """The 32-bit word at *address* (a multiple of 4), by exactly one 32-bit bus access."""
        ...

    def write32(self, address: int, value: int) -> None:
        """Store *value* at *address* (a multiple of 4), by exactly one 32-bit bus access."""
        ...

    def read_block(self, address: int, nbytes: int, progress: Progress = silent) -> bytes:
        """*nbytes* bytes of memory from *address* (both multiples of 4). The watcher may raise `Cancelled`."""
        ...


@runtime_checkable
class DataPort(Protocol):
    """A target that can empty a register with a side effect on read (trRamData) without one round trip per word."""

    def read_data_port(self, address: int, words: int, progress: Progress = silent) -> bytes:
        """The results of *words* single 32-bit reads of the same *address*, in order, little-endian."""
        ...
