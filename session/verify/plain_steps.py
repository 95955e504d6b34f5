"""The expected steps of plain groups, without a `GroupState` of each.

Most groups are an instruction, at most one register and at most one load or store. What such a group expects depends on
its instruction and on its shape but for numbers: that is found once for both (`_PlainKind`), and the numbers come from
the fields of the group. `BatchExecution` looks at all other groups one by one, and finds the same for plain ones.
"""

from bisect import bisect_right
from typing import NamedTuple

from rvtrace_gdb.decode.program import csrs
from rvtrace_gdb.decode.program.csrs import PRIVILEGE
from rvtrace_gdb.decode.program.instructions import reach
from rvtrace_gdb.decode.semantics.addressed import addressed
from rvtrace_gdb.decode.tandem.decoder import DecodedTandem
from rvtrace_gdb.decode.tandem.effects import NOWHERE
from rvtrace_gdb.decode.tandem.group_grammar import UnpackPlan, plan_of
from rvtrace_gdb.decode.tandem.memory import PAGE
from rvtrace_gdb.decode.tandem.protocol import FPR_END, GPR
from rvtrace_gdb.decode.tandem.registers import PHYSICAL, UNKNOWN
from rvtrace_gdb.session.verify.compare import is_load
from rvtrace_gdb.session.verify.model import ExpectedStep, ModelState
from rvtrace_gdb.session.verify.nondeterminism import ModelInputs

_SYSTEM, _AMO = 0x73, 0x2F
_MOST_KINDS, _MOST_LOADS = 1 << 16, 1 << 16
_MACHINE_MODE = 3
_NOTHING: dict[int, int] = {}


class _PlainKind(NamedTuple):
    """What the groups of an instruction and a shape have in common. Fields are -1 where there is none.

    number, value   the fields with the number and the value of the register; *regno*: that number
    base, offset    of the address; *address*, *data*: the fields with it and with what was stored
    size            of the store, in bytes
    """

    number: int = -1
    regno: int = -1
    value: int = -1
    base: int = -1
    offset: int = 0
    address: int = -1
    data: int = -1
    size: int = 0


class PlainSteps:
    """Finds the expected steps of consecutive plain groups. *apart*: groups that are not plain, whatever they have."""

    def __init__(self, tandem: DecodedTandem, cache: ModelState, inputs: ModelInputs, apart: set[int]) -> None:
        self._tandem, self._index, self._cache, self._inputs = tandem, tandem.index, cache, inputs
        parameters, index = tandem.trace.parameters, tandem.index
        self._xlen, self._mask = parameters.xlen, (1 << parameters.xlen) - 1
        self._apart = apart | index.origins.keys() | {0}
        self._able = not parameters.dialect.partial and parameters.dialect.pc_register < 0
        shapes = tandem.trace.automaton.shapes
        self._plans = [None if shape.known and shape.has_bytes else plan_of(shape) for shape in shapes]
        self._kinds: dict[int, _PlainKind | None] = {}
        self._loads: set[int] = set()
        self._changes = self._memory_changes()
        self._begin, self._end = 0, -1  # the groups for which `_loads` is true
        self._untranslated: bool | None = None  # None: the mode decides
        self._direct = False  # the address looked at last is a physical one
        self._translation = self._reached = -1

    def _memory_changes(self) -> list[int]:
        """Return the groups after which memory that was known before need not be."""
        index = self._index
        spaces = (index.physical.writes, *index.memory.values())
        unknown = {writes.groups[number] for writes in spaces for number in writes.unknown}
        forgotten = {*index.memory_forgotten, *index.physical.unplaced}
        return sorted({group for group, _ in index.spaces} | forgotten | unknown)

    def extend(
        self, expected: list[ExpectedStep], group: int, stop: int, pc: int, written: dict[int, int], *, ask: bool = True
    ) -> int:
        """Append the expected steps of the next groups to *expected*, up to the first group that is not plain; return
        where the hart continues.

        pc       where it is before *group*
        written  what the steps before wrote; what these write is added
        ask      False: the model must not be asked for anything
        """
        # One long function, with locals, because this is done for each plain group.
        if not self._able:
            return pc
        trace, pcs, plans, kinds, apart = self._tandem.trace, self._index.pcs, self._plans, self._kinds, self._apart
        data, offsets, shapes, no_code = trace.data, trace.offsets, trace.shapes, self._inputs.no_code
        values_of, mask, make = self._cache.values.get, self._mask, ExpectedStep._make
        if group < self._reached:
            self._loads.clear()
        self._reached = group
        for number in range(group, stop):
            shape = shapes[number]
            plan = plans[shape]
            if plan is None or number in apart or (pcs[number - 1] != pc and pcs[number - 1] != NOWHERE):
                return pc
            values, next_pc = plan.unpack(data, offsets[number]), pcs[number]
            word = values[plan.word]
            key = word << 16 | shape
            kind = kinds[key] if key in kinds else self._new_kind(key, plan, values)
            if kind is None or next_pc == NOWHERE or (no_code and pc >> 12 in no_code):
                return pc
            number_at, regno, value_at, base, offset, address_at, data_at, size = kind
            if number_at < 0:
                registers = _NOTHING
            elif values[number_at] != regno:
                return pc
            else:
                registers = {regno: values[value_at]}
            load = store = None
            if address_at >= 0:
                address, start = values[address_at], 0 if base == GPR else written.get(base, values_of(base))
                if start is None or start + offset & mask != address or not self._is_reached(number, address, ask=ask):
                    return pc
                if data_at >= 0:
                    store = address, size, values[data_at]
                elif self._is_known(number, address, word):
                    load = address
                else:
                    return pc
            expected.append(make((pc, word, next_pc, registers, load, store)))
            written.update(registers)
            pc = next_pc
        return pc

    def _new_kind(self, key: int, plan: UnpackPlan, values: tuple[int, ...]) -> _PlainKind | None:
        """Return the kind of a group that is the first of it; None: it is not plain."""
        if len(self._kinds) >= _MOST_KINDS:
            self._kinds.clear()
        found = self._kinds[key] = self._kind(values[plan.word], plan, values)
        return found

    def _kind(self, word: int, plan: UnpackPlan, values: tuple[int, ...]) -> _PlainKind | None:
        if word & 0x7F in (_SYSTEM, _AMO) or (plan.length == 2) != (word & 3 != 3) or len(plan.registers) > 1:
            return None
        kind = _PlainKind()
        for number, value in plan.registers:
            kind = kind._replace(number=number, regno=values[number], value=value)
            if not GPR < kind.regno < FPR_END:
                return None
        place, loads = addressed(word, self._xlen), is_load(word, self._xlen)
        if place is None:
            return kind if plan.address < 0 and plan.data < 0 else None
        is_store = plan.data >= 0
        if plan.address < 0 or plan.physical or plan.both or loads == is_store or loads != (place.data < 0):
            return None
        return kind._replace(
            base=place.base, offset=place.offset, address=plan.address, data=plan.data, size=plan.size
        )  # fmt: skip

    def _is_reached(self, group: int, address: int, *, ask: bool) -> bool:
        """Return whether the model has memory at the address of an access, or translates it."""
        if not self._begin <= group <= self._end:
            self._renew(group)
        untranslated = self._untranslated
        if untranslated is None:
            mode, status = (self._cache.values.get(regno) for regno in (PRIVILEGE, csrs.MSTATUS))
            if mode is None or status is None:
                return False
            untranslated = mode == _MACHINE_MODE and not status & csrs.MPRV
        self._direct = untranslated
        if not untranslated:
            return True
        return (ask or self._inputs.has_page(address)) and self._inputs.is_memory(address)

    def _renew(self, group: int) -> None:
        """Find out about the memory before *group*, and up to which group that stays."""
        changes = self._changes
        later = bisect_right(changes, group - 1)
        self._begin = changes[later - 1] + 1 if later else 0
        self._end = changes[later] if later < len(changes) else len(self._tandem.trace)
        self._loads.clear()
        space = self._tandem.after(group - 1).space
        self._untranslated = None if space == UNKNOWN else space == PHYSICAL

    def _is_known(self, group: int, address: int, word: int) -> bool:
        """Return whether the model has what a load reads: the program's, or what was stored; once known, it stays so.
        """
        if not self._direct:
            translation = self._inputs.translation(group)
            if translation != self._translation:
                self._translation = translation
                self._loads.clear()
        key = address << 32 | word
        if key in self._loads:
            return True
        self._reached = group
        found = reach(word, self._xlen)
        size = 0 if found is None else found.size
        if size and not self._inputs.has_loaded(group, address, size):
            return False
        if (self._direct or self._untranslated is False) and address % PAGE <= PAGE - 8:
            if len(self._loads) == _MOST_LOADS:
                self._loads.clear()
            self._loads.add(key)
        return True
