"""The model's registers as the verifier knows them: what it read, wrote, and was told of every step.

So that comparing costs no questions: the model is asked for a register once. Registers that share bits with others
(sstatus and mstatus, sie and mie, sip and mip, fflags, frm and fcsr) are kept as the one that has all of them.
"""

from collections.abc import Iterable, Mapping

from rvtrace_gdb.decode.tandem.csrs import MIDELEG, MIP, Part, parts
from rvtrace_gdb.decode.tandem.layout import FPR_END, GPR
from rvtrace_gdb.session.tandem.masks import ALL, inputs
from rvtrace_gdb.session.tandem.model import PC, PRIVILEGE, Model


class Mirror:
    """*pc*: the model's. *refused*: by register the bits of CSRs that it did not take as they were written."""

    def __init__(self, model: Model, xlen: int) -> None:
        self._model = model
        self._parts = parts(xlen)
        self._mask = (1 << xlen) - 1
        self.pc = 0
        self.values: dict[int, int | None] = {}
        self.refused: dict[int, int] = {}
        self._again: dict[int, int] = {}

    def refresh(self, csrs: Iterable[int] = ()) -> None:
        """Read everything again: the model was reset. *csrs*: those that will be compared."""
        self.values.clear()
        self.pc = self._model.read_register(PC) or 0
        for regno in (*range(GPR + 1, FPR_END), PRIVILEGE, *csrs):
            self.get(regno)

    def settle(self) -> None:
        """Read what was written, before the model goes on: it may have made something else of it."""
        while self._again:
            regno, value = self._again.popitem()
            found = self.get(regno)
            bits = ALL if found is None else (found ^ value) & ~inputs(regno)
            if bits:
                self.refused[regno] = self.refused.get(regno, 0) | bits

    def get(self, regno: int) -> int | None:
        """A register; of a view its whole's bits. None: the model does not have it."""
        part = self._parts.get(regno)
        if part is not None and part.whole != regno:
            whole = self.get(part.whole)
            return None if whole is None else (whole & self.bits(part)) >> part.shift
        if regno not in self.values:
            self.values[regno] = self._model.read_register(regno)
        return self.values[regno]

    def set(self, regno: int, value: int) -> None:
        """Write a register of the model; a view as its bits of the whole."""
        part = self._parts.get(regno)
        if part is not None and part.whole != regno:
            whole, mask = self.get(part.whole), self.bits(part)
            if whole is not None:
                self.set(part.whole, whole & ~mask | value << part.shift & mask)
            return
        self._model.write_register(regno, value)
        if regno < GPR:  # the model may have other bits than these: what it made of it is read when it is needed
            self.values.pop(regno, None)
            self._again[regno] = value
        else:
            self.values[regno] = value

    def pend(self, value: int) -> None:
        """Write mip of the model, all bits as they are."""
        self._model.write_register(MIP, value)
        self.values[MIP] = value

    def go(self, pc: int) -> None:
        """Set the pc of the model."""
        if pc != self.pc:
            self._model.write_register(PC, pc)
            self.pc = pc

    def bits(self, part: Part) -> int:
        """The bits of its whole a register has."""
        if not part.delegated:
            return part.mask
        return self.get(MIDELEG) or 0

    def part(self, regno: int) -> Part | None:
        """What a register is a part of, if it is not everything itself."""
        found = self._parts.get(regno)
        return None if found is None or found.whole == regno else found

    def is_shared(self, regno: int) -> bool:
        """Whether it shares bits with others."""
        return regno in self._parts

    def wholes(self, changed: Mapping[int, int]) -> dict[int, int]:
        """What a step changed, without views: a view whose whole is not there is put into it."""
        found: dict[int, int] = {}
        views: list[tuple[int, int]] = []
        for regno, value in changed.items():
            if regno in self._parts and self._parts[regno].whole != regno:
                views.append((regno, value))
            else:
                found[regno] = value
        for regno, value in views:
            part = self._parts[regno]
            if part.whole not in changed:
                mask, old = self.bits(part), found.get(part.whole, self.get(part.whole) or 0)
                found[part.whole] = old & ~mask | value << part.shift & mask
        return found
