"""What the decoder's automaton is made of: states, steps between them, and what is kept apart from both."""

from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

from rvtrace_gdb.decode.callstack import CallEffect, Stack, after, pushed
from rvtrace_gdb.decode.etrace.options import Modes, Parameters
from rvtrace_gdb.decode.etrace.packet import Packet
from rvtrace_gdb.decode.etrace.predictor import Effect
from rvtrace_gdb.decode.events import Context, Trap
from rvtrace_gdb.decode.history import Path
from rvtrace_gdb.decode.reports import Report


class Mode(Enum):
    """Whether the decoder knows where the hart is."""

    LOST = "lost"
    """Not until the next synchronizing packet."""
    ADRIFT = "adrift"
    """Not until the next address: there was no code to follow, but no packet is missing."""
    ON = "on"
    TRAPPED = "trapped"
    """In a trap whose handler has not been reported yet."""
    OFF = "off"
    """Tracing was stopped: what runs now is missing in the trace."""
    HALTED = "halted"
    """Tracing was stopped because the hart was: nothing runs meanwhile."""


class Setup(NamedTuple):
    """How the encoder is built and set up, as far as was told."""

    parameters: Parameters
    modes: Modes


class TrapSeen(NamedTuple):
    """A trap that was reported without its handler. *epc*: -1 when it is not known.

    *address*: what the packet had for one; where it is not the EPC, 2.0.5 takes it for that of the next trap.
    *elsewhere*, *untold*: as in `Report`.
    """

    trap: Trap
    epc: int
    address: int
    elsewhere: bool = False
    untold: bool = False


class Inferred(NamedTuple):
    """The address of the last packet was found where the code leads anyway: it may have been meant for a jump there.

    *returns*: as in `Goal` of that packet; *irets*: implicit returns by then.
    """

    returns: int | None
    irets: int


class Place(NamedTuple):
    """Where decoding stands.

    at         the next instruction, NOWHERE when that is not known: what retired before it is `behind`
    reference  the last address transmitted, which differences are relative to
    """

    mode: Mode
    at: int
    behind: int
    reference: int
    inferred: Inferred | None
    trap: TrapSeen | None
    context: Context
    setup: Setup


class State(dict[object, "Known"]):
    """A place, and the steps already known from there, by payload."""

    __slots__ = ("place",)

    def __init__(self, place: Place) -> None:
        super().__init__()
        self.place = place


class Step(NamedTuple):
    """What a packet does: the code that ran, the next state, what to report, and then one more instruction that ran.

    calls         what it does to the call stack; it holds only for a stack with `calls.taken` on top. None: nothing
    tables        what it does to predictor and cache. None: nothing
    synchronizes  the packet is a synchronizing one: what data packets say starts anew
    """

    path: Path | None
    state: State
    reports: tuple[Report, ...] = ()
    landing: Path | None = None
    calls: CallEffect | None = None
    tables: Effect | None = None
    synchronizes: bool = False

    def stack_after(self, stack: Stack) -> Stack:
        """The call stack after this step, from the one before it."""
        calls = self.calls
        if calls is None:
            return stack
        return pushed(None, calls.left) if calls.clears else after(stack, len(calls.taken), calls.left)


class Fork(dict[int | None, "Known"]):
    """In place of a step that depends on the call stack: what there is for each return address on top of it."""


class Lookup(dict[int | None, "Known"]):
    """In place of a step that depends on an entry of the jump target cache: what there is for each address in it."""

    __slots__ = ("index",)

    def __init__(self, index: int) -> None:
        super().__init__()
        self.index = index


class Single(NamedTuple):
    """In place of a step that is not remembered: the packet, so that it is read once."""

    packet: Packet


class Variant(NamedTuple):
    """What holds while some entries of the predictor are in these states. *known*: under 0."""

    entries: Callable[[bytearray], object]
    states: object
    known: dict[object, "Known"]
    indices: tuple[int, ...]


class Guarded(list[Variant]):
    """In place of a step that depends on the predictor."""

    __slots__ = ("packet",)

    def __init__(self, packet: Packet) -> None:
        super().__init__()
        self.packet = packet


Known = Step | Fork | Lookup | Single | Guarded
