"""The states of the E-Trace decoder, and what packets of all formats do with them: losses, traps, contexts, walkers."""

from types import ModuleType
from typing import NamedTuple

from rvtrace_gdb.decode.etrace.layout import Packet, TeInstFormat
from rvtrace_gdb.decode.etrace.options import Options, Setup
from rvtrace_gdb.decode.etrace.state import HartKnowledge, Mode, State, Step, WalkProgress
from rvtrace_gdb.decode.etrace.walk import Walker
from rvtrace_gdb.decode.history.events import ContextChange, EventKind, Loss
from rvtrace_gdb.decode.history.history import Path
from rvtrace_gdb.decode.program.csrs import ProgramContext
from rvtrace_gdb.decode.program.image import Program
from rvtrace_gdb.decode.stepping.control_flow import CLEARS, NOWHERE
from rvtrace_gdb.decode.stepping.reports import Report, contradiction_report

STOPPED = (Mode.OFF, Mode.HALTED)

_UNKNOWN = ProgramContext()
_PRIVILEGES = {0: (0, False), 1: (1, False), 3: (3, False), 5: (0, True), 6: (1, True)}
"""The values of privilege (table "Privilege level encoding"): privilege mode, and whether it is a guest's.

4 is debug mode."""


class StepResult(NamedTuple):
    """A step and how it may be used.

    cacheable  whether it may be remembered, because it depends only on the state, payload, and what the step contains
    guard      the (index, state) of predictor entries on which it also depends
    retry      whether the flow is lost after the step and the same packet is to be decoded again to resume
    """

    step: Step
    cacheable: bool = True
    guard: tuple[tuple[int, int], ...] = ()
    retry: bool = False


def packet_name(packet: Packet) -> str:
    """What a packet is called in messages."""
    subformat = packet.subformat if packet.format in (TeInstFormat.SYNC, TeInstFormat.OPT_EXT) else None
    return f"te_inst format {packet.format}" + ("" if subformat is None else f" subformat {subformat}")


def one_instruction(address: int) -> Path:
    """Return the path of the instruction at *address* alone."""
    return Path(((address,),))


class StateTable:
    """The states of one program under one set of options: what can be known of a hart, with its remembered steps."""

    def __init__(self, program: Program, options: Options) -> None:
        self._program = program
        self._kernel: ModuleType | None = None
        self._walkers: dict[tuple[int, Setup], Walker] = {}  # by the image's id; the walker keeps the image
        self._walker_of_setup: dict[tuple[ProgramContext, Setup], Walker] = {}
        self._states: dict[HartKnowledge, State] = {}
        setup = Setup(options.parameters, options.modes)
        knowledge = HartKnowledge(
            mode=Mode.LOST,
            next_pc=NOWHERE,
            last_pc=NOWHERE,
            reference=0,
            inferred=None,
            trap=None,
            context=_UNKNOWN,
            setup=setup,
        )
        self.initial = self.state(knowledge)

    def compiled_by(self, kernel: ModuleType) -> None:
        """Have *kernel* walk in the usual case."""
        self._kernel = kernel

    def forget(self) -> None:
        """Drop all states and their steps. States that a caller still holds stay valid."""
        for state in self._states.values():
            state.clear()
        self._states = {self.initial.knowledge: self.initial}
        for walker in self._walkers.values():
            walker.forget()
        self._walker_of_setup.clear()

    def loss(self, state: State, kind: EventKind, why: Loss) -> Step:
        """Return the step of a loss of the flow for the reason *why*."""
        reports = (*self.pending_trap(state.knowledge, None), Report(kind, why, lost=True))
        return Step(None, self.lost(state.knowledge), reports, calls=CLEARS)

    def context(self, knowledge: HartKnowledge, packet: Packet) -> ProgramContext:
        """Return the context from the fields privilege and context of a format 3 packet."""
        prv, virtual = _PRIVILEGES.get(packet.fields.get("privilege", -1), (None, False))
        if knowledge.setup.parameters.privilege_width == 1 and prv == 1:
            prv = 3  # one bit distinguishes machine mode from user mode
        if knowledge.setup.parameters.context_width:
            return ProgramContext(prv, virtual, packet.fields.get("context"), epoch=knowledge.context.epoch)
        return knowledge.context._replace(prv=prv, virtual=virtual)

    def context_reports(self, knowledge: HartKnowledge, context: ProgramContext) -> tuple[Report, ...]:
        """Return the report of a change of the context, if it is one."""
        change = ContextChange(knowledge.context, context)
        return (Report(EventKind.CONTEXT, change),) if change.changed else ()

    def pending_trap(self, knowledge: HartKnowledge, handler: int | None) -> tuple[Report, ...]:
        """Return the report of the trap whose handler was not reported with it, if there is one."""
        if knowledge.trap is None:
            return ()
        trap, epc, _, moved, maybe_moved = knowledge.trap
        return (Report(EventKind.TRAP, trap, None if epc < 0 else epc, handler, moved=moved, maybe_moved=maybe_moved),)

    def is_gap(self, knowledge: HartKnowledge, address: int) -> tuple[bool, bool]:
        """Return `moved` and `maybe_moved` of a report that tracing continues at *address* (NOWHERE: not known)."""
        if knowledge.mode not in STOPPED or (knowledge.next_pc == NOWHERE and knowledge.mode is Mode.HALTED):
            return False, False
        if knowledge.next_pc == NOWHERE:
            return False, True
        return knowledge.next_pc != address and (address != NOWHERE or knowledge.mode is Mode.OFF), False

    def mismatch(self, knowledge: HartKnowledge, packet: Packet, walk: WalkProgress, why: str) -> StepResult:
        """Return the result of a packet that contradicts the program, with the walk up to there."""
        report = self.contradiction(knowledge, packet, walk.place, why)
        calls = walk.calls.effect(clears=True)
        return StepResult(Step(walk.path, self.lost(knowledge), (report,), calls=calls), not walk.calls.overflowed)

    def contradiction(self, knowledge: HartKnowledge, packet: Packet, at: int, why: str) -> Report:
        """Return the report that *packet* and the program do not agree at an address."""
        return contradiction_report(self._program, self.walker(knowledge).image, at, why, packet_name(packet))

    def lost(self, knowledge: HartKnowledge) -> State:
        """Return the state after a loss: where the hart is is not known."""
        lost = knowledge._replace(mode=Mode.LOST, next_pc=NOWHERE, last_pc=NOWHERE, inferred=None, trap=None)
        return self.state(lost)

    def state(self, knowledge: HartKnowledge) -> State:
        """Return the state in which this is known."""
        known = self._states.get(knowledge)
        if known is None:
            known = self._states[knowledge] = State(knowledge)
        return known

    def is_shared(self, state: State) -> bool:
        """Whether *state* is the one that `state` returns, and not of before a `forget`."""
        return self._states.get(state.knowledge) is state

    def walker(self, knowledge: HartKnowledge) -> Walker:
        """Return the walker for the code of the hart's context."""
        key = (knowledge.context, knowledge.setup)
        walker = self._walker_of_setup.get(key)
        if walker is None:
            image = self._program.image_of(knowledge.context)
            walker = self._walkers.get((id(image), knowledge.setup))
            if walker is None:
                walker = self._walkers[id(image), knowledge.setup] = Walker(image, *knowledge.setup)
                if self._kernel is not None:
                    walker.compiled_by(self._kernel)
            self._walker_of_setup[key] = walker
        return walker

    def without_code(self, knowledge: HartKnowledge) -> State:
        """Return the state after missing code.

        It is ADRIFT, unless later packets depend on calls, branches or jumps there.
        """
        modes = knowledge.setup.modes
        if modes.implicit_return or modes.branch_prediction or modes.jump_target_cache:
            return self.lost(knowledge)
        return self.state(knowledge._replace(mode=Mode.ADRIFT, next_pc=NOWHERE, last_pc=NOWHERE, inferred=None))
