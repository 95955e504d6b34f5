"""The data of the E-Trace decoder: states, steps and walks.

Separate from states are the implicit return stack (`return_stack.py`), the branch predictor and the jump target cache
(`prediction_tables.py`): if they were part of a state, a loop would rarely return to the same state. A walk over the
program is described by its `WalkGoal` and its progress (`WalkProgress`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, TypeAlias, final

from rvtrace_gdb.decode.etrace.layout import Packet
from rvtrace_gdb.decode.etrace.options import Setup
from rvtrace_gdb.decode.etrace.prediction_tables import TableEffect
from rvtrace_gdb.decode.etrace.return_stack import ReturnStack
from rvtrace_gdb.decode.history.checkpoints import Checkpoint, packed, unpacked
from rvtrace_gdb.decode.history.events import Trap
from rvtrace_gdb.decode.history.history import Path, PathPart
from rvtrace_gdb.decode.program.csrs import ProgramContext
from rvtrace_gdb.decode.stepping.control_flow import (
    NOWHERE,
    CallEffect,
    Segment,
    Stack,
    after,
    pushed,
)
from rvtrace_gdb.decode.stepping.hart import Fork
from rvtrace_gdb.decode.stepping.reports import Report


class WalkArrival(Enum):
    """How a walk reached the address of a packet."""

    INFERRED = "inferred"
    """The code leads there, and may do so again."""
    JUMPED = "jumped"
    """By a jump whose target only the packet determines."""
    RETURNED = "returned"
    """By such a jump, which was a return to the address after its call."""
    FAULT = "fault"
    """The walk did not reach it."""


class WalkGoal(NamedTuple):
    """The instruction that a packet reports, up to which a walk goes.

    address    its address; None: the next branch
    inferable  whether the code may lead there; else it is the target of an uninferable jump
    returns    the reported number of implicit returns (irets, irdepth), None if not reported
    counted    whether the packet would report implicit returns if there were any (irets)
    """

    address: int | None
    inferable: bool = True
    returns: int | None = None
    counted: bool = False


class WalkProgress:
    """The progress of one walk.

    next_pc   the next instruction to retire, NOWHERE if that is not known
    last_pc   the last instruction that retired, if `next_pc` is not known
    parts     the instructions walked
    irets     implicit returns since the last branch
    outcomes  the branches passed as (address, taken), if they train a predictor
    fault     why the code contradicts the trace, "" if it does not
    missing   whether the fault is missing code
    pair      the jump at `next_pc` if the instruction before it determines its target
    """

    __slots__ = ("calls", "fault", "irets", "last_pc", "missing", "next_pc", "outcomes", "pair", "parts")

    def __init__(self, next_pc: int, last_pc: int, calls: ReturnStack) -> None:
        self.next_pc = next_pc
        self.last_pc = last_pc
        self.calls = calls
        self.parts: list[PathPart] = []
        self.irets = 0
        self.outcomes: list[tuple[int, bool]] = []
        self.fault = ""
        self.missing = False
        self.pair: Segment | None = None

    @property
    def place(self) -> int:
        """The address of a fault: the next instruction if it is known, else the last one."""
        return self.next_pc if self.next_pc != NOWHERE else self.last_pc

    @property
    def path(self) -> Path | None:
        """The instructions walked, None if there are none."""
        parts = [part for part in self.parts if len(part)]
        return Path(parts) if parts else None

    def before_last(self) -> Path | None:
        """Return the instructions walked without the last one, None if there are none."""
        parts = [part for part in self.parts if len(part)]
        if not parts:
            return None
        last = parts.pop()
        assert isinstance(last, tuple)  # a walk ends with the instructions that lead to an address
        parts += [last[:-1]] if len(last) > 1 else []
        return Path(parts) if parts else None


class Mode(Enum):
    """Whether the decoder knows the pc of the hart."""

    LOST = "lost"
    """The pc is unknown until the next synchronizing packet."""
    ADRIFT = "adrift"
    """The pc is unknown until the next address: code is missing, but no packet is."""
    ON = "on"
    TRAPPED = "trapped"
    """The hart took a trap whose handler has not been reported yet."""
    OFF = "off"
    """Tracing is stopped, and the hart may run untraced."""
    HALTED = "halted"
    """Tracing is stopped because the hart is halted: nothing runs meanwhile."""


class ReportedTrap(NamedTuple):
    """A trap that was reported without its handler.

    epc      the address of the trap, -1 if it is not known
    address  the address in the packet; if it is not the EPC, 2.0.5 uses it as the EPC of the next trap
    moved, maybe_moved  as in `Report`
    """

    trap: Trap
    epc: int
    address: int
    moved: bool = False
    maybe_moved: bool = False


class InferredAddress(NamedTuple):
    """Notes that the code led to the address of the last packet, which may still be the target of a later jump to it.

    *returns* is that of the packet's `WalkGoal`; *irets* is the number of implicit returns up to the address.
    """

    returns: int | None
    irets: int


class HartKnowledge(NamedTuple):
    """The decoder's knowledge of the hart, without the remembered steps.

    next_pc    the next instruction, NOWHERE if that is not known
    last_pc    the last instruction that retired
    reference  the last transmitted address, to which differences are relative
    inferred   set if the code led to the last address
    trap       the trap whose handler has not been reported yet
    """

    mode: Mode
    next_pc: int
    last_pc: int
    reference: int
    inferred: InferredAddress | None
    trap: ReportedTrap | None
    context: ProgramContext
    setup: Setup


def knowledge_fields(knowledge: HartKnowledge) -> Checkpoint:
    """Return the knowledge as JSON values, without its setup. Raises NoCheckpoint."""
    return {
        "mode": knowledge.mode.name,
        "pcs": [knowledge.next_pc, knowledge.last_pc, knowledge.reference],
        "inferred": knowledge.inferred and list(knowledge.inferred),
        "trap": knowledge.trap and [packed(part) for part in knowledge.trap],
        "context": packed(knowledge.context),
    }


def knowledge_of(fields: Checkpoint, setup: Setup) -> HartKnowledge:
    """Return the knowledge of which `knowledge_fields` made these fields. Raises BadCheckpoint."""
    inferred, trap = fields["inferred"], unpacked(fields["trap"])
    next_pc, last_pc, reference = fields["pcs"]
    return HartKnowledge(
        Mode[fields["mode"]],
        next_pc,
        last_pc,
        reference,
        None if inferred is None else InferredAddress(*inferred),
        None if trap is None else ReportedTrap(*trap),
        unpacked(fields["context"]),
        setup,
    )


class State(dict[bytes, "Remembered"]):
    """What is known of the hart, and the remembered steps from there, by payload.

    number  the kernel's number of this state, -1 if it has none
    """

    __slots__ = ("knowledge", "number")

    def __init__(self, knowledge: HartKnowledge) -> None:
        super().__init__()
        self.knowledge = knowledge
        self.number = -1


@dataclass(slots=True)
class Step:
    """The effect of a packet: the code that ran, the next state, the reports, and one more instruction that ran
    (*landing*).

    calls         the effect on the call stack; the step is valid only for a stack with `calls.taken` on top. None: no
                  effect
    tables        the effect on predictor and cache. None: no effect
    synchronizes  whether the packet synchronizes, so that data packets start anew

    Nothing changes a step. It has slots because the hot loop reads these faster than the fields of a NamedTuple.
    """

    path: Path | None
    state: State
    reports: tuple[Report, ...] = ()
    landing: Path | None = None
    calls: CallEffect | None = None
    tables: TableEffect | None = None
    synchronizes: bool = False

    def stack_after(self, stack: Stack) -> Stack:
        """Return the call stack after this step, given the one before it."""
        calls = self.calls
        if calls is None:
            return stack
        return pushed(None, calls.left) if calls.clears else after(stack, len(calls.taken), calls.left)


@final
class CacheFork(dict[int | None, "Remembered"]):
    """The remembered steps of a packet that depends on a jump target cache entry, by the address in the entry."""

    __slots__ = ("index",)

    def __init__(self, index: int) -> None:
        super().__init__()
        self.index = index


class NotCached(NamedTuple):
    """Stands for a step that is not remembered. It keeps the packet, so that the payload is parsed only once."""

    packet: Packet


@dataclass(slots=True)
class PredictorVariant:
    """A remembered step that is valid while some predictor entries are in these *states*. It is `variants[0]`."""

    entries: Callable[[bytearray], object]
    states: object
    variants: dict[int, "Remembered"]
    indices: tuple[int, ...]


@final
class PredictorFork(list[PredictorVariant]):
    """The remembered steps of a packet that depends on the predictor."""

    __slots__ = ("packet",)

    def __init__(self, packet: Packet) -> None:
        super().__init__()
        self.packet = packet


Remembered: TypeAlias = "Step | Fork[Remembered] | CacheFork | PredictorFork | NotCached"
"""What is remembered of a payload: its step, or what the step depends on."""
