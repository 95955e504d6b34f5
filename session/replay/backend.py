"""What the proxy is given to answer gdb with: the past, and extensions that answer more packets than the proxy's own.

`ReplayBackend` is where the user is in the past: a place in the history of each hart, and how one gets from place
to place. The proxy asks it when gdb steps and runs backward and forward; `trace goto` does, too. `Extension` and
`Asking` are what adds packets, and what that may ask. Source: GDB manual, "General Query Packets" (qSupported),
"Packets" (escaping).

`Csrs` is such an extension, a packet of rvtrace's own that carries many of gdb's for registers: they go to the stub
without waiting in between.

    qRvtrace.registers:P1b6=...;p1b7;p1b8;|P3b4=...@0        the answer: =OK;01..;02..;OK

"|" before a packet: it is sent only when all before it were answered well. The replies end with the first that is
not. "=" tells the answer from what a program prints (O...). After "@" is the hart it is for; nothing: the one of
gdb's current thread.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol

from rvtrace_gdb.support.errors import Progress
from rvtrace_gdb.support.text import is_number


class Watchpoint(NamedTuple):
    """*kind*: "watch" for stores, "rwatch" for loads, "awatch" for both, to one of *size* bytes at *address*."""

    kind: str
    address: int
    size: int


Watchpoints = frozenset[Watchpoint]
NO_WATCHPOINTS: Watchpoints = frozenset()


class Hit(NamedTuple):
    """A watchpoint that triggers at *position*; *address*: one of its bytes, which was accessed.

    Forward that is before the instruction that makes the access, backward behind it: gdb, which takes it that RISC-V
    harts stop before an access, makes one more step in the same direction, without watchpoints, and compares then.
    """

    position: int
    kind: str
    address: int


class Stop(NamedTuple):
    """Why a walk through the past ended.

    at_end  "begin" or "end" of the history where it came to one, else ""
    lines   for the user: what was passed of which the trace does not say what ran
    hit     the watchpoint that ended it
    """

    at_end: str = ""
    lines: tuple[str, ...] = ()
    hit: Hit | None = None


class Registers(NamedTuple):
    """Which registers a trace tells, besides pc and the integer registers.

    flen  bits of the floating-point registers, 0 without any
    csrs  numbers by gdb's names
    """

    flen: int
    csrs: Mapping[str, int]


class ReplayBackend(Protocol):
    """What the proxy needs of the past. *hart*: the hart of gdb's thread, None where threads are no harts.

    A position is that of `decode.history.history`: of the instruction that runs next; the length of the history stands
    for the present, as it is seen from the past: all has run. A hart that is not in the past has no position.
    """

    def enter(self, hart: int | None, progress: Progress) -> None:
        """Reads out the trace and decodes it; the position is behind its end. Raises RvtraceError."""

    def leave(self) -> None:
        """Back to the present, with all harts."""

    def position(self, hart: int | None) -> int | None:
        """Where a hart is, None in the present."""

    def away(self) -> bool:
        """Whether any hart is in the past."""

    def is_at_end(self, hart: int | None) -> bool:
        """Whether all has run where this hart is: what the target says now is right there, too."""

    def go_to(self, hart: int | None, position: int) -> None:
        """Into the past, at a position of its history as it was decoded last. Raises RvtraceError."""

    def sees_accesses(self, hart: int | None) -> bool:
        """Whether watchpoints can trigger: where a hart is, the trace says what its loads and stores accessed."""

    def step(self, hart: int | None, direction: int, watchpoints: Watchpoints = NO_WATCHPOINTS) -> Stop:
        """One instruction, *direction* 1 or -1; over gaps. Not over a hit of a watchpoint."""

    def step_within(
        self,
        hart: int | None,
        direction: int,
        addresses: range,
        progress: Progress,
        watchpoints: Watchpoints = NO_WATCHPOINTS,
    ) -> Stop:
        """At least one instruction, and on as long as the next one is in *addresses*, or to a hit of a watchpoint."""

    def run(
        self,
        hart: int | None,
        direction: int,
        breakpoints: frozenset[int],
        progress: Progress,
        watchpoints: Watchpoints = NO_WATCHPOINTS,
    ) -> Stop:
        """To the next instruction (but this one) that has a breakpoint, or the nearest hit of a watchpoint, which may
        be right here. Raises what *progress* does, and then has gone some of the way, or none.
        """

    def registers(self, hart: int | None) -> Mapping[str, int]:
        """The values known where a hart is, by gdb's name of the register: pc, and what the trace has besides."""

    def told(self, hart: int | None) -> Registers | None:
        """Which registers may be known in a hart's past, None: pc alone."""

    def memory(self, hart: int | None, address: int, size: int) -> bytes:
        """What is known to have been in memory: code and constants, and what the trace has besides. Fewer bytes where
        not all is, b"" for none.
        """

    def joins(self, hart: int | None, pc: int) -> str:
        """A line for the user if what ran last of what is known does not lead to *pc*, where the program is now."""


class Asking(Protocol):
    """What an extension is given with a packet: gdb's connection as it is now. It is used in the proxy's thread.

    past, lock  as the proxy has them; hold the lock while using the past
    thread      gdb's current thread as the protocol writes it ("1", "p1.1"), None where the stub has no threads
    hart        its hart, None where threads are no harts
    """

    @property
    def past(self) -> ReplayBackend: ...

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


_PREFIX = "qRvtrace.registers:"
NEXT, BARRIER, HART = ";", "|", "@"
RUNS = b"E.the hart runs"


def refuses(reply: str) -> bool:
    """Whether a reply to p or P is an error, or that there is no such packet: values are pairs of digits."""
    return not reply or (reply[0] == "E" and (len(reply) == 3 or reply[1] == "."))


def batch(packets: Sequence[str]) -> str:
    """One packet of many."""
    return _PREFIX + NEXT.join(packets)


class Csrs:
    """An `Extension` of the proxy."""

    prefixes = (_PREFIX.encode(),)

    def features(self) -> str:
        return ""

    def answer(self, packet: bytes, asking: Asking) -> bytes | None:
        if not asking.live():
            return RUNS
        content, _, number = packet.decode("latin-1").removeprefix(_PREFIX).rpartition(HART)
        hart = int(number) if is_number(number) else None
        replies: list[str] = []
        for group in _groups(content.split(NEXT)):
            for reply in asking.transact_all([part.encode("latin-1") for part in group], hart):
                replies.append(reply.decode("latin-1"))
                if refuses(replies[-1]):
                    return _answer(replies)
        return _answer(replies)


def replies(answer: str) -> list[str]:
    """The replies in an answer."""
    return answer.removeprefix("=").split(NEXT)


def _answer(replies: Sequence[str]) -> bytes:
    return f"={NEXT.join(replies)}".encode("latin-1")


def _groups(packets: Sequence[str]) -> Iterator[list[str]]:
    """What is sent at once."""
    group: list[str] = []
    for packet in packets:
        if packet.startswith(BARRIER) and group:
            yield group
            group = []
        group.append(packet.removeprefix(BARRIER))
    if group:
        yield group
