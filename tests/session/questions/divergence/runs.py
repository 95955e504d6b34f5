"""Runs of test programs, and where they part by comparing what retired, one instruction after the other."""

from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

from rvtrace_gdb.session.questions.divergence.question import ComparedTrace, HartComparison, compared_trace
from rvtrace_gdb.session.session import Session
from tests.helpers.cross_compiler import compile_program, symbol_address
from tests.reports.coverage.traced import trace
from tests.session.board import executed

HERE = Path(__file__).parent
INPUTS = bytes([17, 3, 201, 44, 9, 9, 120, 77])
"""The first inputs of parting.c, by which they are found in the ELF file."""
PERIOD = (0x5EED0001).to_bytes(4, "little")
"""Of waiting.c, the word behind the period."""


def parting(folder: Path, *options: str) -> Path:
    return compile_program(folder, HERE / "parting.c", options=("-Wl,--build-id", *options))


def with_inputs(elf: Path, changed: dict[int, int], to: Path) -> Path:
    """The same program, by its build-id, with some other inputs."""
    data = bytearray(elf.read_bytes())
    begin = data.index(INPUTS)
    for number, value in changed.items():
        data[begin + number] = value
    to.write_bytes(data)
    return to


class Run(NamedTuple):
    """A program, and what it retired."""

    elf: Path
    pcs: list[int]

    @classmethod
    def of(cls, elf: Path) -> "Run":
        done = symbol_address(elf, "done")
        return cls(elf, list(takewhile(lambda pc: pc != done, executed(elf))))

    def traced(self, file: Path, *options: str, part: slice = slice(None)) -> Path:
        """A capture of it, or of a part."""
        return trace(self.elf, self.pcs[part], file, *options)


def opened(file: Path, elf: Path, hart: int = 0) -> ComparedTrace:
    session = Session()
    session.open(str(file), str(elf))
    return compared_trace(session, hart, file.name)


def compared(one: ComparedTrace, other: ComparedTrace) -> HartComparison:
    return HartComparison(one, other)


def parted(one: Sequence[int], other: Sequence[int]) -> int | None:
    """The index of the first instruction that differs, None if one of them is the beginning of the other."""
    return next((k for k, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), None)


