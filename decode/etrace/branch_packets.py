"""The steps of packets of formats 0, 1 and 2: branches, and an address that the hart reached. Format 3 is in `step`.

Sources: Efficient Trace for RISC-V 2.0, "Decoder" and "Instruction Trace Encoder Output Packets"; for irets 2.0.5.
"""

from dataclasses import replace
from typing import NamedTuple

from rvtrace_gdb.decode.etrace.dialects import is_uncounted, possible_branch_counts
from rvtrace_gdb.decode.etrace.layout import BranchFmt, Ext, Packet, TeInstFormat
from rvtrace_gdb.decode.etrace.options import Setup
from rvtrace_gdb.decode.etrace.prediction_tables import NOT_CACHED, PredictionTables, TableEffect
from rvtrace_gdb.decode.etrace.state import (
    HartKnowledge,
    InferredAddress,
    Mode,
    Step,
    WalkArrival,
    WalkGoal,
    WalkProgress,
)
from rvtrace_gdb.decode.etrace.state_table import STOPPED, StateTable, StepResult, one_instruction, packet_name
from rvtrace_gdb.decode.etrace.walk import Walker
from rvtrace_gdb.decode.history.events import EventKind, Loss, LossCause, Note, NoteCause, Start, StartReason
from rvtrace_gdb.decode.program.instructions import IType
from rvtrace_gdb.decode.stepping.control_flow import NOWHERE, Stack
from rvtrace_gdb.decode.stepping.reports import Report

_FULL_MAP = 31
_UNNOTED_BITS = 22
"""Bits of a branch_count that says nothing unusual: as of N-Trace's I-CNT, which has to be reported then."""


class _CountTrial(NamedTuple):
    """A packet with one of its possible numbers of branches, and the result of its walk (see `_walk_map`)."""

    packet: Packet
    walk: WalkProgress
    arrival: WalkArrival
    outcome: bool | None


def _follows_xret(walker: Walker, walk: WalkProgress, last_pc: int) -> bool:
    """Whether a walk from *last_pc* ends with an xRET, which rv_tracer's updiscon does not report."""
    part = walk.parts[-2]
    jump = part[-1] if isinstance(part, tuple) and part else last_pc
    return walker.image.instruction(jump).itype is IType.TRAP_RETURN


def _large_count(packet: Packet) -> tuple[Report, ...]:
    """Return the note on a packet if it alone stands for very many branches."""
    count = packet.fields.get("branch_count", 0)
    if not count >> _UNNOTED_BITS:
        return ()
    return (Report(EventKind.NOTE, Note(NoteCause.LARGE_COUNT, (packet_name(packet), count + _FULL_MAP))),)


class BranchPackets:
    """The steps of packets of formats 0, 1 and 2."""

    def __init__(self, states: StateTable, xlen: int, count_bits: int) -> None:
        """*count_bits*: as `Options.branch_count_bits`."""
        self._states = states
        self._count_bits = count_bits
        self._mask = (1 << xlen) - 1

    def step(self, knowledge: HartKnowledge, packet: Packet, stack: Stack, tables: PredictionTables) -> StepResult:
        """Return the step of a packet. *knowledge*: what is known before it."""
        if knowledge.mode is Mode.ADRIFT:
            return self._resume_at_address(knowledge, packet, ())
        impossible = self._impossible(knowledge, packet)
        if impossible is not None:
            return StepResult(self._states.loss(self._states.state(knowledge), EventKind.LOSS, impossible))
        walker = self._states.walker(knowledge)
        walk, again = self.start_walk(knowledge, walker, stack)
        if walk.fault:
            return self._fault(knowledge, packet, walk)
        address = self._reported_address(knowledge, packet, tables, again)
        if address == NOT_CACHED:
            fault = f"jump target cache entry {packet.fields.get('index', 0)} is empty"
            return self._states.mismatch(knowledge, packet, walk, fault)
        goal = self._goal(knowledge.setup, packet, address)
        if is_uncounted(packet.fields):
            counted_packet = self._find_count(knowledge, packet, stack, goal)
            if isinstance(counted_packet, StepResult):
                return counted_packet
            packet = counted_packet
        before: dict[int, int] = {}
        arrival = self._walk(walker, walk, packet, goal, tables, before)
        training = tables.change(before) if "branch_count" in packet.fields else tables.training(walk.outcomes)
        if arrival is WalkArrival.FAULT:
            return self._fault(knowledge, packet, walk)
        following = self._states.state(self._knowledge_after(knowledge, packet, walk, goal, arrival))
        jumped = (*again, address) if arrival is WalkArrival.JUMPED and address is not None else again
        targets = tables.entries(jumped) if knowledge.setup.modes.jump_target_cache else ()
        effect = TableEffect(training, targets) if training or targets else None
        noted = _large_count(packet)
        step = Step(walk.path, following, noted, calls=walk.calls.effect(), tables=effect)
        if packet.fields.get("notify") and address is not None:
            report = Report(EventKind.SYNC, Start(StartReason.NOTIFICATION), next_pc=address)
            step = replace(step, path=walk.before_last(), reports=(*noted, report), landing=one_instruction(address))
        return StepResult(step, not walk.calls.overflowed, guard=tuple(before.items()))

    def _impossible(self, knowledge: HartKnowledge, packet: Packet) -> Loss | None:
        """Return why a packet of these formats is impossible now, whatever the program is, None if it is not."""
        if knowledge.mode is not Mode.ON:
            cause = LossCause.WHILE_OFF if knowledge.mode in STOPPED else LossCause.NO_HANDLER
            return Loss(cause, (packet_name(packet),))
        count = packet.fields.get("branch_count", 0)
        if count >> self._count_bits:
            return Loss(LossCause.BRANCH_COUNT_TOO_LARGE, (packet_name(packet), count.bit_length(), self._count_bits))
        return None

    def _walk(
        self,
        walker: Walker,
        walk: WalkProgress,
        packet: Packet,
        goal: WalkGoal,
        tables: PredictionTables,
        before: dict[int, int],
    ) -> WalkArrival:
        """Walk to the goal of a packet and past it.

        Predictions train *tables*, and *before* receives what the entries were.
        """
        counted = "branch_count" in packet.fields
        if counted:
            arrival, outcome = self._walk_predicted(walker, walk, packet, goal, tables, before)
        else:
            arrival, outcome = self._walk_map(walker, walk, packet, goal)
        if outcome is not None and arrival is not WalkArrival.FAULT:
            walker.retire_at(walk, walk.last_pc, outcome)
            if counted:
                tables.train(walk.last_pc, outcome, before)
        return arrival

    def _knowledge_after(
        self, knowledge: HartKnowledge, packet: Packet, walk: WalkProgress, goal: WalkGoal, arrival: WalkArrival
    ) -> HartKnowledge:
        """Return what is known after the *walk* of a packet to its *goal*."""
        inferred = None
        if arrival is WalkArrival.INFERRED and not packet.fields.get("notify") and goal.address is not None:
            is_branch = self._states.walker(knowledge).is_branch(walk.last_pc)
            inferred = None if is_branch else InferredAddress(goal.returns, walk.irets)
        reference = knowledge.reference if goal.address is None else goal.address
        return knowledge._replace(next_pc=walk.next_pc, last_pc=walk.last_pc, reference=reference, inferred=inferred)

    def start_walk(
        self, knowledge: HartKnowledge, walker: Walker, stack: Stack
    ) -> tuple[WalkProgress, tuple[int, ...]]:
        """Return the start of a packet's walk, and the jump targets on it.

        If the code led to the last address and the packet is not format 3, that address was the target of a jump and is
        reached a second time ("Format 2 notify and updiscon fields", case 1). The walk has a fault if the code that
        decides this is missing.
        """
        walk = walker.start(knowledge.next_pc, knowledge.last_pc, stack)
        if knowledge.inferred is None:
            return walk, ()
        walk.irets = knowledge.inferred.irets
        arrival = walker.reach(walk, WalkGoal(knowledge.last_pc, inferable=False, returns=knowledge.inferred.returns))
        if arrival is WalkArrival.FAULT and walk.missing:  # it is not known whether the code leads there again
            return walk, ()
        if arrival is WalkArrival.FAULT:  # it does not: the encoder had another reason to report the address
            return walker.start(knowledge.next_pc, knowledge.last_pc, stack), ()
        walk.irets = 0
        return walk, (knowledge.last_pc,) if arrival is WalkArrival.JUMPED else ()

    def _reported_address(
        self, knowledge: HartKnowledge, packet: Packet, tables: PredictionTables, again: tuple[int, ...]
    ) -> int | None:
        """Return the address that a packet reports: None for none, NOT_CACHED if the cache entry is empty."""
        fields = packet.fields
        if packet.format == TeInstFormat.OPT_EXT and packet.subformat == Ext.JUMP_TARGET:
            index = fields.get("index", 0)
            for target in again:
                if tables.jump_index(target) == index:
                    return target
            return tables.targets.get(index, NOT_CACHED)
        if "address" not in fields:
            return None
        return self._reported(knowledge, packet)

    def _reported(self, knowledge: HartKnowledge, packet: Packet) -> int:
        """Return the address in a packet, which may be relative to the one before it."""
        base = 0 if knowledge.setup.modes.full_address else knowledge.reference
        return base + packet.fields["address"] & self._mask

    def _goal(self, setup: Setup, packet: Packet, address: int | None) -> WalkGoal:
        fields = packet.fields
        returns = fields.get("irets", fields.get("irdepth")) if fields.get("irreport") else None
        counted = setup.parameters.iret_ext and setup.modes.implicit_return
        # irets is 0 only if the address is the target of an actual return.
        returned = counted and returns == 0
        return WalkGoal(address, not (fields.get("updiscon") or returned), returns, counted)

    def _walk_map(
        self, walker: Walker, walk: WalkProgress, packet: Packet, goal: WalkGoal
    ) -> tuple[WalkArrival, bool | None]:
        """Walk over the branches of branch_map, then up to the address. Also returns the outcome of a branch there."""
        bits, count = packet.fields.get("branch_map", 0), packet.fields.get("branches", 0)
        if "branches" in packet.fields and goal.address is None:
            count = _FULL_MAP
        last = count > 0 and (goal.address is None or walker.is_branch(goal.address))
        walker.spend(walk, bits, count - last)
        if walk.fault:
            return WalkArrival.FAULT, None
        outcome = not bits >> count - 1 & 1 if last else None
        return self._reach(walker, walk, goal), outcome

    def _find_count(
        self, knowledge: HartKnowledge, packet: Packet, stack: Stack, goal: WalkGoal
    ) -> Packet | StepResult:
        """Return the packet with its number of branches, which was not sent; a gap if several are possible."""
        walker = self._states.walker(knowledge)
        trials: list[_CountTrial] = []
        for count in possible_branch_counts(packet.fields):
            counted = packet._replace(fields={**packet.fields, "branches": count})
            walk, _ = self.start_walk(knowledge, walker, stack)
            arrival, outcome = self._walk_map(walker, walk, counted, goal)
            if arrival not in (WalkArrival.FAULT, WalkArrival.INFERRED) and not _follows_xret(
                walker, walk, knowledge.last_pc
            ):
                arrival, walk.fault = WalkArrival.FAULT, "the packet says that no jump led there (updiscon)"
            trials.append(_CountTrial(counted, walk, arrival, outcome))
        left = [trial for trial in trials if trial.arrival is not WalkArrival.FAULT or trial.walk.missing]
        if not left:
            first = trials[0]
            why = f"no number of branches from {first.packet.fields['branches']} to 30 leads to 0x{goal.address or 0:x}"
            return self._states.mismatch(knowledge, packet, first.walk, f"{why}: {first.walk.fault}")
        if len(left) == 1:
            return left[0].packet
        return (
            self._fault(knowledge, packet, left[0].walk)
            if left[0].walk.missing
            else self._ambiguous_count(knowledge, left, goal)
        )

    def _ambiguous_count(self, knowledge: HartKnowledge, trials: list[_CountTrial], goal: WalkGoal) -> StepResult:
        """Return the result if several numbers of branches lead to the address.

        The walk of the lowest number is certain, because it is part of all others, and so is the address. The outcome
        of a branch there is known if all agree.
        """
        address, lowest = goal.address or 0, trials[0]
        counts = (trial.packet.fields["branches"] for trial in trials)
        loss = Loss(LossCause.COUNT_UNKNOWN, (packet_name(lowest.packet), address, *counts))
        reports = (Report(EventKind.LOSS, loss, lost=True),)
        path, calls = lowest.walk.before_last(), lowest.walk.calls.effect(clears=True)
        cacheable = not lowest.walk.calls.overflowed
        if any(trial.outcome != lowest.outcome for trial in trials):
            return StepResult(Step(path, self._states.lost(knowledge), reports, calls=calls), cacheable)
        walk = self._states.walker(knowledge).start(NOWHERE, address, None)
        self._states.walker(knowledge).retire_at(walk, address, lowest.outcome)
        following = knowledge._replace(next_pc=walk.next_pc, last_pc=address, reference=address, inferred=None)
        resumed = Report(EventKind.SYNC, Start(StartReason.KNOWN_CODE), next_pc=address, resumed=address)
        return StepResult(
            Step(path, self._states.state(following), (*reports, resumed), one_instruction(address), calls), cacheable
        )

    def _walk_predicted(
        self,
        walker: Walker,
        walk: WalkProgress,
        packet: Packet,
        goal: WalkGoal,
        tables: PredictionTables,
        before: dict[int, int],
    ) -> tuple[WalkArrival, bool | None]:
        """Walk over branches that were predicted correctly, then up to the address or a mispredicted branch."""
        count = packet.fields["branch_count"] + _FULL_MAP
        failed = packet.fields["branch_fmt"] != BranchFmt.ADDR
        branch = goal.address is None or walker.is_branch(goal.address)
        walker.predict(walk, tables, count - (branch and not failed), before)
        if walk.fault:
            return WalkArrival.FAULT, None
        arrival = self._reach(walker, walk, goal)
        if arrival is WalkArrival.FAULT or not branch:
            return arrival, None
        return arrival, tables.predicts(walk.last_pc) != failed

    def _reach(self, walker: Walker, walk: WalkProgress, goal: WalkGoal) -> WalkArrival:
        if goal.returns is not None and not goal.counted and walker.is_ambiguous(walk, goal):
            walk.fault = (
                f"irdepth {goal.returns} fits more than one return: implicit return as in 2.0 is ambiguous here"
                " (irets of its extension is not)"
            )
            return WalkArrival.FAULT
        return walker.reach(walk, goal)

    # Contradictions and missing code

    def _fault(self, knowledge: HartKnowledge, packet: Packet, walk: WalkProgress) -> StepResult:
        """Return the result of a walk that has a fault. If it reached missing code, decoding resumes at the next
        address.
        """
        following = self._states.without_code(knowledge) if walk.missing else None
        if (
            following is None
            or following.knowledge.mode is Mode.LOST
            or self._states.walker(knowledge).image.knows(walk.place)
        ):
            return self._states.mismatch(knowledge, packet, walk, walk.fault)
        report = self._states.contradiction(knowledge, packet, walk.place, walk.fault)
        if report.kind is EventKind.MISMATCH:
            return StepResult(Step(walk.path, following, (report,)), retry=True, cacheable=False)
        result = self._resume_at_address(knowledge, packet, (report,))
        return StepResult(replace(result.step, path=walk.path))

    def _resume_at_address(self, knowledge: HartKnowledge, packet: Packet, reports: tuple[Report, ...]) -> StepResult:
        """Resume at the packet's address, if there is code."""
        fields = packet.fields
        if "address" not in fields:
            return StepResult(Step(None, self._states.state(knowledge._replace(mode=Mode.ADRIFT)), reports))
        address = self._reported(knowledge, packet)
        walker = self._states.walker(knowledge)
        if walker.is_unknown(address) or (is_uncounted(fields) and walker.is_branch(address)):
            following = knowledge._replace(mode=Mode.ADRIFT, reference=address, inferred=None)
            return StepResult(Step(None, self._states.state(following), reports))
        count = fields.get("branches", 0)
        outcome = not fields["branch_map"] >> count - 1 & 1 if count and walker.is_branch(address) else None
        walk = walker.start(NOWHERE, address, None)
        walker.retire_at(walk, address, outcome)
        following = knowledge._replace(
            mode=Mode.ON, next_pc=walk.next_pc, last_pc=address, reference=address, inferred=None
        )
        resumed = Report(EventKind.SYNC, Start(StartReason.KNOWN_CODE), next_pc=address, resumed=address)
        return StepResult(Step(None, self._states.state(following), (*reports, resumed), one_instruction(address)))
