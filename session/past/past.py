"""The values that are known at the positions of a history: what gdb, the console, and `trace who-wrote` ask.

`Past` is implemented for traces that contain values (`tandem/`), and for those from which they are computed
(`reconstructed.py`). Whoever asks does not know which. What a trace does not determine is unknown, never guessed.

A position is that of `decode.history.history`; the length of a history is the position after its last instruction.
Registers have the numbers of the Debug Specification (3.7, "Abstract Register Numbers": CSRs from 0, x0 to x31 from
0x1000, f0 to f31 from 0x1020), and `PC`.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.support.errors import Progress, silent

if TYPE_CHECKING:
    from rvtrace_gdb.session.past.reconstructed.facts import Disagreement
    from rvtrace_gdb.session.past.reconstructed.knowledge import Knowledge

PC = -1
"""The number of the pc as a register."""

INSTRUCTION, TRAP, RESET, OUTSIDE = "instruction", "trap", "reset", "outside"
"""What a writer is. OUTSIDE: a debugger, a loader, an interrupt line: not the hart itself."""


class TracedRegisters(NamedTuple):
    """The registers that may be known besides pc and the integer registers.

    flen  bits of the floating-point registers, 0 without any
    csrs  numbers by gdb's names
    """

    flen: int
    csrs: Mapping[str, int]


class StoredBytes(NamedTuple):
    """What a store wrote. *value*: little-endian, None: unknown."""

    address: int
    size: int
    value: int | None


class StoreWindow(NamedTuple):
    """Memory around a store, with its bytes before and after; None: unknown ones."""

    address: int
    before: list[int | None]
    after: list[int | None]


class PastWrite(NamedTuple):
    """The last write to a register or some memory.

    kind      one of the constants above
    position  of the instruction; if the writer is none, of the next instruction
    below     what asks for the write before this one, see `Past.register_writer`
    group     of a tandem trace, None for others; *offset*: its byte in the trace
    register  its number, None for memory; *reported*: the register that was written, if it is another that shares bits
    store     the store, in the addresses of the request
    old, new  values before and after: of the register, or of the stored bytes that were requested
    window    memory around the store within what was requested
    doubts    lines that say why it may not be the last writer, or why the value may be wrong
    """

    kind: str
    position: int
    below: int
    group: int | None = None
    offset: int | None = None
    register: int | None = None
    reported: int | None = None
    store: StoredBytes | None = None
    old: int | None = None
    new: int | None = None
    window: StoreWindow | None = None
    doubts: tuple[str, ...] = ()


class NoWrite(NamedTuple):
    """No write is in the history. *notes*: lines that say why there may be one nevertheless, or what was read there."""

    notes: tuple[str, ...] = ()


class AccessedBytes(NamedTuple):
    """The instruction at *position* accesses some bytes; *address*: the first of those that were asked for."""

    position: int
    address: int


class WantedAccess(NamedTuple):
    """Accesses to any of *size* bytes at *address*: *stores*, *loads*, or both.

    *forward*: the first one at or after a position, else the last one before it.
    """

    address: int
    size: int
    forward: bool
    stores: bool
    loads: bool


class Past(Protocol):
    """The values of one hart. Whatever takes long calls *progress*, which may raise to end it; nothing is lost then."""

    @property
    def history(self) -> History: ...

    def prepare(self, progress: Progress = silent) -> None:
        """Compute what is otherwise computed at the first question: gdb waits only briefly for a packet."""

    @property
    def is_reconstructed(self) -> bool:
        """Whether values follow from what ran, and from assumptions; otherwise the trace has them."""

    @property
    def disagreements(self) -> "Sequence[Disagreement]":
        """Where more was believed than holds, as far as that has shown."""

    def knowledge(self, progress: Progress = silent, *, overwritten: bool = False) -> "Knowledge | None":
        """Return how much is known, from what, and why not more; None: the trace itself has the values. *overwritten*:
        older trace was.
        """

    def traced_registers(self) -> TracedRegisters | None:
        """Return which registers may be known, at any position; None: the pc alone."""

    def registers(self, position: int) -> Mapping[str, int]:
        """Return the known registers before the instruction at a position, by gdb's names; a name that is missing is
        unknown. The pc is there, at the end of the history only if it is known.
        """

    def integers(self, position: int, *, trapped: bool = False) -> dict[int, int]:
        """Return the known integer registers, by 0 to 31. *trapped*: those after the instruction at *position*, before
        the trap that followed it.
        """

    def values_stay_known(self, position: int, names: Sequence[str]) -> bool:
        """Return whether registers are known at a position, and at every later one."""

    @property
    def has_memory(self) -> bool:
        """Whether memory that the program writes may be known."""

    def memory(self, position: int, address: int, size: int) -> list[int | None]:
        """Return each byte as the hart's loads would read it there; None: unknown."""

    def register_writer(self, position: int, register: int, below: int | None = None) -> PastWrite | NoWrite:
        """Return the last write to a register before a position; *below*: `PastWrite.below`, for the one before."""

    def memory_writer(
        self, position: int, address: int, size: int, below: int | None = None
    ) -> PastWrite | NoWrite:
        """Return the last store to any of some bytes, in the same way. Raises NoTrace: no store has an address."""

    @property
    def has_accesses(self) -> bool:
        """Whether the addresses of loads and stores are known, of some at least: whether watchpoints can trigger."""

    def nearest_access(self, position: int, query: WantedAccess, progress: Progress = silent) -> AccessedBytes | None:
        """Return the nearest access of those that are *query*, from a position on.

        A position of -1 in the result: something before the first instruction.
        """

    def unknown_accesses(self, first: int, last: int, *, loads: bool) -> Sequence[int]:
        """Return those positions from *first* to *last* - 1 that store, or load, at an unknown address."""

    def has_unmapped_stores(self, first: int, last: int) -> bool:
        """Return whether stores from *first* to *last* - 1 have virtual addresses whose page tables are not known."""


_PIECE = 64  # bytes that are asked for at once, at first


def known_bytes(past: Past, position: int, address: int, size: int) -> bytes:
    """Return the bytes of memory that are known, up to the first unknown one."""
    found = bytearray()
    while len(found) < size:
        piece = min(max(len(found), _PIECE), size - len(found))
        for byte in past.memory(position, address + len(found), piece):
            if byte is None:
                return bytes(found)
            found.append(byte)
    return bytes(found)
