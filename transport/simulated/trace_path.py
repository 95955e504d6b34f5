"""The trace of one encoder on its way out: what the protocol is told while messages arrive, and while they do not."""

from collections.abc import Callable, Sequence

from rvtrace_gdb.transport.simulated.hart import Retired
from rvtrace_gdb.transport.simulated.trace_protocol import Begin, End, TraceProtocol


class TracePath:
    """*protocol* at work. *ready*: whether what it sends is taken.

    Once `overrun`, nothing is sent before messages are taken again; a message then says so.
    """

    def __init__(self, protocol: TraceProtocol, ready: Callable[[], bool]) -> None:
        self.protocol = protocol
        self.overrun = False
        self._ready = ready

    def begin(self, reason: Begin) -> None:
        """What is told next is traced."""
        self.protocol.begin(reason)
        self._recover()

    def tell(self, retired: Sequence[Retired]) -> None:
        """What the hart retired."""
        self._recover()
        if self.overrun:
            self.protocol.skip(retired)
        else:
            self.protocol.tell(retired)

    def end(self, reason: End, pc: int) -> None:
        """Nothing more is traced, from *pc* on."""
        if not self.overrun:
            self.protocol.end(reason, pc)

    def notify(self) -> None:
        """The address of the next instruction is to be reported."""
        if not self.overrun:
            self.protocol.notify()

    def _recover(self) -> None:
        if self.overrun and self._ready():
            self.overrun = False
            self.protocol.recover()
