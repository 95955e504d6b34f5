"""The traces of real cores and their golden logs."""

import gzip
import pickle
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.tandem.decoder import DecodedTandem, decode
from rvtrace_gdb.decode.tandem.protocol import FLUTE, PICCOLO, TandemParameters

DATA = Path(__file__).resolve().parents[2] / "data"
TRACES = sorted(path.stem for path in (DATA / "tandem").glob("*.tvt"))
GOLDEN = sorted(path.name.removesuffix(".spike.gz") for path in (DATA / "tandem").glob("*.spike.gz"))

RV32 = TandemParameters(32, 64, dialect=PICCOLO)
RV64 = TandemParameters(64, 64, dialect=FLUTE)


def parameters_of(name: str) -> TandemParameters:
    return RV32 if name.startswith("piccolo") else RV64


def trace_bytes(name: str) -> bytes:
    return (DATA / "tandem" / f"{name}.tvt").read_bytes()


@lru_cache(maxsize=8)
def _loaded(elf: str) -> bytes:
    return pickle.dumps(Image.from_elf(DATA / "riscv-tests" / elf))


def program_of(name: str) -> Image:
    """A copy for each caller: what a trace tells of code is added to it."""
    copy: Image = pickle.loads(_loaded(name.partition("_")[2].removesuffix("_truncated_midgroup")))
    return copy


@lru_cache(maxsize=4)
def decoded(name: str) -> DecodedTandem:
    return decode(trace_bytes(name), program_of(name), parameters_of(name))


class Step(NamedTuple):
    """One line, or two, of a golden log: an instruction that retired, or a trap (*cause* not None)."""

    pc: int
    word: int | None
    mode: int | None
    x: dict[int, int]
    f: dict[int, int]
    csrs: dict[int, int]
    stores: list[tuple[int, bytes]]
    cause: str | None = None
    tval: int = 0


_LISTED = re.compile(r"core +0: 0x([0-9a-f]+) \(0x([0-9a-f]+)\)")
_COMMIT = re.compile(r"core +0: (\d) 0x([0-9a-f]+) \(0x([0-9a-f]+)\)(.*)")
_TRAP = re.compile(r"core +0: exception ([^,]+), epc 0x([0-9a-f]+)")
_TVAL = re.compile(r"core +0: +tval 0x([0-9a-f]+)")


def golden_steps(name: str) -> Iterator[Step]:
    """What Spike did, with a reader that shares nothing with the one under test."""
    listed: dict[int, int] = {}
    trap: Step | None = None
    mask = (1 << parameters_of(name).xlen) - 1
    for line in gzip.decompress((DATA / "tandem" / f"{name}.spike.gz").read_bytes()).decode().splitlines():
        if trap is not None:
            found = _TVAL.match(line)
            yield trap._replace(tval=int(found[1], 16)) if found else trap
            trap = None
        if found := _COMMIT.match(line):
            yield _committed(found, mask)
        elif found := _LISTED.match(line):
            listed = {int(found[1], 16) & mask: int(found[2], 16)}
        elif found := _TRAP.match(line):
            pc = int(found[2], 16) & mask
            trap = Step(pc, listed.get(pc), None, {}, {}, {}, [], found[1])
    if trap is not None:
        yield trap


def _committed(found: "re.Match[str]", mask: int) -> Step:
    step = Step(int(found[2], 16) & mask, int(found[3], 16), int(found[1]), {}, {}, {}, [])
    words = found[4].split()
    while words:
        kind, value, *words = words
        if kind == "mem":
            if words and words[0].startswith("0x"):
                data, *words = words
                size = len(data) // 2 - 1
                step.stores.append((int(value, 16) & mask, int(data, 16).to_bytes(size, "little")))
        elif kind[0] == "c":
            step.csrs[int(kind[1:].partition("_")[0])] = int(value, 16) & mask
        else:
            {"x": step.x, "f": step.f}[kind[0]][int(kind[1:])] = int(value, 16) & (mask if kind[0] == "x" else ~0)
    return step
