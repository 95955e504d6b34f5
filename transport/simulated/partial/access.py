"""The loads, stores and atomics of a hart of which not all memory is known, and which has no devices.

A load of an unknown byte is unknown. A load from an unknown address, or from where there is no memory, ends the
execution before it once, and is unknown if it is asked for again; a store to a device leads nowhere, and is counted.
"""

from collections.abc import Callable, Collection

from rvtrace_gdb.decode.semantics.encodings import signed
from rvtrace_gdb.decode.semantics.operations import AMO
from rvtrace_gdb.support.extents import Extent
from rvtrace_gdb.transport.simulated.hart.instructions import AccessingHart, DataAccess
from rvtrace_gdb.transport.simulated.partial.memory import PartialMemory
from rvtrace_gdb.transport.simulated.partial.stops import HartAccess, HartStop, StopCause
from rvtrace_gdb.transport.simulated.partial.unknown import UNKNOWN, UnknownUsed, is_unknown

LOAD, STORE, ATOMIC = "load", "store", "atomic"


class PartialAccess(DataAccess):
    """The accesses of a hart whose bus is a PartialMemory.

    watched        (memory, whether its loads count, whether its stores do) at which execution stops
    passes         whether the next access that would end the execution is made instead
    device_stores  how many stores led nowhere
    """

    def __init__(self, hart: AccessingHart, stored_tohost: Callable[[], None]) -> None:
        super().__init__(hart, stored_tohost)
        self.watched: Collection[tuple[Extent, bool, bool]] = ()
        self.passes = False
        self.device_stores = 0

    @property
    def _memory(self) -> PartialMemory:
        memory = self._bus
        assert isinstance(memory, PartialMemory)
        return memory

    def _masked_address(self, address: int) -> int:
        return address & self._mask

    def load(self, offset: int, nbytes: int, position: int) -> int:
        """Return what a load reads, see the module. *offset*: from the start of main memory."""
        return self._loaded(self._masked_address(offset + self._base), nbytes, LOAD)

    def store(self, offset: int, nbytes: int, position: int, value: int) -> None:
        self._stored(self._masked_address(offset + self._base), nbytes, value, STORE)

    def load_reserved(self, address: int, nbytes: int) -> int:
        value = self._loaded(self._masked_address(address), nbytes, LOAD)
        self._reservation = None if is_unknown(address) else address
        return UNKNOWN if is_unknown(value) else signed(value, 8 * nbytes) & self._mask

    def store_conditional(self, address: int, value: int, nbytes: int) -> int:
        if is_unknown(address):
            raise HartStop(StopCause.STORE_ADDRESS)
        reserved, self._reservation = self._reservation == address, None
        if reserved:
            self._stored(address, nbytes, value, STORE)
        return int(not reserved)

    def atomic(self, operation: str, address: int, value: int, nbytes: int) -> int:
        if is_unknown(address):
            raise HartStop(StopCause.STORE_ADDRESS)
        old, bits = self._loaded(address, nbytes, ATOMIC), 8 * nbytes
        try:
            new = AMO[operation](old, value & (1 << bits) - 1, bits)
        except UnknownUsed:
            new = UNKNOWN
        self._stored(address, nbytes, new, "")
        return UNKNOWN if is_unknown(old) else signed(old, bits) & self._mask

    def _loaded(self, address: int, size: int, kind: str) -> int:
        if is_unknown(address):
            if not self.passes:
                raise HartStop(StopCause.LOAD_ADDRESS)
            return UNKNOWN
        access = HartAccess(kind, address, size)
        self._look_at(access)
        if self._memory.has(address, size):
            return self._memory.load(address, size)
        if not self.passes:
            raise HartStop(StopCause.DEVICE_READ, access)
        return UNKNOWN

    def _stored(self, address: int, size: int, value: int, kind: str) -> None:
        """*kind*: "": the access was looked at."""
        if is_unknown(address):
            raise HartStop(StopCause.STORE_ADDRESS)
        if kind:
            self._look_at(HartAccess(kind, address, size))
        if self._memory.has(address, size):
            self._memory.store(address, size, value)
        elif self.passes or self._memory.is_device(address):
            self.device_stores += 1
        else:
            raise HartStop(StopCause.ELSEWHERE, HartAccess(kind or ATOMIC, address, size))

    def _look_at(self, access: HartAccess) -> None:
        """Raise HartStop if an access ends the execution before it."""
        if self.passes:
            return
        if access.address % access.size:
            raise HartStop(StopCause.MISALIGNED, access)
        for extent, loads, stores in self.watched:
            if access.address >= extent.end or access.address + access.size <= extent.address:
                continue
            if (loads and access.kind != STORE) or (stores and access.kind != LOAD):
                raise HartStop(StopCause.WATCHPOINT, access)
