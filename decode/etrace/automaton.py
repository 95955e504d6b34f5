"""The meaning of each te_inst packet: given a place, the code that ran, the next place, and what there is to report.

This is the readable truth of the decoder; `hart` only remembers its answers. Sources: Efficient Trace for RISC-V 2.0,
"Decoder" and "Instruction Trace Encoder Output Packets"; for irets and the standard support packet the v0.8 extensions.

The call stack, the branch predictor and the jump target cache are no part of a place but arguments of `step`: a loop
would seldom come back to the same place with them.
"""

from collections.abc import Callable
from typing import NamedTuple

from decode.callstack import CallEffect, Stack
from decode.causes import trap_text
from decode.etrace import support
from decode.etrace.layout import BranchFmt, Format, Sync
from decode.etrace.options import Dialect, Options, SupportLayout
from decode.etrace.packet import Packet
from decode.etrace.predictor import NOT_CACHED, Effect, Tables
from decode.etrace.state import Inferred, Mode, Place, Setup, State, Step, TrapSeen
from decode.etrace.support import QualStatus
from decode.etrace.walk import Arrival, Goal, Walk, Walker
from decode.history import Context, EventKind, Path
from decode.reports import Report, contradiction
from decode.segments import NOWHERE
from decode.streams import Program

_UNKNOWN = Context()
_PRIVILEGES = {0: (0, False), 1: (1, False), 3: (3, False), 5: (0, True), 6: (1, True)}
"""Codes of privilege (table "Privilege level encoding"): privilege mode, and whether it is a guest's. 4: Debug Mode."""

_FULL_MAP = 31


class Result(NamedTuple):
    """A step, and whether it may be remembered: it depends on nothing but place, payload and what the step says.

    guard  and on the states of these entries of the predictor
    """

    step: Step
    lasting: bool = True
    guard: tuple[tuple[int, int], ...] = ()


class Automaton:
    """The states and steps of one program under one set of options."""

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

    def step(self, state: State, packet: Packet, stack: Stack, tables: Tables) -> Result:
        """What *packet* means in *state*. Contradictions between trace and program are reports, not exceptions."""
        if packet.format != Format.SYNC:
            return self._flow(state.place, packet, stack, tables)
        return _SYNCS[Sync(packet.subformat or 0)](self, state.place, packet, stack, tables)

    def can_leave_lost(self, packet: Packet) -> bool:
        """Whether a packet means something without knowing where the hart is."""
        return packet.format == Format.SYNC

    def loss(self, state: State, kind: EventKind, text: str) -> Step:
        """The flow is lost here, for a reason outside the automaton."""
        reports = (*self._held_trap(state.place, None), Report(kind, text, lost=True))
        return Step(None, self._lost(state.place), reports, calls=_FORGET)

    def end(self, state: State) -> tuple[Report, ...]:
        """What is left to report at the end of the trace."""
        return self._held_trap(state.place, None)

    # Formats 0, 1 and 2

    def _flow(self, place: Place, packet: Packet, stack: Stack, tables: Tables) -> Result:
        if place.mode is Mode.ADRIFT:
            return self._regain(place, packet, ())
        if place.mode is not Mode.ON:
            what = "while tracing is off" if place.mode is Mode.OFF else "with no handler reported for the trap before"
            return Result(self.loss(self._state(place), EventKind.LOSS, f"{name(packet)} {what}"))
        walker = self._walker(place)
        walk, again = self._continued(place, walker, stack)
        address = self._address(place, packet, tables, again)
        if address == NOT_CACHED:
            fault = f"jump target cache entry {packet.fields['index']} is empty"
            return self._mismatch(place, packet, walk, fault)
        goal = self._goal(place.setup, packet, address)
        counted = "branch_count" in packet.fields
        before: dict[int, int] = {}
        if counted:
            arrival, outcome = self._predicted(walker, walk, packet, goal, tables, before)
        else:
            arrival, outcome = self._mapped(walker, walk, packet, goal)
        if arrival is Arrival.FAULT:
            tables.change(before)
            if walk.missing:
                return self._adrift(place, packet, walk)
            return self._mismatch(place, packet, walk, walk.fault)
        if outcome is not None:
            walker.stand_at(walk, walk.behind, outcome)
            if counted:
                tables.train(walk.behind, outcome, before)
        settled = packet.fields.get("notify") or address is None or walker.is_branch(walk.behind)
        inferred = Inferred(goal.returns, walk.irets) if arrival is Arrival.INFERRED and not settled else None
        reference = place.reference if address is None else address
        following = place._replace(at=walk.at, behind=walk.behind, reference=reference, inferred=inferred)
        targets = (*again, *((address,) if arrival is Arrival.JUMPED and address is not None else ()))
        guard = tuple(before.items())
        training = tables.change(before) if counted else tables.training(walk.outcomes)
        effect = Effect(training, targets) if training or targets else None
        step = Step(walk.path, self._state(following), calls=walk.calls.effect(), tables=effect)
        return Result(step, not walk.calls.overflowed, guard)

    def _continued(self, place: Place, walker: Walker, stack: Stack) -> tuple[Walk, tuple[int, ...]]:
        """The walk a packet starts with, and jump targets on it.

        Where the code led to the last address anyway, and what follows is not a format 3, that address was the target
        of a jump, and comes a second time ("Format 2 notify and updiscon fields", case 1).
        """
        walk = walker.start(place.at, place.behind, stack)
        if place.inferred is None:
            return walk, ()
        walk.irets = place.inferred.irets
        arrival = walker.reach(walk, Goal(place.behind, inferable=False, returns=place.inferred.returns))
        if arrival is Arrival.FAULT:  # it cannot: the encoder had another reason to report it
            return walker.start(place.at, place.behind, stack), ()
        walk.irets = 0
        return walk, (place.behind,) if arrival is Arrival.JUMPED else ()

    def _address(self, place: Place, packet: Packet, tables: Tables, again: tuple[int, ...]) -> int | None:
        """The address a packet reports: None for none, NOT_CACHED where the cache does not have it."""
        fields = packet.fields
        if "index" in fields:
            for target in again:
                if tables.jump_index(target) == fields["index"]:
                    return target
            return tables.targets.get(fields["index"], NOT_CACHED)
        if "address" not in fields:
            return None
        base = 0 if place.setup.modes.full_address else place.reference
        return base + fields["address"] & self._mask

    def _goal(self, setup: Setup, packet: Packet, address: int | None) -> Goal:
        fields = packet.fields
        returns = fields.get("irets", fields.get("irdepth")) if fields.get("irreport") else None
        counted = setup.parameters.iret_ext and setup.modes.implicit_return
        return Goal(address, not fields.get("updiscon"), returns, counted)

    def _mapped(self, walker: Walker, walk: Walk, packet: Packet, goal: Goal) -> tuple[Arrival, bool | None]:
        """Over the branches of branch_map, then up to the address. The outcome: of the branch that is there."""
        bits, count = packet.fields.get("branch_map", 0), packet.fields.get("branches", 0)
        if "branches" in packet.fields and goal.address is None:
            count = _FULL_MAP
        last = count > 0 and (goal.address is None or walker.is_branch(goal.address))
        walker.spend(walk, bits, count - last)
        if walk.fault:
            return Arrival.FAULT, None
        outcome = not bits >> count - 1 & 1 if last else None
        return self._reach(walker, walk, goal), outcome

    def _predicted(
        self, walker: Walker, walk: Walk, packet: Packet, goal: Goal, tables: Tables, before: dict[int, int]
    ) -> tuple[Arrival, bool | None]:
        """Over branches that went as predicted, then up to the address, or to the one that did not."""
        count = packet.fields["branch_count"] + _FULL_MAP
        failed = packet.fields["branch_fmt"] != BranchFmt.ADDR
        branch = goal.address is None or walker.is_branch(goal.address)
        walker.predict(walk, tables, count - (branch and not failed), before)
        if walk.fault:
            return Arrival.FAULT, None
        arrival = self._reach(walker, walk, goal)
        if arrival is Arrival.FAULT or not branch:
            return arrival, None
        return arrival, tables.predicts(walk.behind) != failed

    def _reach(self, walker: Walker, walk: Walk, goal: Goal) -> Arrival:
        if goal.returns is not None and not goal.counted and walker.is_ambiguous(walk, goal):
            walk.fault = (
                f"irdepth {goal.returns} fits more than one return: implicit return as in 2.0 is ambiguous here"
                " (irets of its extension is not)"
            )
            return Arrival.FAULT
        return walker.reach(walk, goal)

    # Where there is no code

    def _adrift(self, place: Place, packet: Packet, walk: Walk) -> Result:
        """There is no code to follow: what ran is known again from the next address on."""
        modes = place.setup.modes
        if modes.implicit_return or modes.branch_prediction or modes.jump_target_cache:
            return self._mismatch(place, packet, walk, walk.fault)  # calls, branches and jumps in it were not seen
        report = self._contradiction(place, packet, walk.place, walk.fault)
        result = self._regain(place, packet, (report,))
        return Result(result.step._replace(path=walk.path))

    def _regain(self, place: Place, packet: Packet, reports: tuple[Report, ...]) -> Result:
        """On at the packet's address, if there is code."""
        fields = packet.fields
        if "address" not in fields:
            return Result(Step(None, self._state(place._replace(mode=Mode.ADRIFT)), reports))
        base = 0 if place.setup.modes.full_address else place.reference
        address = base + fields["address"] & self._mask
        walker = self._walker(place)
        if walker.is_unknown(address):
            following = place._replace(mode=Mode.ADRIFT, reference=address, inferred=None)
            return Result(Step(None, self._state(following), reports))
        count = fields.get("branches", 0)
        outcome = not fields["branch_map"] >> count - 1 & 1 if count and walker.is_branch(address) else None
        walk = walker.start(NOWHERE, address, None)
        walker.stand_at(walk, address, outcome)
        following = place._replace(mode=Mode.ON, at=walk.at, behind=address, reference=address, inferred=None)
        resumed = Report(EventKind.SYNC, "an address in code that is there", next_pc=address, resumed=address)
        return Result(Step(None, self._state(following), (*reports, resumed), _landing(address)))

    # Format 3

    def _start(self, place: Place, packet: Packet, stack: Stack, tables: Tables) -> Result:
        """Subformat 0: start of tracing, or resynchronization."""
        address = packet.fields["address"] & self._mask
        context = self._context(place, packet)
        if place.mode is not Mode.ON:
            return Result(self._resume(place, packet, address, context))
        walker = self._walker(place)
        walk = self._before_start(place, walker, address, stack)
        same = place.context.prv is None or context.prv == place.context.prv
        repeats = address == place.behind
        arrival = Arrival.FAULT
        if not (repeats and self._options.dialect is Dialect.PULP):
            arrival = walker.reach(walk, Goal(address, inferable=same))
            if arrival is Arrival.FAULT and not same:
                walk = self._before_start(place, walker, address, stack)
                arrival = walker.reach(walk, Goal(address))
        if arrival is Arrival.FAULT and repeats:
            walk = walker.start(place.at, place.behind, stack)
            walk.parts = []
        elif arrival is Arrival.FAULT:
            report = self._contradiction(place, packet, walk.place, walk.fault)
            resumed = self._resume(place._replace(mode=Mode.LOST), packet, address, context)
            reports = (report, *(one for one in resumed.reports))
            return Result(resumed._replace(path=walk.path, reports=reports), not walk.calls.overflowed)
        known = walk.at if arrival is Arrival.INFERRED else NOWHERE
        targets = (address,) if arrival is Arrival.JUMPED else ()
        result = self._synchronized(place, packet, walk, address, context, known)
        effect = result.step.tables
        if place.setup.modes.resync_disabled and effect is not None:
            result = result._replace(step=result.step._replace(tables=effect._replace(targets=targets)))
        return result

    def _before_start(self, place: Place, walker: Walker, address: int, stack: Stack) -> Walk:
        """The walk up to a synchronization. An address that was reported because of it is one step before it.

        Where the last address is not, it was the target of a jump there: as in `_continued`.
        """
        if place.at in (NOWHERE, address):
            place = place._replace(inferred=None)
        return self._continued(place, walker, stack)[0]

    def _synchronized(
        self, place: Place, packet: Packet, walk: Walk, address: int, context: Context, known: int
    ) -> Result:
        """After a walk that came to the address of a synchronization. *known*: what is next, if the walk told."""
        keeps = place.setup.modes.resync_disabled
        settled, following, effect = self._settle(place, packet, address, context, keeps=keeps)
        if known != NOWHERE and following.place.at == NOWHERE and not self._walker(place).is_branch(address):
            following = self._state(following.place._replace(at=known))
        reports = self._context_reports(place, context)
        landing = None
        if (reports or "time" in packet.fields) and walk.parts and len(walk.parts[-1]):
            last = walk.parts[-1]
            assert isinstance(last, tuple)
            walk.parts[-1] = last[:-1]
            landing = _landing(address)
        calls = walk.calls.effect() if keeps else walk.calls.effect(clears=True, left=tuple(settled.calls.left))
        step = Step(walk.path, following, reports, landing, calls, effect, True)
        return Result(step, not (walk.calls.overflowed or keeps))

    def _settle(
        self, place: Place, packet: Packet, address: int, context: Context, *, keeps: bool
    ) -> tuple[Walk, State, Effect | None]:
        """Behind the instruction a synchronizing packet reports. *keeps*: predictor and cache are not reset."""
        place = place._replace(context=context)
        walker = self._walker(place)
        walk = walker.start(NOWHERE, address, None)
        walker.stand_at(walk, address, not packet.fields["branch"] if walker.is_branch(address) else None)
        following = place._replace(
            mode=Mode.ON, at=walk.at, behind=address, reference=address, inferred=None, trap=None
        )
        effect = None
        modes = place.setup.modes
        if modes.branch_prediction or modes.jump_target_cache:
            effect = Effect(Tables(place.setup.parameters).training(walk.outcomes), (), not keeps)
        return walk, self._state(following), effect

    def _resume(self, place: Place, packet: Packet, address: int, context: Context) -> Step:
        """Decoding starts at the address of a synchronizing packet."""
        goes_on = place.mode is Mode.TRAPPED and place.setup.modes.resync_disabled
        walk, following, effect = self._settle(place, packet, address, context, keeps=goes_on)
        if place.mode is Mode.TRAPPED:
            reports = self._held_trap(place, address)
        elif place.mode is Mode.OFF:
            elsewhere = place.at not in (NOWHERE, address)
            reports = (
                Report(EventKind.TRACE_ON, "tracing starts", next_pc=address, elsewhere=elsewhere, resumed=address),
            )
        else:
            reports = (Report(EventKind.SYNC, "synchronization", next_pc=address, resumed=address),)
        reports += self._context_reports(place, context)
        calls = CallEffect((), tuple(walk.calls.left), not goes_on)
        return Step(None, following, reports, _landing(address), calls, effect, True)

    def _trap(self, place: Place, packet: Packet, stack: Stack, tables: Tables) -> Result:
        """Subformat 1: an exception or interrupt."""
        fields = packet.fields
        interrupt = bool(fields["interrupt"])
        text = trap_text(fields["ecause"], interrupt) + (f", tval 0x{fields['tval']:x}" if fields.get("tval") else "")
        told = fields["address"] & self._mask if "address" in fields else NOWHERE
        epc = self._epc(place, fields["thaddr"], told, stack)
        if not fields["thaddr"]:
            seen = TrapSeen(text, epc, told)
            following = place._replace(mode=Mode.TRAPPED, at=NOWHERE, behind=NOWHERE, inferred=None, trap=seen)
            reports = self._held_trap(place, None)
            step = Step(None, self._state(following), reports, calls=self._trap_calls(place, stack))
            return Result(step, step.calls is None)
        handler = told
        if handler == NOWHERE:
            known = self._options.trap_handlers.of(fields["ecause"], interrupt)
            if known is None:
                trap = Report(EventKind.TRAP, text, last_pc=None if epc < 0 else epc)
                why = "the trap handler's address is not in the trace (implicit exception): say where it is"
                lost = Report(EventKind.LOSS, why, lost=True)
                reports = (*self._held_trap(place, None), trap, lost)
                return Result(Step(None, self._lost(place), reports, calls=_FORGET))
            handler = known & self._mask
        context = self._context(place, packet)
        starts = place.mode in (Mode.LOST, Mode.OFF, Mode.ADRIFT)
        keeps = place.setup.modes.resync_disabled and not starts
        walk, state, effect = self._settle(place, packet, handler, context, keeps=keeps)
        resumed = handler if starts else None
        trap = Report(EventKind.TRAP, text, None if epc < 0 else epc, handler, resumed=resumed)
        reports = (*self._held_trap(place, None), trap, *self._context_reports(place, context))
        calls = CallEffect((), tuple(walk.calls.left), True)
        if keeps:
            kept = self._trap_calls(place, stack) or CallEffect((), ())
            calls = kept._replace(left=(*kept.left, *walk.calls.left))
        return Result(Step(None, state, reports, _landing(handler), calls, effect, True), not keeps)

    def _epc(self, place: Place, thaddr: int, told: int, stack: Stack) -> int:
        """Where a trap hit, NOWHERE when it is not known. *told*: the packet's address."""
        if place.mode is Mode.TRAPPED and place.trap is not None:
            # The second trap hit the first one's handler. 2.0 calls that packet's address undefined, 2.0.5 takes it.
            extended = place.setup.parameters.iret_ext or self._options.support is SupportLayout.STANDARD
            other = place.trap.address != place.trap.epc
            return place.trap.address if extended and other else NOWHERE
        if place.mode is not Mode.ON:
            return NOWHERE if thaddr else told  # "exception on the 1st traced instruction" (2.0.5)
        if place.at != NOWHERE:
            return place.at
        walker = self._walker(place)
        if walker.raises(place.behind):
            return place.behind
        if not walker.is_uninferable(place.behind):
            return NOWHERE
        if not thaddr:
            return told
        implicit = place.setup.modes.implicit_return and walker.is_return(place.behind)
        return stack[0] if implicit and stack is not None else NOWHERE

    def _trap_calls(self, place: Place, stack: Stack) -> CallEffect | None:
        """What a trap right behind a call or return does to the call stack, if it outlives synchronization.

        The instruction retired, so the encoder has counted it; where it leads to was not walked any more.
        """
        if not place.setup.modes.resync_disabled or place.mode is not Mode.ON or place.at != NOWHERE:
            return None
        walk = self._walker(place).start(NOWHERE, place.behind, stack)
        self._walker(place).leave(walk)
        return walk.calls.effect()

    def _context_change(self, place: Place, packet: Packet, stack: Stack, tables: Tables) -> Result:
        """Subformat 2: the context has changed, somewhere near here. The flow goes on."""
        context = self._context(place, packet)
        return Result(Step(None, self._state(place._replace(context=context)), self._context_reports(place, context)))

    def _support(self, place: Place, packet: Packet, stack: Stack, tables: Tables) -> Result:
        """Subformat 3: how the encoder is set up, and why tracing stopped."""
        fields = packet.fields
        place = self._set_up(place, packet)
        qual_status = fields.get("qual_status", QualStatus.NO_CHANGE)
        if qual_status == QualStatus.TRACE_LOST:
            return Result(self.loss(self._state(place), EventKind.OVERFLOW, "the encoder lost packets"))
        if qual_status == QualStatus.NO_CHANGE and fields.get("ienable", 1):
            mode = Mode.OFF if place.mode is Mode.LOST else place.mode
            return Result(Step(None, self._state(place._replace(mode=mode))))
        walk = Walk(NOWHERE, NOWHERE, self._walker(place).start(NOWHERE, NOWHERE, stack).calls)
        at = place.at if place.mode in (Mode.ON, Mode.OFF) else NOWHERE
        if place.mode is Mode.ON and place.inferred is not None and qual_status == QualStatus.ENDED_NTR:
            walk, _ = self._continued(place, self._walker(place), stack)
            at = walk.at
        reports = self._held_trap(place, None)
        if place.mode is not Mode.OFF:
            reports += (Report(EventKind.TRACE_OFF, "tracing stops"),)
        following = place._replace(mode=Mode.OFF, at=at, behind=NOWHERE, inferred=None, trap=None)
        calls = walk.calls.effect(clears=True)
        return Result(Step(walk.path, self._state(following), reports, calls=calls), not walk.calls.overflowed)

    def _set_up(self, place: Place, packet: Packet) -> Place:
        """The place with what a support packet says of the encoder."""
        if self._options.pinned:
            return place
        parameters, modes = support.apply(packet, self._options)
        return place._replace(setup=Setup(parameters, modes))

    # What they have in common

    def _context(self, place: Place, packet: Packet) -> Context:
        """Privilege and context as a format 3 packet has them."""
        prv, virtual = _PRIVILEGES.get(packet.fields.get("privilege", -1), (None, False))
        if place.setup.parameters.privilege_width == 1 and prv == 1:
            prv = 3  # one bit tells machine mode from user mode
        scontext = packet.fields.get("context") if place.setup.parameters.context_width else None
        return Context(prv, virtual, scontext)

    def _context_reports(self, place: Place, context: Context) -> tuple[Report, ...]:
        return () if context == place.context else (Report(EventKind.CONTEXT, str(context), context=context),)

    def _held_trap(self, place: Place, handler: int | None) -> tuple[Report, ...]:
        """The trap whose handler was not reported with it."""
        if place.trap is None:
            return ()
        return (Report(EventKind.TRAP, place.trap.text, None if place.trap.epc < 0 else place.trap.epc, handler),)

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


def _landing(address: int) -> Path:
    return Path(((address,),))


_FORGET = CallEffect((), (), True)

_Handler = Callable[[Automaton, Place, Packet, Stack, Tables], Result]
_SYNCS: dict[Sync, _Handler] = {
    Sync.START: Automaton._start,
    Sync.TRAP: Automaton._trap,
    Sync.CONTEXT: Automaton._context_change,
    Sync.SUPPORT: Automaton._support,
}
