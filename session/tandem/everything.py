"""The complete states compared: what steps of a model did not tell comes to light here."""

from collections.abc import Iterator

from rvtrace_gdb.decode.tandem import csrs
from rvtrace_gdb.decode.tandem.csrs import parts
from rvtrace_gdb.decode.tandem.decoder import Tandem
from rvtrace_gdb.decode.tandem.layout import FPR_END, GPR
from rvtrace_gdb.decode.tandem.spaces import PHYSICAL
from rvtrace_gdb.session.tandem.findings import Counts, Difference, Kind
from rvtrace_gdb.session.tandem.masks import ALL, STORES, Masks, inputs
from rvtrace_gdb.session.tandem.mirror import Mirror
from rvtrace_gdb.session.tandem.model import PC, PRIVILEGE, Model

_LINE, _MOST = 64, 1 << 14  # bytes of memory compared at a time, and how many of those


class Everything:
    """Compares what the shadow state and the model have, all of it.

    reported  by register the bits a divergence was told of. They are not told of again, and neither are those that the
              model did not take when they were copied: who reads them will differ
    """

    def __init__(self, tandem: Tandem, model: Model, mirror: Mirror, masks: Masks, counts: Counts) -> None:
        self._tandem, self._model, self._mirror = tandem, model, mirror
        self._masks, self._counts = masks, counts
        self.reported: dict[int, int] = {}

    def both(self, group: int) -> tuple[tuple[int, int | None, int | None], ...]:
        """(number, trace, model) of all registers one of them has; the shadow state is that after *group*."""
        state = self._tandem.after(group)
        columns = self._tandem.index.registers.columns
        told = sorted(regno for regno in columns if regno < GPR)
        rows = [(PC, state.pc, self._model.read_register(PC))]
        for regno in (PRIVILEGE, *range(GPR + 1, FPR_END), *told):
            row = (regno, state.register(regno), self._read(regno))
            if row[1] is not None or row[2] is not None:
                rows.append(row)
        return tuple(rows)

    def differences(self, group: int) -> list[Difference]:
        """Of everything that is known after a group."""
        self._counts.full += 1
        self._mirror.settle()
        return [*self._registers(group), *self._memory(group)]

    def _registers(self, group: int) -> Iterator[Difference]:
        state = self._tandem.after(group)
        whole = parts(self._tandem.trace.parameters.xlen)
        for regno in (*range(GPR + 1, FPR_END), PRIVILEGE, *state.csrs()):
            if regno in whole and whole[regno].whole != regno and state.register(whole[regno].whole) is not None:
                continue
            trace = state.register(regno) if inputs(regno) != ALL else None
            if trace is None:
                continue
            model = self._read(regno)
            bits = ALL if model is None else (trace ^ model) & ~self._soft(regno)
            bits &= ~(self.reported.get(regno, 0) | self._mirror.refused.get(regno, 0))
            if bits:
                yield Difference(Kind.LATER, regno, None, trace, model, bits)

    def _read(self, regno: int) -> int | None:
        """A register of the model; of a view it does not have, the bits of its whole."""
        found = self._model.read_register(regno)
        part = parts(self._tandem.trace.parameters.xlen).get(regno)
        if found is not None or part is None or part.delegated:
            return found
        whole = self._model.read_register(part.whole)
        return None if whole is None else (whole & part.mask) >> part.shift

    def _soft(self, regno: int) -> int:
        """Bits that need not be the same; those of a view are its whole's."""
        views = {csrs.SSTATUS: csrs.MSTATUS, csrs.SIP: csrs.MIP, csrs.SIE: csrs.MIE}
        return self._masks.soft(regno) | self._masks.soft(views.get(regno, regno))

    def _memory(self, group: int) -> Iterator[Difference]:
        """Bytes that were stored, as far as they are at known physical addresses."""
        if STORES in self._masks.absent:
            return
        state = self._tandem.after(group)
        for line in self._lines():
            model = self._model.read_memory(line, _LINE)
            if model is None:
                continue
            for at, byte in enumerate(state.memory(line, _LINE, space=PHYSICAL)):
                if byte is not None and byte != model[at]:
                    yield Difference(Kind.LATER, line + at, None, byte, model[at], size=1)

    def _lines(self) -> list[int]:
        """The last pieces of memory that were stored to."""
        found: dict[int, None] = {}
        writes = self._tandem.index.physical.writes
        for number in range(len(writes) - 1, -1, -1):
            found.setdefault(writes.addresses[number] & ~(_LINE - 1))
            if len(found) == _MOST:
                break
        return sorted(found)

    def copy(self, group: int) -> None:
        """All that is known after a group, into the model."""
        state = self._tandem.after(group)
        for regno in (*range(GPR + 1, FPR_END), *state.csrs(), PRIVILEGE):
            value = state.register(regno)
            if value is not None and inputs(regno) != ALL:
                self._mirror.set(regno, value)
        if state.pc is not None:
            self._mirror.go(state.pc)
        for line in self._lines():
            for at, byte in enumerate(state.memory(line, _LINE, space=PHYSICAL)):
                if byte is not None:
                    self._model.write_memory(line + at, bytes([byte]))
