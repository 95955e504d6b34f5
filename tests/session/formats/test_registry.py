"""The trace formats by name: each module has what a session needs, and another format is one module and one name."""

import struct
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any, ClassVar, NamedTuple

import pytest

from rvtrace_gdb.decode.history.builder import HistoryBuilder, SourceHistories
from rvtrace_gdb.decode.history.events import Accounting
from rvtrace_gdb.decode.history.history import Path
from rvtrace_gdb.decode.program.image import Image, Program
from rvtrace_gdb.session.capture.model import CapturedRecords
from rvtrace_gdb.session.formats import registry, sinks
from rvtrace_gdb.support.errors import Progress, silent

# A format of its own: each instruction is its address, four bytes, the lowest first.


@dataclass(frozen=True)
class Addresses:
    format: ClassVar = "addresses"
    name: str = "addresses0"


class Address(NamedTuple):
    offset: int
    pc: int

    @property
    def end(self) -> int:
        return self.offset + 4


class Itemizer:
    def __init__(self) -> None:
        self._data, self._offset = b"", 0

    def feed(self, data: bytes) -> Iterator[Address]:
        self._data += data
        while len(self._data) >= 4:
            (pc,) = struct.unpack("<I", self._data[:4])
            yield Address(self._offset, pc)
            self._data, self._offset = self._data[4:], self._offset + 4

    def finish(self) -> Iterator[Address]:
        return iter(())


class Wording:
    def text(self, item: Address, *, raw: bool = False) -> str:
        return f"Address pc={item.pc:#x}"

    def is_odd(self, item: Address) -> bool:
        return bool(item.pc & 1)


class Decoding:
    def __init__(self, data: bytes) -> None:
        self._data = data

    def result(self, progress: Progress) -> SourceHistories:
        builder = HistoryBuilder()
        builder.append(Path([tuple(item.pc for item in Itemizer().feed(self._data))]))
        account = Accounting(len(self._data), len(self._data), 0, 0)
        return SourceHistories({0: builder.finish(account)}, account)


@pytest.fixture
def addresses(monkeypatch: pytest.MonkeyPatch) -> Addresses:
    """The format in a module beside the others, and its name in the table."""
    module: Any = ModuleType("rvtrace_gdb.session.formats.addresses")
    module.decoding = lambda data, program, trace_options, *, wrapped, stop_at_error: Decoding(data)
    module.itemizer = lambda trace_options, xlen, *, wrapped=False: Itemizer()
    module.wording = lambda trace_options: Wording()
    module.has_sources = lambda trace_options: False
    module.has_times = lambda trace_options: False
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(registry, "FORMATS", (*registry.FORMATS, "addresses"))
    return Addresses()


DATA = struct.pack("<4I", 0x80000000, 0x80000004, 0x80000010, 0x80000014)


def test_a_format_is_added_by_a_module_and_its_name(addresses: Addresses) -> None:
    program: Program = Image()
    found = registry.decode(DATA, program, addresses).histories[0]
    assert [found.pc(i) for i in range(len(found))] == [0x80000000, 0x80000004, 0x80000010, 0x80000014]
    lines = [
        registry.format_of(addresses).wording(addresses).text(item)
        for data in (DATA[:6], DATA[6:]) for item in registry.format_of(addresses).itemizer(addresses, 64).feed(data)
    ]  # fmt: skip
    assert lines[0] == "Address pc=0x80000000"
    sink: Any = CapturedRecords(3, addresses, DATA)  # type: ignore[arg-type]
    assert sinks.decode([sink], (), program, progress=silent).histories[3].instructions == 4


def test_a_format_that_is_not_in_the_table_is_not_loaded() -> None:
    with pytest.raises(AssertionError, match="addresses"):
        registry.format_of(Addresses())
