"""The memory that trace is stored in by a version-0 encoder or funnel of the simulated target: SRAM or system memory.

Sources: see `controlregs.sifive_v0`; the proposal's teSink* registers, the P550's "Trace Funnel Sink" tables.
"""

from collections.abc import Callable

from rvtrace_gdb.controlregs.fields import Register
from rvtrace_gdb.controlregs.sifive_v0 import sinks
from rvtrace_gdb.transport.simulated.bus import Bus, BusError

_WORD = 4  # bytes; what SRAM is read by
_ONES = 0xFFFF_FFFF
_WRAPPED = sinks.WP.mask("teSinkWrapped")


class V0Memory:
    """*sram_size* bytes of its own (a power of two; 0: none), and, if it reaches *system* memory, the RAM on *bus*.

    *access_bytes*: the words it stores; what is less than one waits for more, or for the flush. *address_bits*: of the
    bus. *settable_bytes*: the steps in which addresses can be set, None: words. Limit belongs to buffers in system
    memory only: SRAM is used whole. Who owns it says whether it is *in_sram*.
    """

    def __init__(
        self,
        bus: Bus,
        *,
        sram_size: int = 0,
        system: bool = True,
        access_bytes: int = 8,
        address_bits: int = 40,
        settable_bytes: int | None = None,
    ) -> None:
        if sram_size & sram_size - 1:
            raise ValueError(f"an SRAM of {sram_size} bytes: the size must be a power of two")
        if access_bytes not in (4, 8, 16, 32):
            raise ValueError(f"words of {access_bytes} bytes: they have 4, 8, 16 or 32")
        self.has_sram, self.has_system = bool(sram_size), system
        self.access_bytes = access_bytes
        self._step = settable_bytes or access_bytes
        self.in_sram = not system
        self.stops = False
        """It is to stop when it is full for the first time."""
        self.refused: Callable[[], None] = lambda: None
        """Told that there is no memory where it should store."""
        self.filled: Callable[[], None] = lambda: None
        """Told that it has stopped."""
        self.stopped = False
        self._bus = bus
        self._sram = bytearray(sram_size)
        self._high_bits = (1 << max(address_bits - 32, 0)) - 1
        self.reset()

    def reset(self) -> None:
        """All registers are 0."""
        self._base = self._high = self._limit = self._wp = self._rp = 0
        self._wrapped = self.stopped = False
        self._queue = b""  # less than a word

    # -- registers

    def load(self, register: Register) -> int:
        """What a read gives."""
        if register is sinks.DATA:
            return self._next_word()
        if register is sinks.WP:
            return self._wp | (_WRAPPED if self._wrapped else 0)
        values = {sinks.BASE: self._base, sinks.BASE_HIGH: self._high, sinks.LIMIT: self._limit, sinks.RP: self._rp}
        return values[register]

    def store(self, register: Register, value: int) -> None:
        """A write. Addresses are multiples of the word."""
        address = value & self._mask
        if register is sinks.WP:
            self._wp, self._wrapped = address, bool(value & _WRAPPED)
        elif register is sinks.RP:
            self._rp = value & len(self._sram) - 1 & -_WORD if self._sram else 0
        elif self.in_sram:
            return  # Base is 0, and there is no Limit
        elif register is sinks.BASE:
            self._base = address
        elif register is sinks.BASE_HIGH:
            self._high = value & self._high_bits
        elif register is sinks.LIMIT:
            self._limit = address

    @property
    def _mask(self) -> int:
        """The bits of an address that exist."""
        return (len(self._sram) - 1 if self.in_sram else _ONES) & -self._step

    def _next_word(self) -> int:
        """teSinkData: the word at the read pointer, which then moves on."""
        if not self._sram:
            return 0
        at = self._rp
        self._rp = (at + _WORD) % len(self._sram)
        return int.from_bytes(self._sram[at : at + _WORD], "little")

    # -- trace

    @property
    def waiting(self) -> bool:
        """Bytes wait for a word to be full."""
        return bool(self._queue)

    @property
    def ready(self) -> bool:
        return not self.stopped

    def accept(self, data: bytes) -> int:
        """Store *data*. Returns how many bytes were taken: fewer once it has stopped."""
        if self.stopped:
            return 0
        waiting, whole = len(self._queue), self._queue + data
        words = [whole[n : n + self.access_bytes] for n in range(0, len(whole), self.access_bytes)]
        self._queue = words.pop() if len(words[-1]) < self.access_bytes else b""
        for number, word in enumerate(words, 1):
            if self._put(word):
                self._queue = b""
                return number * self.access_bytes - waiting
        return len(data)

    def flush(self, filling: bytes) -> None:
        """What waits is stored, the rest of the word filled."""
        queue, self._queue = self._queue, b""
        if queue and not self.stopped:
            self._put(queue + filling * (self.access_bytes - len(queue)))

    def _put(self, word: bytes) -> bool:
        """True: it has stopped with this word."""
        if self.in_sram:
            self._sram[self._wp : self._wp + len(word)] = word
        else:
            try:
                self._bus.write_bytes(self._high << 32 | self._wp, word)
            except BusError:
                self.refused()
        last = len(self._sram) - len(word) if self.in_sram else self._limit
        if self._wp != last:
            self._wp = self._wp + len(word) & _ONES
            return False
        self._wp, self._wrapped, self.stopped = self._base, True, self.stops
        if self.stops:
            self.filled()
        return self.stops
