"""The places of an automaton, the code there, and what can be said of both."""

from typing import NamedTuple

from rvtrace_gdb.decode.callstack import CLEARS
from rvtrace_gdb.decode.etrace.layout import Format
from rvtrace_gdb.decode.etrace.options import Options
from rvtrace_gdb.decode.etrace.packet import Packet
from rvtrace_gdb.decode.etrace.state import Mode, Place, Setup, State, Step
from rvtrace_gdb.decode.etrace.walk import Walker
from rvtrace_gdb.decode.etrace.way import Walk
from rvtrace_gdb.decode.events import Context, ContextChange, EventKind, Loss
from rvtrace_gdb.decode.history import Path
from rvtrace_gdb.decode.reports import Report, contradiction
from rvtrace_gdb.decode.segments import NOWHERE
from rvtrace_gdb.decode.streams import Program

STOPPED = (Mode.OFF, Mode.HALTED)

_UNKNOWN = Context()
_PRIVILEGES = {0: (0, False), 1: (1, False), 3: (3, False), 5: (0, True), 6: (1, True)}
"""Codes of privilege (table "Privilege level encoding"): privilege mode, and whether it is a guest's. 4: Debug Mode."""


class Result(NamedTuple):
    """A step, and whether it may be remembered: it depends on nothing but place, payload and what the step says.

    guard  and on the states of these entries of the predictor
    again  the flow is lost behind the step, and the packet is one to go on at: it is to be looked at again
    """

    step: Step
    lasting: bool = True
    guard: tuple[tuple[int, int], ...] = ()
    again: bool = False


class Places:
    """All places of one program under one set of options."""

    def __init__(self, program: Program, options: Options) -> None:
        self._program = program
        self._options = options
        self._mask = (1 << program.xlen) - 1
        self._walkers: dict[tuple[int, Setup], Walker] = {}  # by the image's id; the walker keeps the image
        self._walker_in: dict[tuple[Context, Setup], Walker] = {}
        self._states: dict[Place, State] = {}
        setup = Setup(options.parameters, options.modes)
        self.initial = self._state(Place(Mode.LOST, NOWHERE, NOWHERE, 0, None, None, _UNKNOWN, setup))

    def forget(self) -> None:
        """Drops all states and their steps; those still held by a caller stay valid."""
        for state in self._states.values():
            state.clear()
        self._states = {self.initial.place: self.initial}
        for walker in self._walkers.values():
            walker.forget()
        self._walker_in.clear()

    def loss(self, state: State, kind: EventKind, why: Loss) -> Step:
        """The flow is lost here, for a reason outside the automaton."""
        reports = (*self._held_trap(state.place, None), Report(kind, why, lost=True))
        return Step(None, self._lost(state.place), reports, calls=CLEARS)

    def _context(self, place: Place, packet: Packet) -> Context:
        """Privilege and context as a format 3 packet has them."""
        prv, virtual = _PRIVILEGES.get(packet.fields.get("privilege", -1), (None, False))
        if place.setup.parameters.privilege_width == 1 and prv == 1:
            prv = 3  # one bit tells machine mode from user mode
        scontext = packet.fields.get("context") if place.setup.parameters.context_width else None
        return Context(prv, virtual, scontext)

    def _context_reports(self, place: Place, context: Context) -> tuple[Report, ...]:
        change = ContextChange(place.context, context)
        return (Report(EventKind.CONTEXT, change),) if change.changed else ()

    def _held_trap(self, place: Place, handler: int | None) -> tuple[Report, ...]:
        """The trap whose handler was not reported with it."""
        if place.trap is None:
            return ()
        trap, epc, _, elsewhere, untold = place.trap
        return (Report(EventKind.TRAP, trap, None if epc < 0 else epc, handler, elsewhere=elsewhere, untold=untold),)

    def _is_gap(self, place: Place, address: int) -> tuple[bool, bool]:
        """`elsewhere` and `untold` of a report that tracing goes on at *address*, NOWHERE where that is not told."""
        if place.mode not in STOPPED or (place.at == NOWHERE and place.mode is Mode.HALTED):
            return False, False
        if place.at == NOWHERE:
            return False, True
        return place.at != address and (address != NOWHERE or place.mode is Mode.OFF), False

    def _mismatch(self, place: Place, packet: Packet, walk: Walk, why: str) -> Result:
        report = self._contradiction(place, packet, walk.place, why)
        calls = walk.calls.effect(clears=True)
        return Result(Step(walk.path, self._lost(place), (report,), calls=calls), not walk.calls.overflowed)

    def _contradiction(self, place: Place, packet: Packet, at: int, why: str) -> Report:
        return contradiction(self._program, self._walker(place).image, at, why, name(packet))

    def _lost(self, place: Place) -> State:
        return self._state(place._replace(mode=Mode.LOST, at=NOWHERE, behind=NOWHERE, inferred=None, trap=None))

    def _state(self, place: Place) -> State:
        known = self._states.get(place)
        if known is None:
            known = self._states[place] = State(place)
        return known

    def _walker(self, place: Place) -> Walker:
        """Who walks the code of a place's context."""
        key = (place.context, place.setup)
        walker = self._walker_in.get(key)
        if walker is None:
            image = self._program.image_of(place.context)
            walker = self._walkers.get((id(image), place.setup))
            if walker is None:
                walker = self._walkers[id(image), place.setup] = Walker(image, *place.setup)
            self._walker_in[key] = walker
        return walker


def name(packet: Packet) -> str:
    """What a packet is called in messages."""
    subformat = packet.subformat if packet.format in (Format.SYNC, Format.OPT_EXT) else None
    return f"te_inst format {packet.format}" + ("" if subformat is None else f" subformat {subformat}")


def landing(address: int) -> Path:
    return Path(((address,),))
