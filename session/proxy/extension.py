"""More packets that the proxy answers than those of its own: what adds them, and what it may ask.

Source: GDB manual, "General Query Packets" (qSupported), "Packets" (escaping).
"""

from contextlib import AbstractContextManager
from typing import Protocol

from rvtrace_gdb.session.past import Past


class Asking(Protocol):
    """What an extension is given with a packet: gdb's connection as it is now. It is used in the proxy's thread.

    past, lock  as the proxy has them; hold the lock while using the past
    thread      gdb's current thread as the protocol writes it ("1", "p1.1"), None where the stub has no threads
    hart        its hart, None where threads are no harts
    """

    @property
    def past(self) -> Past: ...

    @property
    def lock(self) -> AbstractContextManager[object]: ...

    @property
    def thread(self) -> str | None: ...

    @property
    def hart(self) -> int | None: ...

    def live(self) -> bool:
        """Whether there is a stub and its target stands still: `transact` and `live_pc` are then possible."""

    def transact(self, packet: bytes) -> bytes:
        """The stub's answer to *packet*, in the present, for gdb's current thread (both without framing and escapes).

        Raises StubGone.
        """

    def transact_all(self, packets: list[bytes], hart: int | None = None) -> list[bytes]:
        """As `transact`, of several packets that are sent without waiting in between; for a hart, if it is given."""

    def monitor(self, command: str) -> str:
        """What the stub prints for a command of its own (qRcmd). Raises StubGone."""

    def extended(self, packet: bytes) -> bytes | None:
        """What an extension answers to *packet*, None where it is for none. Raises RvtraceError."""

    def live_pc(self) -> int | None:
        """Where gdb's current thread stands in the present, None where the stub does not say. Raises StubGone."""

    def say(self, line: str) -> None:
        """A line for the user, printed with the next stop (`Proxy.said`)."""


class Extension(Protocol):
    """Answers packets that begin with one of *prefixes* (`b"Qbtrace"`), in the present and in the past."""

    @property
    def prefixes(self) -> tuple[bytes, ...]: ...

    def features(self) -> str:
        """What the answer to qSupported says besides, separated by semicolons: "Qbtrace:bts+;Qbtrace:off+"."""

    def answer(self, packet: bytes, asking: Asking) -> bytes | None:
        """The answer, which is yet to be escaped and framed; None: not one of mine.

        An RvtraceError that leaves this is told to gdb ("E.text") and to the user (`Proxy.said`).
        """
