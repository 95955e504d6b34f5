"""A hart's software encoder, which goes on from read-out to read-out, and what is left in it at the end."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from copy import deepcopy
from itertools import repeat
from typing import Any, cast

from rvtrace_gdb.decode.etrace import encoder as etrace
from rvtrace_gdb.decode.ingress import Block
from rvtrace_gdb.decode.ntrace import encoder as ntrace
from rvtrace_gdb.decode.ntrace.encoder_rules import NOWHERE
from rvtrace_gdb.decode.ntrace.layout import Evcode, Sync
from rvtrace_gdb.session.qemu.records import Item, Jumped
from rvtrace_gdb.session.qemu.wanted import Efficient, NTrace, Wanted

__all__ = ["HartEncoder", "encoder_for"]


class HartEncoder(ABC):
    """`feed` what ran, `end` for what would follow if it ended now; it goes on as if `end` had not been asked."""

    def __init__(self) -> None:
        self.instructions = 0
        """Retired, of what was fed; timestamps count these."""
        self._sent: list[bytes] = []
        self._shared: list[Any] = [NOWHERE]  # not copied with the encoder

    def feed(self, items: Sequence[Item]) -> bytes:
        """The bytes these make."""
        begin = 0
        if Jumped in map(type, items):
            for at, item in enumerate(items):
                if isinstance(item, Jumped):
                    self._retire(items[begin:at])
                    self._jump()
                    begin = at + 1
        self._retire(items[begin:] if begin else items)
        self.instructions += sum(map(getattr, items, repeat("instructions"), repeat(0)))  # of blocks
        return self._taken()

    def end(self, items: Sequence[Item]) -> bytes:
        """The bytes if these ran, too, and then tracing ended."""
        kept, instructions = self._copy(), self.instructions
        data = self.feed(items)
        self._stop()
        data += self._taken()
        self._restore(kept)
        self.instructions = instructions
        return data

    def _taken(self) -> bytes:
        data = b"".join(self._sent)
        self._sent.clear()
        return data

    def _duplicate(self, encoder: Any) -> Any:
        """A copy that shares what never changes. What it sends goes where the first one's goes."""
        return deepcopy(encoder, {id(it): it for it in self._shared})

    @abstractmethod
    def lose(self) -> None:
        """What was fed last is not followed by what comes next."""

    @abstractmethod
    def _retire(self, items: Sequence[Item]) -> None: ...
    @abstractmethod
    def _jump(self) -> None: ...
    @abstractmethod
    def _stop(self) -> None: ...
    @abstractmethod
    def _copy(self) -> Any: ...
    @abstractmethod
    def _restore(self, kept: Any) -> None: ...


class _NTrace(HartEncoder):
    def __init__(self, wanted: NTrace) -> None:
        super().__init__()
        self._shared += [wanted.options]
        self._encoder = ntrace.Encoder(wanted.options, self._sent.append)
        self._encoder.start(Sync.TRACE_ENABLE)

    def lose(self) -> None:
        self._encoder.start(Sync.RESTART_FROM_FIFO_OVERRUN)

    def _retire(self, items: Sequence[Item]) -> None:
        self._encoder.retire(cast(Sequence[Block], items))

    def _jump(self) -> None:
        self._encoder.stop(Evcode.DEBUG_MODE)
        self._encoder.start(Sync.EXIT_FROM_DEBUG)

    def _stop(self) -> None:
        self._encoder.stop(Evcode.TRACE_DISABLED)

    def _copy(self) -> ntrace.Encoder:
        return cast(ntrace.Encoder, self._duplicate(self._encoder))

    def _restore(self, kept: ntrace.Encoder) -> None:
        self._encoder = kept


class _Efficient(HartEncoder):
    def __init__(self, wanted: Efficient) -> None:
        super().__init__()
        self._shared += [wanted.options]
        self._clock = [0]
        self._timed = wanted.how.encapsulation.timestamp_bytes > 0
        self._encoder = etrace.Encoder(wanted.options, self._emitter(wanted))
        self._encoder.start()

    def _emitter(self, wanted: Efficient) -> Callable[[bytes], None]:
        framer, sent, clock, timed = wanted.how.encapsulation.framer(), self._sent, self._clock, self._timed

        def emit(payload: bytes) -> None:
            sent.append(framer.packet(payload, source=0, time=clock[0] if timed else None))

        return emit

    def lose(self) -> None:
        self._encoder.lost()

    def _retire(self, items: Sequence[Item]) -> None:
        if not self._timed:
            self._encoder.retire(cast(Sequence[Block], items))
            return
        for item in items:
            self._encoder.retire([cast(Block, item)])
            self._clock[0] += item.instructions if isinstance(item, Block) else 0

    def _jump(self) -> None:
        self._encoder.stop(disable=False)
        self._encoder.start()

    def _stop(self) -> None:
        self._encoder.stop()

    def _copy(self) -> tuple[etrace.Encoder, int]:
        return self._duplicate(self._encoder), self._clock[0]

    def _restore(self, kept: tuple[etrace.Encoder, int]) -> None:
        self._encoder, self._clock[0] = kept


def encoder_for(wanted: Wanted) -> HartEncoder:
    """One that has begun to trace."""
    return _NTrace(wanted) if isinstance(wanted, NTrace) else _Efficient(wanted)
