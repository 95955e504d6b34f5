"""Lets the model execute many groups at once.

The model gets the expected steps in advance, and stops at the first other one. That is only for groups before which the
verifier has nothing to do, and whose expected step is not a divergence: everything that such a group reports is
compared with the expected step before the model executes it. While the model executes a batch, the next one is made, as
far as its groups are plain (`PlainSteps`) and nothing has to be asked of the model for it.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from rvtrace_gdb.decode.program import csrs
from rvtrace_gdb.decode.semantics.addressed import Addressed, addressed
from rvtrace_gdb.decode.tandem.decoder import DecodedTandem
from rvtrace_gdb.decode.tandem.effects import NOWHERE
from rvtrace_gdb.decode.tandem.protocol import FPR_END, GPR
from rvtrace_gdb.session.verify.compare import GroupComparison, GroupState, is_load
from rvtrace_gdb.session.verify.masks import inputs
from rvtrace_gdb.session.verify.model import ExpectedStep, Model, ModelState, ModelStep, PipelinedModel, QueuedModel
from rvtrace_gdb.session.verify.nondeterminism import ModelInputs
from rvtrace_gdb.session.verify.plain_steps import PlainSteps

_SYSTEM, _AMO = 0x73, 0x2F
_MOST = 1 << 8  # steps at once
_REMEMBERED = 1 << 14


class _StepAccess(NamedTuple):
    """The memory access of an instruction; *place* None: it does not load or store."""

    place: Addressed | None
    loads: bool


class _Batch:
    """Groups from *group* on, and the expected step of each; the hart begins at *pc* and ends there, as far as they
    are. *written*: what the registers hold after them. *kept*: how many CSRs a group reports, if any.
    """

    __slots__ = ("expected", "group", "kept", "pc", "written")

    def __init__(self, group: int, pc: int) -> None:
        self.group, self.pc = group, pc
        self.expected: list[ExpectedStep] = []
        self.written: dict[int, int] = {}
        self.kept: dict[int, int] = {}

    @property
    def end(self) -> int:
        """The group after them."""
        return self.group + len(self.expected)


class Agreed(NamedTuple):
    """How many groups were as reported, and the registers that they wrote; also those that groups before them did."""

    groups: int
    registers: Mapping[int, int]


_NONE = Agreed(0, {})


class BatchExecution:
    """Executes many steps at once, if the *model* supports it (`PipelinedModel`).

    step   the model's step in the group after those that `run` returned, if it differs from the expected one
    """

    def __init__(
        self, tandem: DecodedTandem, model: Model, cache: ModelState, comparison: GroupComparison, inputs: ModelInputs
    ) -> None:
        self._tandem, self._index, self._cache = tandem, tandem.index, cache
        self._comparison, self._inputs = comparison, inputs
        self._model = model if isinstance(model, PipelinedModel) else None
        self._queue = model if isinstance(model, QueuedModel) else None
        parameters = tandem.trace.parameters
        self._xlen, self._pc_register = parameters.xlen, parameters.dialect.pc_register
        self._mask = (1 << parameters.xlen) - 1
        self._apart = {trapped.group for trapped in self._index.traps} | {gap.group for gap in self._index.breaks}
        self._plain = PlainSteps(tandem, cache, inputs, self._apart)
        self._accesses: dict[int, _StepAccess] = {}
        self._states: dict[int, GroupState] = {}
        self._written: dict[int, int] = {}
        self._most = 1
        self._ahead: _Batch | None = None  # the model has it already
        self.step: ModelStep | None = None

    def group_state(self, group: int) -> GroupState:
        """Return what a group reports; computed once."""
        found = self._states.pop(group, None)
        return found or GroupState(group, self._tandem.trace.elements(group), self._tandem, self._pc_register)

    def run(self, group: int, limit: int, limit_ahead: Callable[[int], int]) -> Agreed:
        """Execute at most *limit* groups from *group* on; return how many the model executed exactly as reported.

        *limit_ahead*: the limit from a later group on; 0: something else is to be done before it
        """
        if self._model is None or self.step is not None:
            return _NONE
        batch, self._ahead = self._ahead, None
        if batch is None:
            batch = self._prepared(group, min(limit, self._most))
            if not batch.expected:
                return _NONE
            if self._queue is not None:
                self._queue.queue(batch.expected)
        if self._queue is None:
            agreed, self.step = self._model.run(batch.expected)
        else:
            following = self._queue_following(self._queue, batch, limit_ahead)
            agreed, self.step = self._queue.executed()
            if agreed == len(batch.expected):
                self._ahead = following
            elif following is not None:
                self._queue.executed()  # none of it
        return self._done(batch, agreed)

    def _queue_following(
        self, queue: QueuedModel, before: _Batch, limit: Callable[[int], int]
    ) -> _Batch | None:
        """Queue what follows a batch, which the model is executing; return it, None: there is nothing."""
        most = min(limit(before.end), 2 * self._most, _MOST)
        following = _Batch(before.end, before.pc)
        if most <= 0:
            return None
        following.written = before.written.copy()
        end = following.group + most
        following.pc = self._plain.extend(
            following.expected, following.group, end, following.pc, following.written, ask=False
        )
        if not following.expected:
            return None
        queue.queue(following.expected)
        return following

    def _done(self, batch: _Batch, agreed: int) -> Agreed:
        """Note what the model has executed of a batch."""
        done, written = batch.expected, batch.written
        if agreed == len(done):
            self._most = min(2 * self._most, _MOST)
        else:
            self._most = max(agreed, 1)
            done, written = done[:agreed], {}
            for step in done:
                written.update(step.registers)
        self._cache.values.update(written)
        if done:
            self._cache.pc = done[-1].next_pc
            kept = sum(count for group, count in batch.kept.items() if group < batch.group + agreed)
            self._comparison.agreed(done, kept)
        return Agreed(agreed, written)

    def _prepared(self, group: int, limit: int) -> _Batch:
        """Return a batch of the next groups, up to one whose step cannot be predicted."""
        batch = _Batch(group, self._cache.pc)
        self._written = batch.written
        self._states = {later: state for later, state in self._states.items() if later >= group}
        if not self._add(batch) or self._is_asked():
            del batch.expected[:]
            return batch
        while len(batch.expected) < limit:
            end = group + limit
            batch.pc = self._plain.extend(batch.expected, batch.end, end, batch.pc, batch.written)
            if batch.end == end or not self._add(batch):
                break
        return batch

    def _add(self, batch: _Batch) -> bool:
        """Add the next group to a batch, whatever it has; return whether its step can be predicted."""
        number = batch.end
        self._plain.extend(batch.expected, number, number + 1, batch.pc, batch.written)
        if batch.end == number:
            reported = self.group_state(number)
            found = self._expected(reported, batch.pc)
            self._states[number] = reported
            if found is None:
                return False
            batch.expected.append(found)
            batch.written.update(found.registers)
            kept = len(reported.registers) - len(found.registers)
            if kept:
                batch.kept[number] = kept
        batch.pc = batch.expected[-1].next_pc
        return True

    def _is_asked(self) -> bool:
        """Return whether an interrupt is pending, so that mip must be changed for each step."""
        self._cache.settle()
        mip = self._cache.get(csrs.MIP)
        return bool(mip and mip & (self._cache.get(csrs.MIE) or 0))

    def _expected(self, reported: GroupState, pc: int) -> ExpectedStep | None:
        """Return the model's step if it does what the group reports; None: it cannot be predicted, or needs input."""
        instr, next_pc = reported.instr, self._index.pcs[reported.group]
        if instr is None or next_pc == NOWHERE or reported.group in self._apart:
            return None
        if reported.reset or reported.initializes:
            return None
        if self._index.origin(reported.group) not in (pc, NOWHERE):
            return None
        word = instr.word if instr.word & 3 == 3 else instr.word & 0xFFFF
        if word & 0x7F in (_SYSTEM, _AMO) or (instr.length == 2) != (word & 3 != 3):
            return None
        registers: dict[int, int] = {}
        for regno, value in reported.registers.items():
            if value is not None and GPR < regno < FPR_END:
                registers[regno] = value
            elif not self._is_kept(reported, regno, value):
                return None
        place, loads = self._instruction_access(word)
        if place is None:
            plain = reported.effective is None and not reported.stores and not self._inputs.why_not(reported, pc)
            return ExpectedStep(pc, word, next_pc, registers) if plain else None
        return self._with_access(reported, place, ExpectedStep(pc, word, next_pc, registers), loads=loads)

    def _is_kept(self, reported: GroupState, regno: int, value: int | None) -> bool:
        """Return whether a CSR is reported with the value it has in the model, e.g. mstatus with each floating-point
        load.
        """
        if regno >= GPR or value is None or inputs(regno) or self._cache.part(regno) is not None:
            return False
        return self._cache.values.get(regno) == value and self._comparison.mode_written(reported.group) is None

    def _with_access(
        self, reported: GroupState, place: Addressed, step: ExpectedStep, *, loads: bool
    ) -> ExpectedStep | None:
        """Return *step* with its load or store."""
        base = 0 if place.base == GPR else self._written.get(place.base, self._cache.values.get(place.base))
        if base is None or loads != (place.data < 0) or self._inputs.why_not(reported, step.pc):
            return None
        address = base + place.offset & self._mask
        if reported.effective not in (None, address):
            return None
        if loads:
            fed = reported.stores or (reported.effective is not None and self._inputs.filling(reported) is not None)
            return None if fed else step._replace(load=address)
        stores = [store for _, store in self._tandem.stored(reported.group)] if reported.stores else []
        if len(stores) != 1 or stores[0].value is None or stores[0].address != address:
            return None
        return step._replace(store=(address, stores[0].size, stores[0].value))

    def _instruction_access(self, word: int) -> _StepAccess:
        found = self._accesses.get(word)
        if found is None:
            if len(self._accesses) == _REMEMBERED:
                self._accesses.clear()
            found = self._accesses[word] = _StepAccess(addressed(word, self._xlen), is_load(word, self._xlen))
        return found
