"""The values in a tandem trace, as a `Past`: registers by gdb's names, memory, writers, and accesses."""

from collections.abc import Mapping, Sequence

from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.decode.program.context_images import ContextImages
from rvtrace_gdb.decode.program.csrs import CSRS
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.tandem.decoder import DecodedTandem
from rvtrace_gdb.decode.tandem.watchpoints import WatchpointSearch
from rvtrace_gdb.session.past.named_registers import NamedRegisters
from rvtrace_gdb.session.past.past import PC, AccessedBytes, NoWrite, PastWrite, TracedRegisters, WantedAccess
from rvtrace_gdb.session.past.tandem.memory import TandemMemory
from rvtrace_gdb.session.past.tandem.writers import LastWriters
from rvtrace_gdb.session.past.wording import SHOWN, loaded_notes
from rvtrace_gdb.support.errors import Progress, silent

_MACHINE = "mstatus misa mie mtvec mscratch mepc mcause mtval mip"


class TandemPast:
    """The past of a tandem trace. *program*: what is in memory, by context."""

    has_accesses = has_memory = True
    is_reconstructed = False
    disagreements = ()

    def __init__(self, tandem: DecodedTandem, program: ContextImages) -> None:
        self._tandem, self._program = tandem, program
        self._watched = WatchpointSearch(tandem)
        self._memories: dict[Image, TandemMemory] = {}

    @property
    def history(self) -> History:
        return self._tandem.history

    def prepare(self, progress: Progress = silent) -> None:
        """Sort the tables that are otherwise sorted at the first access: gdb waits only briefly for a packet."""
        self._tandem.before(len(self.history)).memory(0, 1, loads=True)
        for writes in self._tandem.index.memory.values():
            writes.last(0, 0, 1)

    # Registers

    def knowledge(self, progress: Progress = silent, *, overwritten: bool = False) -> None:
        """The trace itself has the values."""

    def traced_registers(self) -> TracedRegisters:
        """Return which registers the trace has, and those that every hart has in machine mode."""
        names = {number: name for name, number in CSRS.items()}
        numbers = {CSRS[name] for name in _MACHINE.split()} | self._tandem.index.registers.known_csrs()
        csrs = {names.get(number, f"csr{number}"): number for number in sorted(numbers)}
        return TracedRegisters(self._tandem.trace.parameters.flen, csrs)

    def registers(self, position: int) -> Mapping[str, int]:
        """Return the registers before the instruction at a position; at the end of the history, after the last one."""
        history, state = self.history, self._tandem.before(position)
        pc = history.pc(position) if position < len(history) else state.pc
        return NamedRegisters(
            lambda number: pc if number == PC else state.register(number), self._tandem.trace.parameters.flen
        )

    def integers(self, position: int, *, trapped: bool = False) -> dict[int, int]:
        tandem = self._tandem
        state = tandem.after(tandem.group_of(position)) if trapped else tandem.before(position)
        return {number: value for number, value in enumerate(state.xs()) if value is not None}

    def values_stay_known(self, position: int, names: Sequence[str]) -> bool:
        group, index = self._tandem.group_of(position), self._tandem.index
        lost = [*index.resets, *(gap.group for gap in index.breaks)]
        known = self.registers(position)
        return all(name in known for name in names) and not any(each >= group for each in lost)

    # Memory

    def memory(self, position: int, address: int, size: int) -> list[int | None]:
        at = max(min(position, len(self.history) - 1), 0)
        image = self._program.image_of(self.history.context_at(at))
        known = self._memories.get(image)
        if known is None:
            known = self._memories[image] = TandemMemory(self._tandem, image)
        return known.read(position, address, size)

    # Writers

    def register_writer(self, position: int, register: int, below: int | None = None) -> PastWrite | NoWrite:
        return LastWriters(self._tandem, position, below).register(register) or NoWrite()

    def memory_writer(
        self, position: int, address: int, size: int, below: int | None = None
    ) -> PastWrite | NoWrite:
        last = LastWriters(self._tandem, position, below)
        found = last.memory(address, size)
        if found is not None:
            return found
        loaded = last.loaded(address, size) if below is None and size <= SHOWN else None
        return NoWrite() if loaded is None else NoWrite(loaded_notes(loaded))

    # Accesses

    def nearest_access(self, position: int, query: WantedAccess, progress: Progress = silent) -> AccessedBytes | None:
        """Return the nearest access; see `WatchpointSearch`."""
        found = self._watched.nearest(position, **query._asdict())
        if found is None:
            return None
        return AccessedBytes(self._tandem.position_of(found.group + 1) - 1, found.address)

    def unknown_accesses(self, first: int, last: int, *, loads: bool) -> Sequence[int]:
        tandem = self._tandem
        groups = self._watched.unknown_accesses(tandem.group_of(first), tandem.group_of(last), loads=loads)
        return [tandem.position_of(group) for group in groups]

    def has_unmapped_stores(self, first: int, last: int) -> bool:
        return bool(self._watched.misplaced(self._tandem.group_of(first), self._tandem.group_of(last)))
