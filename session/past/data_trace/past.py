"""The values in a data trace, as a `Past`: who stored what, who accesses what, and what memory holds at an access.

Between two accesses of the trace, others may write to memory: another hart, or a device. Bytes are known before the
instruction that loads them, and after the one that stores them, in the program's memory, which is not a device.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from rvtrace_gdb.decode.history.accesses import overlaps
from rvtrace_gdb.decode.history.history import GAP, History
from rvtrace_gdb.decode.program.context_images import ContextImages
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.program.instructions import STORE, MemoryAccess
from rvtrace_gdb.session.errors import NoTrace
from rvtrace_gdb.session.past.data_trace.accesses import LocatedAccesses, is_store, within
from rvtrace_gdb.session.past.past import (
    INSTRUCTION,
    AccessedBytes,
    NoWrite,
    PastWrite,
    StoredBytes,
    TracedRegisters,
    WantedAccess,
)
from rvtrace_gdb.session.past.program_memory import ProgramMemory
from rvtrace_gdb.session.past.register_writers import RegisterWriters
from rvtrace_gdb.support.errors import Progress, silent

_NO_STORES = "this trace has no store with an address: a tandem trace has them (docs/tandem.md)"
_NO_PLACE = "The exact instruction is not known: it is this one or a later one."


class DataTracePast:
    """The past of a data trace. *program*: what is in memory, by context."""

    has_accesses, has_memory = True, False
    is_reconstructed = False
    disagreements = ()

    def __init__(self, history: History, program: ContextImages) -> None:
        self._history, self._program = history, program
        self._accesses = LocatedAccesses(history, program)
        self._writers = RegisterWriters(history, program)
        self._memories: dict[Image, ProgramMemory] = {}

    @property
    def history(self) -> History:
        return self._history

    def prepare(self, progress: Progress = silent) -> None:
        """Find out which instructions access unknown bytes."""
        self._accesses.unknown(progress)

    # Registers

    def knowledge(self, progress: Progress = silent, *, overwritten: bool = False) -> None:
        """The trace itself has the values."""

    def traced_registers(self) -> TracedRegisters | None:
        return None

    def registers(self, position: int) -> Mapping[str, int]:
        pc = self._history.pc(position) if position < len(self._history) else GAP
        return {} if pc == GAP else {"pc": pc}

    def integers(self, position: int, *, trapped: bool = False) -> dict[int, int]:
        return {0: 0}

    def values_stay_known(self, position: int, names: Sequence[str]) -> bool:
        return False

    def register_writer(self, position: int, register: int, below: int | None = None) -> PastWrite | NoWrite:
        """Return the last write to a register; the trace does not have the value."""
        return self._writers.last(position, register, below)

    # Memory

    def memory(self, position: int, address: int, size: int) -> list[int | None]:
        """Return what the instruction before stored or loaded, and the next one loads; code and constants."""
        memory = self._program_memory(position)
        found = memory.constants(address, size)
        self._accesses.put_into(found, position, address, memory)
        return found

    def _program_memory(self, position: int) -> ProgramMemory:
        at = max(min(position, len(self._history) - 1), 0)
        image = self._program.image_of(self._history.context_at(at))
        if image not in self._memories:
            self._memories[image] = ProgramMemory(image)
        return self._memories[image]

    def memory_writer(
        self, position: int, address: int, size: int, below: int | None = None
    ) -> PastWrite | NoWrite:
        """Return the last store to some bytes; doubts say how many stores after it may also have been to them."""
        if not any(is_store(access) and access.address is not None for access in self._history.accesses):
            raise NoTrace(_NO_STORES)
        position = position if below is None else min(position, below)
        unknown = unplaced = 0
        for access in reversed(self._history.accesses):
            at = _access_position(access)
            if not is_store(access) or at >= position:
                continue
            if access.address is None:
                unknown += 1
            elif overlaps(access, address, size):
                doubts = self._doubts(unknown, unplaced, at + 1, position, "since")
                return _past_write(access, address, size, doubts)
            elif access.position is None:
                unplaced += 1
        return NoWrite(tuple(self._doubts(unknown, unplaced, 0, position, "in the trace")))

    def _doubts(self, unknown: int, unplaced: int, first: int, last: int, when: str) -> Iterator[str]:
        """Yield what is not known of stores. *unknown*, *unplaced*: those in the trace without an address, or place."""
        if unknown:
            yield f"The address of {unknown} store{_s(unknown)} {when} is not known."
        since = "since" if first else "before"
        missing = len(within(self._accesses.unknown().stores, first, last)) - unknown - unplaced
        if missing > 0:
            which = f"stores that ran {since} are" if missing > 1 else f"store that ran {since} is"
            yield f"{missing} {which} not in the trace."

    # Accesses

    def nearest_access(self, position: int, query: WantedAccess, progress: Progress = silent) -> AccessedBytes | None:
        return self._accesses.nearest(position, **query._asdict())

    def unknown_accesses(self, first: int, last: int, *, loads: bool) -> Sequence[int]:
        unknown = self._accesses.unknown()
        found = {*within(unknown.stores, first, last), *(within(unknown.loads, first, last) if loads else ())}
        beyond = max(first, self._accesses.examined)
        return sorted(found | ({beyond} if beyond < last else set()))

    def has_unmapped_stores(self, first: int, last: int) -> bool:
        return False


def _access_position(access: MemoryAccess) -> int:
    """Return the position of an access, or that of the first instruction that may have made it."""
    return access.after if access.position is None else access.position


def _past_write(access: MemoryAccess, address: int, size: int, doubts: Iterable[str]) -> PastWrite:
    assert access.address is not None
    store = StoredBytes(access.address, access.size, access.value if access.kind == STORE else None)
    no_place = () if access.position is not None else (_NO_PLACE,)
    at, new = max(_access_position(access), 0), _requested_bytes(store, address, size)
    return PastWrite(INSTRUCTION, at, at, store=store, new=new, doubts=(*no_place, *doubts))


def _s(count: int) -> str:
    return "" if count == 1 else "s"


def _requested_bytes(store: StoredBytes, address: int, size: int) -> int | None:
    """Return the bytes of a store that were requested."""
    if store.value is None:
        return None
    data = store.value.to_bytes(store.size, "little")
    return int.from_bytes(data[max(address - store.address, 0) : address + size - store.address], "little")
