"""Many steps of a model at once: it is told ahead what a trace says, and stops where it does anything else.

Only for groups before which the verifier has nothing to do, and whose step, if it is exactly the one that is expected,
is no divergence: all that a group tells is held against that before the model is asked.
"""

from typing import NamedTuple

from rvtrace_gdb.decode.tandem import csrs
from rvtrace_gdb.decode.tandem.decoder import Tandem
from rvtrace_gdb.decode.tandem.layout import FPR_END, GPR
from rvtrace_gdb.decode.tandem.steps import NOWHERE
from rvtrace_gdb.session.tandem.comparing import Comparing, is_load
from rvtrace_gdb.session.tandem.inputs import Inputs
from rvtrace_gdb.session.tandem.masks import inputs
from rvtrace_gdb.session.tandem.mirror import Mirror
from rvtrace_gdb.session.tandem.model import Expected, Model, Running, Step
from rvtrace_gdb.session.tandem.operands import Addressed, addressed
from rvtrace_gdb.session.tandem.told import Told

_SYSTEM, _AMO = 0x73, 0x2F
_MOST = 1 << 8  # steps at once
_REMEMBERED = 1 << 14


class _Access(NamedTuple):
    """What the word of an instruction says of memory; *place* None: it does not load or store."""

    place: Addressed | None
    loads: bool


class Ahead:
    """Does so where the *model* can (`Running`).

    step   what the model did in the group behind those `run` returned, where that is another thing than was expected
    """

    def __init__(self, tandem: Tandem, model: Model, mirror: Mirror, comparing: Comparing, inputs: Inputs) -> None:
        self._tandem, self._index, self._mirror = tandem, tandem.index, mirror
        self._comparing, self._inputs = comparing, inputs
        self._model = model if isinstance(model, Running) else None
        parameters = tandem.trace.parameters
        self._xlen, self._pc_register = parameters.xlen, parameters.dialect.pc_register
        self._mask = (1 << parameters.xlen) - 1
        self._apart = {trapped.group for trapped in self._index.traps} | {gap.group for gap in self._index.breaks}
        self._accesses: dict[int, _Access] = {}
        self._told: dict[int, Told] = {}
        self._written: dict[int, int] = {}
        self._most = 1
        self.step: Step | None = None

    def told(self, group: int) -> Told:
        """What a group tells; made once."""
        found = self._told.pop(group, None)
        return found or Told(group, self._tandem.trace.elements(group), self._tandem, self._pc_register)

    def run(self, group: int, limit: int) -> list[Told]:
        """From *group* on, *limit* at most: the groups that the model did exactly as they are told."""
        if self._model is None or self.step is not None:
            return []
        told, expected = self._batch(group, min(limit, self._most))
        if not expected:
            return []
        agreed, self.step = self._model.run(expected)
        self._most = min(2 * self._most, _MOST) if agreed == len(expected) else max(agreed, 1)
        self._told = {later.group: later for later in told[agreed:]}
        for one, done in zip(told[:agreed], expected, strict=False):
            self._mirror.values.update(done.registers)
            self._mirror.pc = done.next_pc
            self._comparing.agreed(one, stored=done.store is not None)
        return told[:agreed]

    def _batch(self, group: int, limit: int) -> tuple[list[Told], list[Expected]]:
        """The next groups, and what is expected in each but the last one if that is not to be foretold."""
        self._written.clear()
        told, expected, pc = [self.told(group)], list[Expected](), self._mirror.pc
        first = self._expected(told[0], pc)
        if first is None or self._is_asked():
            self._told[group] = told[0]
            return told, expected
        found: Expected | None = first
        while found is not None:
            expected.append(found)
            if len(expected) == limit:
                break
            self._written.update(found.registers)
            told.append(self.told(group + len(expected)))
            found = self._expected(told[-1], found.next_pc)
        return told, expected

    def _is_asked(self) -> bool:
        """Whether an interrupt is pending, so that mip has to be another one in each step."""
        self._mirror.settle()
        mip = self._mirror.get(csrs.MIP)
        return bool(mip and mip & (self._mirror.get(csrs.MIE) or 0))

    def _expected(self, told: Told, pc: int) -> Expected | None:
        """What the model does in a group if that is what is told; None: that cannot be foretold, or has to be fed."""
        instr, next_pc = told.instr, self._index.pcs[told.group]
        if instr is None or next_pc == NOWHERE or told.reset or told.initializes or told.group in self._apart:
            return None
        if self._index.origin(told.group) not in (pc, NOWHERE):
            return None
        word = instr.word if instr.word & 3 == 3 else instr.word & 0xFFFF
        if word & 0x7F in (_SYSTEM, _AMO) or (instr.length == 2) != (word & 3 != 3):
            return None
        registers: dict[int, int] = {}
        for regno, value in told.registers.items():
            if value is not None and GPR < regno < FPR_END:
                registers[regno] = value
            elif not self._is_kept(told, regno, value):
                return None
        place, loads = self._access(word)
        if place is None:
            plain = told.effective is None and not told.stores and not self._inputs.why_not(told, pc)
            return Expected(pc, word, next_pc, registers) if plain else None
        return self._at(told, place, Expected(pc, word, next_pc, registers), loads=loads)

    def _is_kept(self, told: Told, regno: int, value: int | None) -> bool:
        """Whether a CSR is told with what the model has in it: mstatus, with each load of a floating-point register."""
        if regno >= GPR or value is None or inputs(regno) or self._mirror.part(regno) is not None:
            return False
        return self._mirror.values.get(regno) == value and self._comparing.mode_written(told.group) is None

    def _at(self, told: Told, place: Addressed, step: Expected, *, loads: bool) -> Expected | None:
        """*step* with its load or store."""
        base = 0 if place.base == GPR else self._written.get(place.base, self._mirror.values.get(place.base))
        if base is None or loads != (place.data < 0) or self._inputs.why_not(told, step.pc):
            return None
        address = base + place.offset & self._mask
        if told.effective not in (None, address):
            return None
        if loads:
            fed = told.stores or (told.effective is not None and self._inputs.filling(told) is not None)
            return None if fed else step._replace(load=address)
        stores = [store for _, store in self._tandem.stored(told.group)] if told.stores else []
        if len(stores) != 1 or stores[0].value is None or stores[0].address != address:
            return None
        return step._replace(store=(address, stores[0].size, stores[0].value))

    def _access(self, word: int) -> _Access:
        found = self._accesses.get(word)
        if found is None:
            if len(self._accesses) == _REMEMBERED:
                self._accesses.clear()
            found = self._accesses[word] = _Access(addressed(word, self._xlen), is_load(word, self._xlen))
        return found
