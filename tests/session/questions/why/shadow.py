"""The truth about who made what: tags carried over what Spike executed.

Which registers an instruction reads is taken from Spike's own disassembly, and what it wrote, loaded and stored from
its log: nothing of the decoder under test is used. Registers have the numbers 0 to 31, and 32 to 63 for f0 to f31.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import NamedTuple

from tests.transport.simulated.hart.spike import Commit, SpikeRun

_X = ["zero", "ra", "sp", "gp", "tp", *(f"t{n}" for n in range(3)), "s0", "s1", *(f"a{n}" for n in range(8))]
_X += [*(f"s{n}" for n in range(2, 12)), *(f"t{n}" for n in range(3, 7))]
_F = [*(f"ft{n}" for n in range(8)), "fs0", "fs1", *(f"fa{n}" for n in range(8)), *(f"fs{n}" for n in range(2, 12))]
_F += [f"ft{n}" for n in range(8, 12)]
_NUMBERS = {name: number for number, name in enumerate((*_X, *_F))}
_NUMBERS |= {f"x{number}": number for number in range(32)} | {"fp": 8}
_ALL_READ = re.compile(r"(c\.)?(b(eq|ne|lt|ge|gt|le)(u|z)?|f?s[bhwd](sp)?|jr)")
"""Decisions, stores, `jr`: all registers that are named are read."""
_ACCUMULATING = re.compile(
    r"c\.(add|addw|sub|subw|and|or|xor|addi|addiw|slli|srli|srai|andi|mul|not|[sz]ext\.[bhw])"
)
_LOAD = re.compile(r"(c\.)?(f?l(b|h|w|d)u?(sp)?|lr\.[wd]|amo.*)")
_SIZES = {"b": 1, "h": 2, "w": 4, "d": 8}
_WRITING_CSR = ("csrw", "csrs", "csrc")
_WORD = 4
"""Bytes that instructions of Zcmp load for each register: programs with them are RV32."""
_BEFORE = -1
"""The tag of what nothing has written."""


class Made(NamedTuple):
    """What an instruction was made of: who wrote each register that it read, and each byte that it loaded last."""

    registers: Mapping[int, int]
    loaded: Mapping[int, int]


class Tags(NamedTuple):
    """Who wrote each register, and each byte, last; `_BEFORE` for those that nothing has written."""

    registers: list[int]
    memory: dict[int, int]


@cache
def sources(text: str) -> tuple[int, ...]:
    """Return the registers that an instruction reads, by its disassembly; x0 is none."""
    mnemonic, *operands = re.sub(r"[(),{}]", " ", text).split()
    if mnemonic.startswith("cm."):
        return tuple(sorted(_read_by_zcmp(mnemonic, operands)))
    named = [_NUMBERS[it] for it in operands if it in _NUMBERS]
    return tuple(sorted({number for number in _read(mnemonic, named) if number}))


def _read_by_zcmp(mnemonic: str, operands: list[str]) -> set[int]:
    """A list of registers is written as ra, s0-s3."""
    if mnemonic == "cm.mvsa01":
        return {10, 11}
    if mnemonic == "cm.mva01s":
        return {_NUMBERS[it] for it in operands}
    found = {_NUMBERS["sp"]}
    for it in operands[:-1] if mnemonic == "cm.push" else []:
        first, _, last = it.partition("-s")
        found |= {_NUMBERS[f"s{n}"] for n in range(int(last) + 1)} if last else {_NUMBERS[first]}
    return found


def _read(mnemonic: str, named: list[int]) -> list[int]:
    if mnemonic == "ret":
        return [1]
    if mnemonic in ("c.jr", "c.jalr", "jr"):
        return named
    if mnemonic.startswith("csr"):
        if mnemonic.endswith("i"):
            return []
        return named if mnemonic in _WRITING_CSR else named[1:]
    if mnemonic.startswith("fence") or not named:
        return []
    if _ALL_READ.fullmatch(mnemonic):
        return named
    if _ACCUMULATING.fullmatch(mnemonic):
        return named
    if mnemonic in ("c.addi16sp", "c.addi4spn"):
        return [2]
    return named[1:]


def followed(run: SpikeRun, texts: Mapping[int, str]) -> Iterator[tuple[int, Made, Tags]]:
    """Yield (position, what the instruction there was made of, all tags before it); the same `Tags` each time."""
    tags, position = Tags([_BEFORE] * 64, {}), 0
    for step in run.steps:
        if isinstance(step, Commit):
            yield position, _made(step, texts[step.word], tags), tags
            _tag(step, position, tags)
            position += 1


def _made(step: Commit, text: str, tags: Tags) -> Made:
    registers = {number: tags.registers[number] for number in sources(text)}
    loaded = {}
    mnemonic = text.split()[0]
    if mnemonic.startswith("cm.pop"):
        loaded = {at: tags.memory.get(at, _BEFORE) for begin in step.loads for at in range(begin, begin + _WORD)}
    elif _LOAD.fullmatch(mnemonic):
        size = _SIZES[mnemonic.split(".")[1][0] if mnemonic[:2] in ("lr", "am") else _width(mnemonic)]
        address = step.loads[0] if step.loads else step.stores[0][0]
        loaded = {at: tags.memory.get(at, _BEFORE) for at in range(address, address + size)}
    return Made(registers, loaded)


def _width(mnemonic: str) -> str:
    return mnemonic.removeprefix("c.").removeprefix("f").removeprefix("l")[0]


def _tag(step: Commit, position: int, tags: Tags) -> None:
    for number in step.x:
        tags.registers[number] = position
    for number in step.f:
        tags.registers[32 + number] = position
    for address, size, _ in step.stores:
        tags.memory.update(dict.fromkeys(range(address, address + size), position))
