"""What is known where a trace has loads and stores, but no registers: E-Trace with data packets."""

from collections.abc import Mapping, Sequence

from rvtrace_gdb.decode.history.accesses import overlaps
from rvtrace_gdb.decode.history.history import GAP, History
from rvtrace_gdb.decode.program.image import ContextImages
from rvtrace_gdb.decode.program.instructions import ATOMIC, CAS_FAILURE, STORE, STORE_FAILURE
from rvtrace_gdb.session.errors import NoTrace
from rvtrace_gdb.session.past.past import INSTRUCTION, Accessed, NotWritten, StoredBytes, TracedRegisters, Written
from rvtrace_gdb.support.errors import Progress, silent

NO_REGISTERS = "this trace does not have what was written to registers: a tandem trace has it (docs/tandem.md)"
_NO_PLACE = "The exact instruction is not known: it is this one or a later one."


class DataTracePast:
    """The past of a data trace. *program*: what is in memory, by context."""

    has_accesses = False

    def __init__(self, history: History, program: ContextImages) -> None:
        self._history, self._program = history, program

    @property
    def history(self) -> History:
        return self._history

    def prepare(self, progress: Progress = silent) -> None:
        pass

    def traced_registers(self) -> TracedRegisters | None:
        return None

    def registers(self, position: int) -> Mapping[str, int]:
        pc = self._history.pc(position) if position < len(self._history) else GAP
        return {} if pc == GAP else {"pc": pc}

    def integers(self, position: int, *, trapped: bool = False) -> dict[int, int]:
        return {0: 0}

    def values_stay_known(self, position: int, names: Sequence[str]) -> bool:
        return False

    def memory(self, position: int, address: int, size: int) -> list[int | None]:
        """Return code and constants."""
        at = max(min(position, len(self._history) - 1), 0)
        image = self._program.image_of(self._history.context_at(at))
        found: list[int | None] = []
        while len(found) < size:
            part = image.constant(address + len(found), size - len(found))
            found += part or [None]
        return found

    def register_writer(self, position: int, register: int, below: int | None = None) -> Written | NotWritten:
        raise NoTrace(NO_REGISTERS)

    def memory_writer(self, position: int, address: int, size: int, below: int | None = None) -> Written | NotWritten:
        """Return the last store to some bytes; a doubt says how many stores after it have an unknown address."""
        position = position if below is None else min(position, below)
        unknown = 0
        for access in reversed(self._history.accesses):
            if access.kind not in (STORE, ATOMIC) or access.operation in (CAS_FAILURE, STORE_FAILURE):
                continue
            at = access.position if access.position is not None else access.after
            if at >= position:
                continue
            if access.address is None:
                unknown += 1
            elif overlaps(access, address, size):
                store = StoredBytes(access.address, access.size, access.value if access.kind == STORE else None)
                doubts = (*(() if access.position is not None else (_NO_PLACE,)), *_unknown_doubts(unknown, "since"))
                at = max(at, 0)
                return Written(INSTRUCTION, at, at, store=store, new=_part(store, address, size), doubts=doubts)
        return NotWritten(_unknown_doubts(unknown, "in the trace"))

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
        return None

    def unknown_accesses(self, first: int, last: int, *, loads: bool) -> Sequence[int]:
        return ()

    def has_unmapped_stores(self, first: int, last: int) -> bool:
        return False


def _unknown_doubts(unknown: int, when: str) -> tuple[str, ...]:
    return (f"The address of {unknown} store{'s' * (unknown != 1)} {when} is not known.",) if unknown else ()


def _part(store: StoredBytes, address: int, size: int) -> int | None:
    """Return the bytes of a store that were requested."""
    if store.value is None:
        return None
    data = store.value.to_bytes(store.size, "little")
    return int.from_bytes(data[max(address - store.address, 0) : address + size - store.address], "little")
