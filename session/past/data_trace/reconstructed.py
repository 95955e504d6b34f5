"""The past of a data trace whose other values are reconstructed: what the trace has, and what follows from the rest."""

from collections.abc import Mapping, Sequence

from rvtrace_gdb.decode.program.image import ContextImages
from rvtrace_gdb.session.errors import NoTrace
from rvtrace_gdb.session.past.data_trace.past import DataTracePast
from rvtrace_gdb.session.past.past import Accessed, NotWritten, TracedRegisters, Written
from rvtrace_gdb.session.past.reconstructed.knowledge import Knowledge
from rvtrace_gdb.session.past.reconstructed.past import ReconstructedPast
from rvtrace_gdb.support.errors import Progress, silent


class ReconstructedDataTracePast(DataTracePast):
    """The past of a data trace. *values*: what is reconstructed of the same history."""

    def __init__(self, values: ReconstructedPast, program: ContextImages) -> None:
        super().__init__(values.history, program)
        self._values = values

    @property
    def has_memory(self) -> bool:  # type: ignore[override]
        return self._values.has_memory

    def prepare(self, progress: Progress = silent) -> None:
        super().prepare(progress)
        self._values.prepare(progress)

    def knowledge(self, progress: Progress = silent, *, overwritten: bool = False) -> Knowledge:  # type: ignore[override]
        return self._values.knowledge(progress, overwritten=overwritten)

    def traced_registers(self) -> TracedRegisters | None:
        return self._values.traced_registers()

    def registers(self, position: int) -> Mapping[str, int]:
        return self._values.registers(position)

    def integers(self, position: int, *, trapped: bool = False) -> dict[int, int]:
        return self._values.integers(position, trapped=trapped)

    def values_stay_known(self, position: int, names: Sequence[str]) -> bool:
        return self._values.values_stay_known(position, names)

    def register_writer(self, position: int, register: int, below: int | None = None) -> Written | NotWritten:
        return self._values.register_writer(position, register, below)

    def memory(self, position: int, address: int, size: int) -> list[int | None]:
        """Return what is reconstructed, where that is not known what the trace has."""
        found = self._values.memory(position, address, size)
        if None not in found:
            return found
        traced = super().memory(position, address, size)
        return [other if byte is None else byte for byte, other in zip(found, traced, strict=True)]

    def memory_writer(self, position: int, address: int, size: int, below: int | None = None) -> Written | NotWritten:
        """Return the later of both answers: each is a store to some of the bytes."""
        found = self._values.memory_writer(position, address, size, below)
        try:
            traced = super().memory_writer(position, address, size, below)
        except NoTrace:
            return found
        if isinstance(found, NotWritten) or isinstance(traced, NotWritten):
            return traced if isinstance(found, NotWritten) else found
        return traced if traced.position > found.position else found

    def nearest_access(
        self,
        position: int,
        address: int,
        size: int,
        *,
        forward: bool,
        stores: bool,
        loads: bool,
        progress: Progress = silent,
    ) -> Accessed | None:
        both = (
            past(position, address, size, forward=forward, stores=stores, loads=loads, progress=progress)
            for past in (self._values.nearest_access, super().nearest_access)
        )
        found = [access for access in both if access is not None]
        if forward:
            return min(found, default=None)
        return max(found, key=lambda access: (access.position, -access.address), default=None)

    def unknown_accesses(self, first: int, last: int, *, loads: bool) -> Sequence[int]:
        """Return those positions at which neither knows the address."""
        traced = super().unknown_accesses(first, last, loads=loads)
        return sorted({*traced} & {*self._values.unknown_accesses(first, last, loads=loads)}) if traced else ()
