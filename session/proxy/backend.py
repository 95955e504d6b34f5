"""The interfaces of the proxy: the past that it answers gdb from, and extensions that answer more packets.

`ReplayBackend` keeps a position in the history of each hart, and moves it. The proxy uses it when gdb steps and runs
backward and forward; so does `trace goto`. An `Extension` answers packets of its own, with the help of an
`ExtensionContext`. Source: GDB manual, "General Query Packets" (qSupported), "Packets" (escaping).

`RegisterBatches` is such an extension: one packet of rvtrace's own carries many of gdb's register packets, which are
sent to the stub without waiting for answers in between.

    qRvtrace.registers:P1b6=...;p1b7;p1b8;|P3b4=...@0        the answer: =OK;01..;02..;OK

"|" before a packet: it is sent only if all packets before it succeeded. The replies end with the first error. "="
distinguishes the answer from output of a program (O...). "@" is followed by the number of the hart; nothing: the hart
of gdb's current thread.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol

from rvtrace_gdb.session.past.past import TracedRegisters
from rvtrace_gdb.support.errors import Progress
from rvtrace_gdb.support.text import is_number


class Watchpoint(NamedTuple):
    """A watchpoint on *size* bytes at *address*. *kind*: "watch" for stores, "rwatch" for loads, "awatch" for both."""

    kind: str
    address: int
    size: int


Watchpoints = frozenset[Watchpoint]
MemoryPart = tuple[int, bytes]
"""An address, and what is there."""
NO_WATCHPOINTS: Watchpoints = frozenset()
LineBefore = Callable[[int | None, int | None, frozenset[int], Progress], int]
"""Returns the position to which a step backward by lines leads in a hart's history from a position, None: from its end;
or that of the nearest of some breakpoints on the way. The hart is then where the step began. Raises RvtraceError.
"""


class Hit(NamedTuple):
    """A watchpoint that triggers at *position*; *address* is the accessed byte in it.

    *others*: kinds and accessed bytes of others that the same instruction triggers, in which *address* is not; for a
    debugger that takes several.

    Forward that is before the instruction that makes the access, backward after it: gdb, which assumes that RISC-V
    harts stop before an access, makes one more step in the same direction, without watchpoints, and compares then.
    """

    position: int
    kind: str
    address: int
    others: tuple[tuple[str, int], ...] = ()

    @property
    def addresses(self) -> tuple[int, ...]:
        """The accessed byte of each watchpoint that is reported."""
        return self.address, *(address for _, address in self.others)


class MovementStop(NamedTuple):
    """Why a movement in the past ended.

    at_end  "begin" or "end" if it came to that end of the history, else ""
    lines   lines for the user about gaps that were passed
    hit     the watchpoint that ended it
    stuck   the next instruction cannot be executed, so that the debugger's command is to end
    """

    at_end: str = ""
    lines: tuple[str, ...] = ()
    hit: Hit | None = None
    stuck: bool = False


class ReplayBackend(Protocol):
    """The past, as the proxy uses it. *hart*: the hart of gdb's thread, None where threads are no harts.

    A position is that of `decode.history.history`: of the instruction that runs next. The length of the history is the
    position after the last instruction: the present, as seen from the past. A hart that is in the present has no
    position.

    takes_several: whether the debugger takes several watchpoints in one stop, if one instruction triggers them.
    """

    takes_several: bool

    def enter(self, hart: int | None, progress: Progress) -> None:
        """Read out and decode the trace, and move the hart to the end of its history. Raises RvtraceError."""

    def leave(self) -> None:
        """Return to the present, with all harts."""

    def position(self, hart: int | None) -> int | None:
        """Return the position of a hart, None in the present."""

    def away(self) -> bool:
        """Return whether any hart is in the past."""

    def is_at_end(self, hart: int | None) -> bool:
        """Return whether a hart is at the end of its history: the live target's state is right there as well."""

    def go_to(self, hart: int | None, position: int) -> None:
        """Move a hart to a position of its history as it was decoded last. Raises RvtraceError."""

    def sees_accesses(self, hart: int | None) -> bool:
        """Return whether watchpoints can trigger: the trace of the hart has the addresses of loads and stores."""

    def step(self, hart: int | None, direction: int, watchpoints: Watchpoints = NO_WATCHPOINTS) -> MovementStop:
        """Step one instruction, *direction* 1 or -1, over gaps, but not over a hit of a watchpoint."""

    def step_along(
        self, hart: int | None, direction: int, breakpoints: frozenset[int], progress: Progress
    ) -> MovementStop:
        """Step one instruction, and on as long as gdb is known to step on, but not beyond one of *breakpoints*."""

    def step_within(
        self,
        hart: int | None,
        direction: int,
        addresses: range,
        progress: Progress,
        watchpoints: Watchpoints = NO_WATCHPOINTS,
    ) -> MovementStop:
        """Step at least one instruction, and on while the next one is in *addresses*, or to a hit of a watchpoint."""

    def run(
        self,
        hart: int | None,
        direction: int,
        breakpoints: frozenset[int],
        progress: Progress,
        watchpoints: Watchpoints = NO_WATCHPOINTS,
    ) -> MovementStop:
        """Run to the next instruction (not the current one) with a breakpoint, or to the nearest hit of a watchpoint,
        which may be at the current position. When *progress* raises, that is passed on, at a position on the way.
        """

    def pc(self, hart: int | None) -> int | None:
        """Return the address of the instruction that a hart runs next; None in the present, and at the end."""

    def registers(self, hart: int | None) -> Mapping[str, int]:
        """Return the known values at the hart's position, by gdb's register names: pc, and those in the trace."""

    def traced_registers(self, hart: int | None) -> TracedRegisters | None:
        """Return which registers may be known in a hart's past, None: pc alone."""

    def memory(self, hart: int | None, address: int, size: int) -> bytes:
        """Return the known contents of memory: code and constants, and what the trace has.

        The answer ends before the first unknown byte, b"" if the first byte is unknown.
        """

    def is_forked(self, hart: int | None) -> bool:
        """Return whether a hart is in a fork: it goes on from its position by itself, and can be changed."""

    def write_register(self, hart: int | None, name: str, value: int) -> bool:
        """Set a register of a fork, by gdb's name. False: it does not have it."""

    def write_memory(self, hart: int | None, address: int, data: bytes) -> bool:
        """Write memory of a fork. False: there is none."""

    def partly_known_lines(self, hart: int | None) -> Sequence[MemoryPart]:
        """Return what is known of the stack and of variables, of lines of LLDB's cache that are partly known."""

    def joins(self, hart: int | None, pc: int) -> str:
        """Return a line for the user if the last traced instruction cannot lead to *pc*, where the program is now, else
        "".
        """


class ExtensionContext(Protocol):
    """gdb's connection, as an extension sees it while it answers a packet. It is used in the proxy's thread.

    past, lock  the past, and the lock to hold while it is used
    hart        the hart of gdb's current thread, None where threads are no harts
    """

    @property
    def past(self) -> ReplayBackend: ...

    @property
    def lock(self) -> AbstractContextManager[object]: ...

    @property
    def hart(self) -> int | None: ...

    @property
    def breakpoint_addresses(self) -> frozenset[int]:
        """Where gdb has breakpoints."""

    def live(self) -> bool:
        """Return whether there is a stub whose target is halted: `transact` and `live_pc` are possible then."""

    def transact(self, packet: bytes) -> bytes:
        """Return the stub's answer to *packet*, for gdb's current thread, both without framing and escapes.

        Raises StubGone.
        """

    def transact_all(self, packets: list[bytes], hart: int | None = None) -> list[bytes]:
        """Return the answers to several packets, which are sent without waiting in between, for *hart* if given."""

    def monitor(self, command: str) -> str:
        """Return the output of a monitor command of the stub (qRcmd). Raises StubGone."""

    def extended(self, packet: bytes) -> bytes | None:
        """Return an extension's answer to *packet*, None if none of them answers it. Raises RvtraceError."""

    def print(self, line: str) -> None:
        """Print a line on gdb's console, while gdb waits for a stop, or for the answer to a monitor command."""

    def is_interrupted(self) -> bool:
        """Return whether gdb sent Ctrl-C or disconnected, while something is worked on for it."""

    def is_unheard(self) -> bool:
        """Return whether gdb sent Ctrl-C, disconnected, or does not wait for this answer to a monitor command."""

    def live_pc(self) -> int | None:
        """Return the pc of gdb's current thread in the present, None if the stub does not report
        it. Raises StubGone.
        """

    def say(self, line: str) -> None:
        """Add a line for the user, which is printed with the next stop (`Proxy.take_lines`)."""


class HartExtensionContext(ExtensionContext, Protocol):
    """gdb's connection, for what reads harts beside it, also in the proxy's thread."""

    def reaches(self, hart: int, *, alone: bool) -> bool:
        """Return whether a hart is one of gdb's threads. *alone*: it is the only one, and need not be a thread."""

    def registers(self, hart: int) -> dict[int, int]:
        """Return the registers of a halted hart that can be read, see `register_numbers`. Raises StubGone."""


class Extension(Protocol):
    """Answers packets that begin with one of *prefixes* (`b"Qbtrace"`), in the present and in the past."""

    @property
    def prefixes(self) -> tuple[bytes, ...]: ...

    def features(self) -> str:
        """Return what to add to the answer to qSupported, separated by semicolons: "Qbtrace:bts+;Qbtrace:off+"."""

    def answer(self, packet: bytes, connection: ExtensionContext) -> bytes | None:
        """Return the answer, without framing and escapes; None if the packet is not one of this extension.

        An RvtraceError is reported to gdb ("E.text") and to the user (`Proxy.take_lines`).
        """


_PREFIX = "qRvtrace.registers:"
NEXT, BARRIER, HART = ";", "|", "@"
RUNS = b"E.the hart runs"


def is_refusal(reply: str) -> bool:
    """Return whether a reply to p or P is an error, or empty, which means an unsupported packet. Values are pairs of
    digits.
    """
    return not reply or (reply[0] == "E" and (len(reply) == 3 or reply[1] == "."))


def memory_read(reply: bytes) -> bytes:
    """Return the bytes in a reply to m: as many as could be read, none if it is an error."""
    try:
        return b"" if reply[:1] == b"E" and len(reply) % 2 else bytes.fromhex(reply.decode())
    except ValueError:
        return b""


def batch(packets: Sequence[str]) -> str:
    """Return one packet that contains all *packets*."""
    return _PREFIX + NEXT.join(packets)


class RegisterBatches:
    """The `Extension` for batches of register packets."""

    prefixes = (_PREFIX.encode(),)

    def features(self) -> str:
        return ""

    def answer(self, packet: bytes, connection: ExtensionContext) -> bytes | None:
        if not connection.live():
            return RUNS
        content, _, number = packet.decode("latin-1").removeprefix(_PREFIX).rpartition(HART)
        hart = int(number) if is_number(number) else None
        replies: list[str] = []
        for group in _groups(content.split(NEXT)):
            for reply in connection.transact_all([part.encode("latin-1") for part in group], hart):
                replies.append(reply.decode("latin-1"))
                if is_refusal(replies[-1]):
                    return _joined_replies(replies)
        return _joined_replies(replies)


def replies(answer: str) -> list[str]:
    """Return the replies in an answer."""
    return answer.removeprefix("=").split(NEXT)


def _joined_replies(replies: Sequence[str]) -> bytes:
    return f"={NEXT.join(replies)}".encode("latin-1")


def _groups(packets: Sequence[str]) -> Iterator[list[str]]:
    """Yield the packets that are sent at once."""
    group: list[str] = []
    for packet in packets:
        if packet.startswith(BARRIER) and group:
            yield group
            group = []
        group.append(packet.removeprefix(BARRIER))
    if group:
        yield group
