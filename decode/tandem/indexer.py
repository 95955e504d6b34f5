"""Fills the index of a trace in one pass over its groups, plain ones with the kernel."""

from collections.abc import Container, Sequence
from functools import partial

from rvtrace_gdb.decode.computed import Computed
from rvtrace_gdb.decode.history.events import Loss, LossCause, Note, Stop, StopReason
from rvtrace_gdb.decode.kernel.loading import kernel
from rvtrace_gdb.decode.program import csrs
from rvtrace_gdb.decode.tandem.compiled_indexing import CompiledIndexing
from rvtrace_gdb.decode.tandem.effects import (
    NOWHERE,
    GroupEffects,
    Steps,
    StoreEffect,
    atomic_store,
    bus_stores,
    impossible,
    is_atomic,
    stored_size,
)
from rvtrace_gdb.decode.tandem.group_grammar import FULL, UnpackPlan, plan_of
from rvtrace_gdb.decode.tandem.index import Break, Index
from rvtrace_gdb.decode.tandem.memory import MemoryWrites
from rvtrace_gdb.decode.tandem.protocol import FPR, FPR_END, GPR, MemoryRequest, StateId
from rvtrace_gdb.decode.tandem.registers import PHYSICAL, UNKNOWN, Columns, space_of
from rvtrace_gdb.decode.tandem.trace import TraceGroups
from rvtrace_gdb.support.errors import Progress, silent

_NEVER: tuple[int, Container[int], int] = (-1, (), 0)
_PIECE = 1 << 16  # groups between two reports of progress
_MACHINE = 3
_MAY_MOVE = frozenset({csrs.SATP, csrs.MSTATUS, csrs.SSTATUS, csrs.PRIVILEGE})
"""The registers that determine the address space of loads and stores."""
_UNKNOWN_VALUE = -1
_NOT_A_NUMBER = 0xFFE0  # the bits of a register address that say it is an integer register
_SPECIAL, _STATUS, _FLOATING = 1, 2, 4
"""Kinds of registers: those whose value affects others, mstatus, and those that make it dirty."""


def index_of(trace: TraceGroups, progress: Progress = silent) -> Index:
    """Return what the groups of a whole trace did. Raises only what *progress* raises."""
    index = Index(trace)
    indexer = Indexer(index)
    for start in range(0, len(trace), _PIECE):
        progress("sorting (groups)", start, len(trace))
        indexer.run(start, min(start + _PIECE, len(trace)))
    indexer.finish()
    return index


def _kinds(pc_register: int) -> bytearray:
    """Return the kinds of all registers, by number."""
    kinds = bytearray(0x10000)
    kinds[FPR:FPR_END] = bytes([_FLOATING]) * (FPR_END - FPR)
    for regno in csrs.FLOATING:
        kinds[regno] = _FLOATING
    for regno in csrs.STATUS:
        kinds[regno] = _STATUS
    for regno in (GPR, csrs.SATP, *csrs.TRAP_OF_CAUSE, *([pc_register] if pc_register >= 0 else [])):
        kinds[regno] = _SPECIAL
    return kinds


class Indexer:
    """Fills an index, group by group, in order."""

    def __init__(self, index: Index) -> None:
        self._index, self._trace = index, index.trace
        parameters = index.trace.parameters
        self._xlen, self._mask = parameters.xlen, (1 << parameters.xlen) - 1
        self._dialect = parameters.dialect
        self._kinds = _kinds(parameters.dialect.pc_register)
        self._mprv = False  # mstatus has it, or may have
        self._steps = Steps(parameters.xlen)
        self._plain_steps = Steps(parameters.xlen, without=csrs.XRETS)
        self._stored_sizes = Computed(partial(stored_size, xlen=parameters.xlen))
        self._plans: list[UnpackPlan | None] = []
        self._compiled: CompiledIndexing | None = None
        if kernel() is not None and not self._dialect.partial:
            self._compiled = CompiledIndexing(parameters, self._kinds, self._plain_steps, self._stored_sizes)
        self._pc = NOWHERE
        self._unknown = UNKNOWN if parameters.supervisor else PHYSICAL
        self._begin_unknown()

    def _begin_unknown(self) -> None:
        """Start with nothing known of memory, and these losses to come."""
        self._index.spaces[0] = (-1, self._unknown)
        self._stores = self._in(self._unknown)
        self._losses = iter(self._trace.losses)
        self._loss = next(self._losses, None)

    @property
    def state(self) -> tuple[int, bool]:
        """Return what is known before the next group, besides registers."""
        return self._pc, self._mprv

    def renew(self, index: Index, state: tuple[int, bool]) -> None:
        """Continue with another index of the same trace, which has what is known of registers."""
        self._pc, self._mprv = state
        if index.pcs:
            index.pcs[-1] = self._pc
        self._index = index
        self._begin_unknown()

    def run(self, start: int, stop: int) -> None:
        """Process groups *start* to *stop* - 1."""
        while start < stop:
            while self._loss is not None and self._loss.group == start:
                self._break(start, self._loss.cause, self._loss.offset, loss=True)
                self._loss = next(self._losses, None)
            end = stop if self._loss is None else min(stop, self._loss.group)
            if self._compiled is None:
                self._index_groups(start, end)
            else:
                self._index_compiled(self._compiled, start, end)
            start = end

    def finish(self) -> None:
        """Process what is lost at the end."""
        for loss in filter(None, (self._loss, *self._losses)):
            self._break(loss.group, loss.cause, loss.offset, loss=True)

    def _index_compiled(self, compiled: CompiledIndexing, start: int, stop: int) -> None:
        """Process the same groups as `_index_groups`, plain ones with the kernel."""
        physical = self._in(PHYSICAL)
        while start < stop:
            stores = self._stores, physical
            start, self._pc = compiled.run(self._index, stores, start, stop, self._pc, mprv=self._mprv)
            if start < stop:
                self._index_groups(start, start + 1)
                start += 1

    def _index_groups(self, start: int, stop: int) -> None:
        """Process groups between which nothing is lost. Plain ones are processed here, others in `_general`."""
        # One long function, with locals, because this is done for each group where there is no kernel.
        trace, index, steps, mask = self._trace, self._index, self._plain_steps, self._mask
        data, columns, dialect, stored_sizes = trace.data, index.registers.columns, self._dialect, self._stored_sizes
        add_pc, add_retired = index.pcs.append, index.retired.append
        automaton, plans, kinds, dirty = trace.automaton, self._plans, self._kinds, index.registers.dirty
        plans += map(plan_of, automaton.shapes[len(plans) :])
        in_physical = self._in(PHYSICAL)
        untraced_below, is_partial = dialect.untraced_below, dialect.partial
        code, latest = index.code, index.code.plain.get
        pc = self._pc
        group = start - 1
        for offset, shape in zip(trace.offsets[start:stop], trace.shapes[start:stop], strict=True):
            group += 1
            plan = plans[shape]
            if plan is None or pc == NOWHERE or pc < untraced_below or is_partial:
                pc = self._general(group, pc)
                continue
            values = plan.unpack(data, offset)
            word = values[plan.word]
            next_pc = values[plan.pc] if plan.pc_kind == FULL else pc + plan.length & mask
            known = latest(pc, _NEVER)
            _, leads, stored = known if known[0] == word else (word, steps[word], stored_sizes[word])
            is_odd = stored if plan.data < 0 else plan.both and self._stores is not in_physical
            if is_odd or next_pc - pc & mask not in leads:
                pc = self._general(group, pc)
                continue
            rd = None
            registers = plan.registers
            if registers:
                kind = 0
                for regno_at, _ in registers:
                    kind |= kinds[values[regno_at]]
                if kind & (_SPECIAL | _STATUS) and (kind & _SPECIAL or self._may_move(values, registers)):
                    pc = self._general(group, pc)
                    continue
                if kind & _FLOATING and not kind & _STATUS:
                    dirty.append(group)
                rd = _add_values(group, values, registers, columns)
            if plan.data >= 0:
                stored_value = StoreEffect(values[plan.address], plan.size, values[plan.data], plan.physical)
                self._store(group, stored_value, word, rd)
            if known[0] != word:
                code.plain[pc] = word, leads, stored
                code.ran(pc, word)
            add_pc(next_pc)
            add_retired(1)
            pc = next_pc
        self._pc = pc

    def _may_move(self, values: Sequence[int], registers: tuple[tuple[int, int], ...]) -> bool:
        """Return whether a new mstatus may change the address space of loads and stores: with MPRV in it, or before."""
        kinds = self._kinds
        return self._mprv or any(values[at] & csrs.MPRV for regno, at in registers if kinds[values[regno]] & _STATUS)

    def _general(self, group: int, pc: int) -> int:
        """Process any group; *pc* is the one before it. Returns the pc after it."""
        index, trace = self._index, self._trace
        loose = trace.shape(group).loose
        seen = GroupEffects(group, trace.elements(group), trace.parameters, index.registers, loose=loose)
        noise = impossible(seen)
        if noise:
            return self._noise(group, noise)
        if seen.is_reset:
            self._index_reset(group)
            pc = NOWHERE
        if seen.initializes:
            index.initializations.append(group)
            if self._dialect.partial:
                index.registers.forget(group)
                index.memory_forgotten.append(group)
        origin = self._origin(seen, pc)
        if origin != (index.pcs[-1] if index.pcs else NOWHERE):
            index.origins[group] = origin
        self._index_stores(seen)
        written = seen.registers()
        for regno, value in written.items():
            index.registers.add(group, regno, value)
        if seen.dirties(written):
            index.registers.dirty.append(group)
        next_pc = self._next_pc(seen, origin)
        if seen.trap is not None:
            index.traps.append(seen.trap._replace(handler=None if next_pc == NOWHERE else next_pc))
        index.pcs.append(next_pc)
        index.retired.append(seen.retires)
        if seen.instr is not None and seen.retires and origin != NOWHERE:
            index.code.ran(origin, seen.instr.word)
        if written.keys() & _MAY_MOVE or seen.is_reset:
            self._move(group)
        return next_pc

    def _noise(self, group: int, what: str) -> int:
        """Ignore a group that reports something impossible."""
        index = self._index
        self._break(group, Loss(LossCause.IMPOSSIBLE, (what,)), self._trace.offsets[group], loss=False)
        index.origins[group] = NOWHERE
        index.pcs.append(NOWHERE)
        index.retired.append(0)
        return NOWHERE

    def _origin(self, seen: GroupEffects, pc: int) -> int:
        """Return where the hart was before the group. Notes a break if it cannot have been at *pc*."""
        instr, own = seen.instr, seen.own
        if instr is not None and instr.word in csrs.XRETS and self._dialect.xret_pc_is_own:
            own = seen.pc
        if seen.trap is not None and own is None:
            own = seen.trap.epc
        if own is None and instr is not None and seen.trap is None and seen.pc is not None:
            found = self._steps.origin(instr.word, seen.pc)
            if pc == NOWHERE or found == pc:
                return found
            if pc < self._dialect.untraced_below:
                self._miss(seen.group, pc, "")
                return found
            if seen.pc - pc & self._mask not in self._steps[instr.word]:
                self._miss(seen.group, pc, f"0x{seen.pc:x}, to which the instruction 0x{instr.word:x} cannot lead")
                return found
        if own is None:
            return pc
        if pc not in (NOWHERE, own) and not seen.initializes:
            self._miss(seen.group, pc, f"an instruction at 0x{own:x}")
        return own

    def _miss(self, group: int, pc: int, what: str) -> None:
        cause: Loss | Stop = Loss(LossCause.GROUPS_MISSING, (pc, what))
        if self._dialect.untraced_below:
            cause = Stop(StopReason.GROUPS_MISSING, detail=(pc, what))
        if pc < self._dialect.untraced_below:
            cause = Stop(StopReason.UNTRACED, detail=(self._dialect.untraced_below, pc))
        self._break(group, cause, self._trace.offsets[group], loss=False)

    def _next_pc(self, seen: GroupEffects, origin: int) -> int:
        """Return where the hart continues after the group."""
        instr = seen.instr
        if instr is not None and instr.word in csrs.XRETS and self._dialect.xret_pc_is_own and seen.trap is None:
            target = self._index.registers.value(csrs.XRETS[instr.word], seen.group)
            return NOWHERE if target is None else target
        if seen.pc is not None:
            return seen.pc
        if seen.trap is not None or seen.is_reset:
            return NOWHERE
        if instr is None or origin == NOWHERE:
            return origin
        if seen.increments:
            return origin + instr.length & self._mask
        return self._steps.target(instr.word, origin)

    def _index_stores(self, seen: GroupEffects) -> None:
        """Record what the group stored."""
        word = 0 if seen.instr is None else seen.instr.word
        size = 0 if seen.instr is None else self._stored_sizes[word]
        if not seen.reports_memory and not size:
            return
        on_bus = list(bus_stores(seen.elements))
        for stored in on_bus:
            self._in(PHYSICAL).add(seen.group, stored.address, stored.size, stored.value)
        if seen.instr is not None and not seen.retires:
            return
        data = seen.data
        effective, physical = seen.states(StateId.EFFECTIVE_ADDRESS), seen.states(StateId.PHYSICAL_ADDRESS)
        if size and not data and not any(isinstance(element, MemoryRequest) for element in seen.elements):
            if not (effective or physical) or size < 0:
                self._index.memory_forgotten.append(seen.group)
            data = [(size, _UNKNOWN_VALUE)] if size > 0 else []
        own = self._stores
        if own is not self._in(PHYSICAL) or not physical:
            first = len(own)
            self._store_all(seen, effective, data, word, physical=False)
            if own is not self._in(PHYSICAL) and (physical or on_bus):
                own.placed.update(range(first, len(own)))
        self._store_all(seen, physical, data, word, physical=True)

    def _store_all(
        self, seen: GroupEffects, addresses: list[int], data: list[tuple[int, int]], word: int, *, physical: bool
    ) -> None:
        for address, (length, value) in zip(addresses, data, strict=False):
            stored = StoreEffect(address, length, None if value == _UNKNOWN_VALUE else value, physical)
            self._store(seen.group, stored, word, seen.rd)

    def _store(self, group: int, stored: StoreEffect, word: int, rd: int | None) -> None:
        if is_atomic(word):
            found = atomic_store(word, stored, rd, self._dialect.amo_data)
            if found is None:
                return
            stored = found
        stores = self._in(PHYSICAL) if stored.physical else self._stores
        stores.add(group, stored.address, stored.size, stored.value)

    def _in(self, space: int) -> MemoryWrites:
        found = self._index.memory.get(space)
        if found is None:
            found = self._index.memory[space] = MemoryWrites()
        return found

    def _index_reset(self, group: int) -> None:
        self._index.resets.append(group)
        self._index.registers.forget(group)
        self._index.registers.add(group, csrs.PRIVILEGE, _MACHINE)

    def _break(self, group: int, cause: Loss | Stop | Note, offset: int, *, loss: bool) -> None:
        self._index.breaks.append(Break(group, offset, cause, loss))
        self._index.registers.forget(group)
        self._index.memory_forgotten.append(group)
        self._index.spaces.append((group - 1, self._unknown))
        self._stores = self._in(self._unknown)
        self._pc = NOWHERE

    def _move(self, group: int) -> None:
        """Note that loads and stores may be in another address space from here on."""
        index = self._index
        if not self._trace.parameters.supervisor:
            return
        status = index.registers.value(csrs.MSTATUS, group)
        self._mprv = status is None or bool(status & csrs.MPRV)
        last_break = index.breaks[-1].group if index.breaks else 0
        since_reset = bool(index.resets) and index.resets[-1] >= last_break
        space = space_of(index.registers, group, self._xlen, since_reset=since_reset)
        if space != index.spaces[-1][1]:
            index.spaces.append((group, space))
            self._stores = self._in(space)


def _add_values(
    group: int, values: Sequence[int], registers: tuple[tuple[int, int], ...], columns: Columns
) -> int | None:
    """Add what a plain group wrote to the columns of its registers, and return the value of an integer register.

    *registers*: where *values* has the number and the value of each.
    """
    rd = None
    for regno_at, value_at in registers:
        regno, value = values[regno_at], values[value_at]
        column = columns[regno]
        column.groups.append(group)
        column.values.append(value)
        if regno & _NOT_A_NUMBER == GPR:
            rd = value
    return rd
