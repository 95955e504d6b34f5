"""The groups of a trace that are like others but for numbers: which they are, and these numbers.

Most groups have an instruction, a register, perhaps a load or store. What a register held before is known here from the
groups before, without a look-up. All other groups are looked at one by one (`Groups.row`).
"""

from collections.abc import Iterable, Iterator

from rvtrace_gdb.decode.program import csrs
from rvtrace_gdb.decode.program.instructions import LOAD, STORE, reach
from rvtrace_gdb.decode.tandem.effects import NOWHERE
from rvtrace_gdb.decode.tandem.group_grammar import UnpackPlan, plan_of
from rvtrace_gdb.decode.tandem.protocol import FPR_END, GPR
from rvtrace_gdb.views.tandem.groups import Groups
from rvtrace_gdb.views.tandem.templates import PlacedFields, RowTemplate

_MOST_KINDS = 1 << 16


class RowKind:
    """What rows that differ only in numbers have in common.

    mode, pc, word  of the instruction
    regno           of the register it writes; *register*: where the fields of the group have its number; without one,
                    the place and value of the instruction
    address, data   where the fields have these, -1 without them; *mask*: of what is loaded, 0 if it is not a load
    is_plain        False: the row has to be looked at
    templates       of rows whose register was not known before, was known; of those whose address has a name, the same.
                    None: not seen yet; 0: seen once; -1: there is none
    caption         a text that whoever makes the rows keeps for them
    """

    __slots__ = (
        "address", "caption", "data", "is_plain", "mask", "mode", "pc", "register", "regno", "templates", "word",
    )  # fmt: skip

    def __init__(self, mode: int | None, pc: int, word: int) -> None:
        self.mode, self.pc, self.word = mode, pc, word
        self.regno = self.mask = 0
        self.register = self.address = self.data = -1
        self.is_plain = False
        self.caption = ""
        self.templates: list[RowTemplate | int | None] = [None] * 4


WalkedGroup = tuple[int, RowKind | None, PlacedFields, bool]
"""A group; its kind, None if it is not plain; NUMBER to NEW of a plain one; whether OLD is known."""

_UNSEEN = -1


class PlainGroups:
    """Walks over the groups of a trace, and tells the plain ones from the others."""

    def __init__(self, groups: Groups) -> None:
        self._groups = groups
        self._plans: list[UnpackPlan | None] = [plan_of(shape) for shape in groups.trace.automaton.shapes]
        self._kinds: dict[tuple[int, int, int, int | None], RowKind] = {}

    def _candidates(self) -> bytearray:
        """Return 1 for each group that may be plain: behind the others registers need not be what was written last."""
        groups, index = self._groups, self._groups.index
        dialect = groups.parameters.dialect
        if dialect.partial or dialect.pc_register >= 0:
            return bytearray(len(groups))
        marks = {0, *index.origins, *index.resets, *index.initializations, *groups.breaks}
        marks.update(trap.group for trap in index.traps)
        marks.update(flaw.group for flaw in groups.trace.flaws())
        for regno in (csrs.PRIVILEGE, csrs.MTIME):
            marks.update(index.registers.columns[regno].groups if regno in index.registers.columns else ())
        candidates = bytearray(index.retired)
        for group in marks:
            candidates[group : group + 1] = b"\0"
        return candidates[: len(groups)]

    def walk(self, numbers: Iterable[int]) -> Iterator[WalkedGroup]:
        """Yield groups by number, counted from 0. Most take no call here: calls are what costs."""
        trace, pcs, places = self._groups.trace, self._groups.index.pcs, self._groups.tandem.group_places
        data, offsets, shapes, plans, kinds = trace.data, trace.offsets, trace.shapes, self._plans, self._kinds
        candidates, last_place, following, position = self._candidates(), len(places) - 1, -1, -1
        current: dict[int, int | None] = {}
        mode: int | None = None
        for group in numbers:
            shape = shapes[group]
            plan = plans[shape]
            if plan is None or not candidates[group] or pcs[group - 1] == NOWHERE:
                following = -1
                yield group, None, (), False
                continue
            if group != following:
                current.clear()
                mode, position = self._groups.before(csrs.PRIVILEGE, group), last_place
            following, position = group + 1, position + 1
            if position >= last_place or places[position] != group or places[position + 1] == group:
                position = self._position_of(group)
            pc, offset = pcs[group - 1], offsets[group]
            values = plan.unpack(data, offset)
            kind = kinds.get((pc, values[plan.word], shape, mode))
            if kind is None:
                kind = self._new_kind((pc, values[plan.word], shape, mode), plan, values)
            if not kind.is_plain or values[kind.register] != kind.regno:
                current.update((values[at], values[value]) for at, value in plan.registers)
                yield group, None, (), False
                continue
            address = values[kind.address] if kind.address >= 0 else 0
            if not plan.registers:
                value = values[kind.data] if kind.data >= 0 else 0
                yield group, kind, (group + 1, offset, position + 1, address, value, 0, 0), False
                continue
            old = current.get(kind.regno, _UNSEEN)
            if old == _UNSEEN:
                old = self._groups.before(kind.regno, group)
            current[kind.regno] = new = values[kind.register + 1]
            fields = group + 1, offset, position + 1, address, new & kind.mask, old or 0, new
            yield group, kind, fields, old is not None

    def _position_of(self, group: int) -> int:
        """Return the position of a group that retired."""
        found = self._groups.position(group)
        assert found is not None
        return found

    def _new_kind(self, key: tuple[int, int, int, int | None], plan: UnpackPlan, values: tuple[int, ...]) -> RowKind:
        """Return the kind of a group that is the first of it."""
        if len(self._kinds) >= _MOST_KINDS:
            self._kinds.clear()
        pc, word, _, mode = key
        kind = self._kinds[key] = RowKind(mode, pc, word)
        kind.register, kind.regno = plan.word, word
        if len(plan.registers) > 1 or pc == NOWHERE or plan.both or word in csrs.XRETS:
            return kind
        for at, _ in plan.registers:
            kind.register, kind.regno = at, values[at]
        access = reach(word, self._groups.parameters.xlen)
        kind.is_plain = not plan.registers or GPR < kind.regno < FPR_END
        if access is None:
            kind.is_plain = kind.is_plain and plan.address < 0
            return kind
        is_whole = access.times == 1 and access.size > 0 and plan.address >= 0
        is_whole = is_whole and isinstance(values[plan.address], int)  # not one of five bytes
        is_load = access.kind == LOAD and plan.data < 0 and len(plan.registers) == 1
        is_store = access.kind == STORE and plan.data >= 0 and plan.size == access.size and not plan.registers
        kind.is_plain = kind.is_plain and is_whole and (is_load or is_store)
        kind.address, kind.data = plan.address, plan.data
        kind.mask = (1 << 8 * access.size) - 1 if is_load else 0
        return kind
