"""Everything that is known of a hart after a group of its tandem trace: registers, CSRs, memory."""

from bisect import bisect_left
from collections.abc import Iterator

from rvtrace_gdb.decode.tandem import csrs
from rvtrace_gdb.decode.tandem.decoder import Tandem
from rvtrace_gdb.decode.tandem.layout import FPR, GPR
from rvtrace_gdb.decode.tandem.spaces import PHYSICAL, UNKNOWN
from rvtrace_gdb.views import csr_fields
from rvtrace_gdb.views.json_rows import line, place
from rvtrace_gdb.views.tandem import name_of, value_of

_ROW = 16


class Known:
    """What is known after group *number*, counted from 1; 0: before the first one. *named*: the name of the pc."""

    def __init__(self, tandem: Tandem, number: int, named: tuple[str, int] | None) -> None:
        self._tandem, self._number, self._named = tandem, number, named
        self._state = tandem.after(number - 1)
        self._parameters = tandem.trace.parameters

    def lines(self) -> Iterator[str]:
        """In words; what is not known is not there."""
        state, xlen = self._state, self._parameters.xlen
        when = f"after group {self._number}" if self._number else "before the first group"
        yield f"state {when} of {len(self._tandem.trace)}, before instruction {self._position} of the history"
        name = "" if self._named is None else f" <{self._named[0]}+{self._named[1]}>"
        yield "pc: not known" if state.pc is None else f"pc = 0x{state.pc:0{xlen // 4}x}{name}"
        mode = state.privilege
        yield f"privilege: {'not known' if mode is None else csr_fields.MODES.get(mode, mode)}"
        if state.mtime is not None:
            yield f"mtime, told last = {value_of(csrs.MTIME, state.mtime, self._parameters)}"
        for regno, value in self._registers():
            meaning = csr_fields.all_words(regno, value, xlen) if regno < GPR else ""
            said = f" ({meaning})" if meaning else ""
            yield f"{name_of(regno)} = {value_of(regno, value, self._parameters)}{said}"
        for space, rows in self._memory():
            yield f"memory, {_space(space)}:"
            for address, content in rows:
                yield f"\t0x{address:0{xlen // 4}x}: {_dump(content)}"

    def json(self, hart: int) -> str:
        """As one object."""
        state, parameters = self._state, self._parameters
        pc = {} if state.pc is None else place(state.pc, self._named, parameters.xlen)
        values = {name_of(regno): value_of(regno, value, parameters) for regno, value in self._registers()}
        memory = [
            {"space": _space(space), "addr": f"0x{address:0{parameters.xlen // 4}x}", "bytes": _digits(content)}
            for space, rows in self._memory()
            for address, content in rows
        ]
        fields = {"group": self._number, "hart": hart, "position": self._position}
        fields |= {name: value for name, value in pc.items() if value is not None}
        return line({**fields, "prv": state.privilege, "mtime": state.mtime, "registers": values, "memory": memory})

    @property
    def _position(self) -> int:
        return self._tandem.position_of(self._number) + 1

    def _registers(self) -> Iterator[tuple[int, int]]:
        """Those that are known: integer, floating-point, CSRs."""
        for regno in (*range(GPR + 1, GPR + 32), *range(FPR, FPR + 32)):
            value = self._state.register(regno)
            if value is not None:
                yield regno, value
        yield from self._state.csrs().items()

    def _memory(self) -> Iterator[tuple[int, Iterator[tuple[int, list[int | None]]]]]:
        """Rows of known bytes: of physical memory, and of the address space loads and stores are in."""
        for space in dict.fromkeys((PHYSICAL, self._state.space)):
            addresses = self._rows_of(space)
            if addresses:
                yield space, self._rows(space, addresses)

    def _rows(self, space: int, addresses: list[int]) -> Iterator[tuple[int, list[int | None]]]:
        for address in addresses:
            content = self._state.memory(address, _ROW, space=space)
            if any(byte is not None for byte in content):
                yield address, content

    def _rows_of(self, space: int) -> list[int]:
        """Where something was stored up to now."""
        index = self._tandem.index
        writes = index.physical.writes if space == PHYSICAL else index.memory.get(space)
        if writes is None:
            return []
        stop = bisect_left(writes.groups, self._number)
        found: set[int] = set()
        for address, size in zip(writes.addresses[:stop], writes.sizes[:stop], strict=True):
            found.update(range(address & -_ROW, address + size, _ROW))
        return sorted(found)


def _space(space: int) -> str:
    if space == PHYSICAL:
        return "physical addresses"
    return "addresses that may be virtual" if space == UNKNOWN else f"virtual addresses, satp 0x{space:x}"


def _dump(content: list[int | None]) -> str:
    return " ".join(".." if byte is None else f"{byte:02x}" for byte in content)


def _digits(content: list[int | None]) -> str:
    return "".join(".." if byte is None else f"{byte:02x}" for byte in content)
