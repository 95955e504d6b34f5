"""The values in a tandem trace, as a `Past`: registers by gdb's names, memory, writers, and accesses."""

from collections.abc import Iterator, Mapping, Sequence

from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.decode.program.csrs import CSRS
from rvtrace_gdb.decode.program.image import ContextImages, Image
from rvtrace_gdb.decode.tandem.decoder import Tandem
from rvtrace_gdb.decode.tandem.protocol import FPR
from rvtrace_gdb.decode.tandem.state import State
from rvtrace_gdb.decode.tandem.watchpoints import WatchpointSearch
from rvtrace_gdb.decode.tandem.wording import NUMBERS, regno_of
from rvtrace_gdb.session.past.past import Accessed, NotWritten, TracedRegisters, Written
from rvtrace_gdb.session.past.tandem.memory import Memory
from rvtrace_gdb.session.past.tandem.writers import LastWriters
from rvtrace_gdb.session.past.wording import SHOWN, loaded_notes
from rvtrace_gdb.support.errors import Progress, silent

_MACHINE = "mstatus misa mie mtvec mscratch mepc mcause mtval mip"
_BOXED = 0xFFFF_FFFF << 32  # a single-precision value in a wider register


class TandemPast:
    """The past of a tandem trace. *program*: what is in memory, by context."""

    has_accesses = True

    def __init__(self, tandem: Tandem, program: ContextImages) -> None:
        self._tandem, self._program = tandem, program
        self._watched = WatchpointSearch(tandem)
        self._memories: dict[Image, Memory] = {}

    @property
    def history(self) -> History:
        return self._tandem.history

    def prepare(self, progress: Progress = silent) -> None:
        """Sort the tables that are otherwise sorted at the first access: gdb waits only briefly for a packet."""
        self._tandem.before(len(self.history)).memory(0, 1, loads=True)
        for writes in self._tandem.index.memory.values():
            writes.last(0, 0, 1)

    # Registers

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
        return _Registers(state, pc, self._tandem.trace.parameters.flen)

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
            known = self._memories[image] = Memory(self._tandem, image)
        return known.read(position, address, size)

    # Writers

    def register_writer(self, position: int, register: int, below: int | None = None) -> Written | NotWritten:
        return LastWriters(self._tandem, position, below).register(register) or NotWritten()

    def memory_writer(self, position: int, address: int, size: int, below: int | None = None) -> Written | NotWritten:
        last = LastWriters(self._tandem, position, below)
        found = last.memory(address, size)
        if found is not None:
            return found
        loaded = last.loaded(address, size) if below is None and size <= SHOWN else None
        return NotWritten() if loaded is None else NotWritten(loaded_notes(loaded))

    # Accesses

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
        """Return the nearest access; see `WatchpointSearch`."""
        found = self._watched.nearest(position, address, size, forward=forward, stores=stores, loads=loads)
        if found is None:
            return None
        return Accessed(self._tandem.position_of(found.group + 1) - 1, found.address)

    def unknown_accesses(self, first: int, last: int, *, loads: bool) -> Sequence[int]:
        tandem = self._tandem
        groups = self._watched.unknown_accesses(tandem.group_of(first), tandem.group_of(last), loads=loads)
        return [tandem.position_of(group) for group in groups]

    def has_unmapped_stores(self, first: int, last: int) -> bool:
        return bool(self._watched.misplaced(self._tandem.group_of(first), self._tandem.group_of(last)))


class _Registers(Mapping[str, int]):
    """The registers known at a moment, by all their names; each value is searched when it is requested."""

    def __init__(self, state: State, pc: int | None, flen: int) -> None:
        self._state, self._pc, self._flen = state, pc, flen

    def __getitem__(self, name: str) -> int:
        value = self._value(name)
        if value is None:
            raise KeyError(name)
        return value

    def __iter__(self) -> Iterator[str]:
        return (name for name in ("pc", *NUMBERS) if self._value(name) is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _value(self, name: str) -> int | None:
        if name == "pc":
            return self._pc
        number = regno_of(name)
        if number is None:
            return None
        value = self._state.register(number)
        is_single = self._flen == 32 and FPR <= number < FPR + 32
        return value | _BOXED if is_single and value is not None else value
