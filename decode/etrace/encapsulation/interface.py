"""What takes packets out of a trace and puts them in gives and takes, whatever the transport."""

from collections.abc import Iterator, Sequence
from enum import IntEnum
from itertools import accumulate
from typing import NamedTuple, Protocol, overload

from rvtrace_gdb.decode.streams import Lost
from rvtrace_gdb.support.errors import RvtraceError


class Kind(IntEnum):
    """What a packet is about."""

    INSTRUCTION = 0
    DATA = 1
    OTHER = 2
    """Neither instruction nor data trace: counted, not read."""


class Packets(NamedTuple):
    """Packets of one source and kind, one behind the other as far as this source is concerned.

    source    srcID, index, ATID; 0 where packets do not say
    payloads  without anything the transport added
    offsets   where in the trace each packet's first byte is
    length    bytes of trace they took, headers and padding included
    times     timestamps of the transport (not te_inst's time), None for a packet without; None: it has none at all
    sizes     of these, each packet's
    """

    source: int
    kind: Kind
    payloads: list[bytes]
    offsets: Sequence[int]
    length: int
    times: list[int | None] | None = None
    sizes: Sequence[int] = ()

    def part(self, start: int, stop: int | None = None) -> "Packets":
        """Some of them. *length* stays as it is."""
        some = slice(start, stop)
        times = None if self.times is None else self.times[some]
        return self._replace(
            payloads=self.payloads[some], offsets=self.offsets[some], times=times, sizes=self.sizes[some]
        )


class Idle(NamedTuple):
    """Filling between packets. It may be reported after packets that follow it."""

    offset: int
    length: int


class CutOff(Lost):
    """The trace ends in the middle of a packet: this much of it is there."""


Item = Packets | Idle | Lost


class Deframer(Protocol):
    """Takes packets out of a trace. The same bytes give the same packets, whatever pieces they come in.

    Packets of one source come in order. Those of different sources are sorted by source between two losses; in trace
    order they are by their offsets. The lengths of all items add up to *total*. A loss of length 0 is one of packets
    that are not in the trace. A loss without a reason is the start of a wrapped buffer, up to the first packet.
    """

    total: int
    """Bytes fed so far."""

    def feed(self, data: bytes) -> Iterator[Item]:
        """What is complete with *data*."""
        ...

    def finish(self) -> Iterator[Item]:
        """What is left at the end of the trace."""
        ...


class Framer(Protocol):
    """Puts packets into a trace. What its methods give is to be written one behind the other."""

    def packet(self, payload: bytes, kind: Kind = Kind.INSTRUCTION, source: int = 0, time: int | None = None) -> bytes:
        """The bytes of a packet. Raises CannotCarry."""
        ...

    def synchronization(self) -> bytes:
        """Bytes behind which a reader that starts anywhere knows that a packet starts."""
        ...

    def idle(self, length: int) -> bytes:
        """At least *length* bytes of filling."""
        ...


class CannotCarry(RvtraceError):
    """A packet does not fit its transport. *what* does not, and why."""

    def __init__(self, transport: str, what: str) -> None:
        self.transport, self.what = transport, what
        super().__init__(f"{transport} cannot carry {what}")


class Sizes(Sequence[int]):
    """Lengths of frames; worked out when the first is asked for."""

    def __init__(self, frames: Sequence[bytes]) -> None:
        self._frames = frames
        self._known: list[int] | None = None

    def __len__(self) -> int:
        return len(self._frames)

    @overload
    def __getitem__(self, index: int) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[int]: ...
    def __getitem__(self, index: int | slice) -> int | Sequence[int]:
        if self._known is None:
            self._known = self._worked_out()
        return self._known[index]

    def _worked_out(self) -> list[int]:
        return list(map(len, self._frames))


class Places(Sizes):
    """Offsets of frames one behind the other from *offset* on; worked out when the first is asked for."""

    def __init__(self, frames: Sequence[bytes], offset: int) -> None:
        super().__init__(frames)
        self._offset = offset

    def _worked_out(self) -> list[int]:
        return list(accumulate(super()._worked_out(), initial=self._offset))[:-1]
