"""What instructions access, against objdump, which reads them without us, and against what Spike did."""

import csv
import gzip
import io
import random
import re
from pathlib import Path

import pytest

from rvtrace_gdb.decode.history.accesses import Slots
from rvtrace_gdb.decode.history.builder import HistoryBuilder
from rvtrace_gdb.decode.history.events import Accounting
from rvtrace_gdb.decode.history.history import Path as Ran
from rvtrace_gdb.decode.program.instructions import (
    ATOMIC,
    CSR,
    LOAD,
    MULTIPLE,
    STORE,
    STORE_FAILURE,
    MemoryAccess,
    Reach,
    reach,
)
from tests.decode.etrace.vectors import expected, image
from tests.decode.program.test_instructions import disassemble
from tests.helpers.amounts import sparse

_BASE = 0x100_0000  # where `disassemble` puts the code
_SIZES = {"b": 1, "h": 2, "w": 4, "d": 8, "q": 16}
_LOAD = re.compile(r"(?:c\.)?f?l([bhwdq])u?(?:sp)?|lr\.([wd])(?:\.\w+)?")
_STORE = re.compile(r"(?:c\.)?f?s([bhwdq])(?:sp)?|sc\.([wd])(?:\.\w+)?")
_AMO = re.compile(r"amo(swap|add|xor|and|or|min|max)u?\.([wd])(?:\.\w+)?")
_CSR = re.compile(r"csrr([wsc])i?")


def named(mnemonic: str, operands: list[str], word: int, xlen: int) -> Reach | None:
    """By the name objdump gives an instruction."""
    if match := _LOAD.fullmatch(mnemonic):
        return Reach(LOAD, _SIZES[match[match.lastindex or 0]])
    if match := _STORE.fullmatch(mnemonic):
        return Reach(STORE, _SIZES[match[match.lastindex or 0]], optional=mnemonic.startswith("sc."))
    if match := _AMO.fullmatch(mnemonic):
        return Reach(ATOMIC, _SIZES[match[2]], match[1])
    if match := _CSR.fullmatch(mnemonic):
        return Reach(CSR, xlen // 8, "r" + match[1], word >> 20)
    return None


def check(folder: Path, code: bytes, xlen: int) -> set[str]:
    """Compares every instruction objdump knows; returns the names of those that access something."""
    seen = set()
    for address, mnemonic, operands in disassemble(folder, code, xlen):
        if mnemonic.startswith("."):
            continue
        word = int.from_bytes(code[address - _BASE :][:4], "little")
        found = reach(word, xlen)
        assert found == named(mnemonic, operands, word, xlen), (hex(word), mnemonic)
        if found is not None:
            seen.add(mnemonic)
    return seen


_16_BIT = {"c.fld", "c.lw", "c.fsd", "c.sw", "c.fldsp", "c.lwsp", "c.fsdsp", "c.swsp"}
_ONLY = {32: {"c.flw", "c.fsw", "c.flwsp", "c.fswsp"}, 64: {"c.ld", "c.sd", "c.ldsp", "c.sdsp"}}


@pytest.mark.parametrize("xlen", [32, 64])
def test_every_16_bit_encoding_agrees_with_objdump(tmp_path: Path, xlen: int) -> None:
    """Or every third one, which are of all the forms."""
    code = b"".join(half.to_bytes(2, "little") for half in range(0, 0x1_0000, sparse(1)) if half & 3 != 3)
    assert check(tmp_path, code, xlen) == _16_BIT | _ONLY[xlen]


@pytest.mark.parametrize("xlen", [32, 64])
def test_32_bit_encodings_agree_with_objdump(tmp_path: Path, xlen: int) -> None:
    r = random.Random(xlen)
    opcodes = (0x03, 0x07, 0x23, 0x27, 0x2F, 0x73)
    words = [r.getrandbits(25) << 7 | opcode for opcode in opcodes for _ in range(5000)]
    words += [0b00010 << 27 | r.getrandbits(10) << 15 | 2 + i % 2 << 12 | 0x2F for i in range(200)]
    words += [r.getrandbits(30) << 2 | 3 for _ in range(5000)]
    code = b"".join(word.to_bytes(4, "little") for word in words if word & 0x1F != 0x1F)
    seen = check(tmp_path, code, xlen)
    assert {"lb", "lhu", "lw", "flw", "fld", "sb", "sw", "fsd", "lr.w", "sc.w.rl", "csrrw"} <= seen
    assert {"amoadd.w", "amomaxu.w.aq", "csrrci"} <= seen
    assert ({"ld", "lwu", "sd", "lr.d", "amoswap.d"} <= seen) == (xlen == 64)


@pytest.mark.parametrize(
    ("word", "found"),
    [  # encodings from LLVM's assembler tests (our binutils does not know these extensions)
        (0x8000, Reach(LOAD, 1)),  # c.lbu a0, 0(s0) has funct6 100000
        (0x8400, Reach(LOAD, 2)),  # c.lhu
        (0x8440, Reach(LOAD, 2)),  # c.lh
        (0x8800, Reach(STORE, 1)),  # c.sb
        (0x8C00, Reach(STORE, 2)),  # c.sh
        (0x2800_202F | 0b00101 << 27, Reach(ATOMIC, 4, optional=True)),  # amocas.w
        (0x2800_402F | 0b00101 << 27, Reach(ATOMIC, 16, optional=True)),  # amocas.q
        (0x6000_4073, Reach(LOAD, 1)),  # hlv.b
        (0x6430_4073, Reach(LOAD, 2)),  # hlvx.hu
        (0x6C00_4073, Reach(LOAD, 8)),  # hlv.d
        (0x6200_4073, Reach(STORE, 1)),  # hsv.b
        (0x6E00_4073, Reach(STORE, 8)),  # hsv.d
        (0x2220_0073, None),  # hinval.vvma
        (0x0205_6407, Reach(LOAD, 0, times=0)),  # vle32.v v8, (a0)
        (0x0205_0427, Reach(STORE, 0, times=0)),  # vse8.v v8, (a0)
    ],
)
def test_newer_instructions(word: int, found: Reach) -> None:
    assert reach(word, 64) == found


@pytest.mark.parametrize(
    ("half", "found"),
    [
        (0xB842, Reach(STORE, 4, MULTIPLE, times=1)),  # cm.push {ra}, -16
        (0xB8F2, Reach(STORE, 4, MULTIPLE, times=13)),  # cm.push {ra, s0-s11}: rlist 15
        (0xB8E2, Reach(STORE, 4, MULTIPLE, times=11)),  # cm.push {ra, s0-s9}: rlist 14
        (0xBA42, Reach(LOAD, 4, MULTIPLE, times=1)),  # cm.pop {ra}, 16
        (0xBC42, Reach(LOAD, 4, MULTIPLE, times=1)),  # cm.popretz {ra}, 16
        (0xBE5E, Reach(LOAD, 4, MULTIPLE, times=2)),  # cm.popret {ra, s0}, 64
        (0xACA2, None),  # cm.mvsa01 s1, s0
        (0xA006, None),  # cm.jt 1
    ],
)
def test_zcmp(half: int, found: Reach | None) -> None:
    assert reach(half, 32, zcm=True) == found
    assert reach(half, 64) == Reach(STORE, 8)  # c.fsdsp


def test_what_may_be_an_access_of_an_instruction() -> None:
    conditional = Reach(STORE, 4, optional=True)
    assert conditional.is_of(MemoryAccess(STORE, 4)) and conditional.is_of(MemoryAccess(ATOMIC, 4, STORE_FAILURE))
    assert not conditional.is_of(MemoryAccess(STORE, 8)) and not Reach(STORE, 4).is_of(
        MemoryAccess(ATOMIC, 4, STORE_FAILURE)
    )
    assert Reach(CSR, 8, "rs", 0x300).is_of(MemoryAccess(CSR, 8, "rs", 0x300))
    assert not Reach(CSR, 8, "rs", 0x300).is_of(MemoryAccess(CSR, 8, "rs", 0x304))
    assert not Reach(CSR, 8, "rs", 0x300).is_of(MemoryAccess(CSR, 8, "rc", 0x300))
    assert not Reach(ATOMIC, 4, "add").is_of(MemoryAccess(ATOMIC, 4, "or")) and not Reach(LOAD, 4).is_of(
        MemoryAccess(STORE, 4)
    )
    assert not Reach(LOAD, 4).is_of(MemoryAccess(LOAD, 4, MULTIPLE))
    assert Reach(LOAD, 4, MULTIPLE, times=2).is_of(MemoryAccess(LOAD, 4))  # as 2.0 has it, which knows no MULTIPLE


def test_the_first_30000_instructions_of_qsort_access_what_spike_says() -> None:
    """Spike's data trace and Spike's list of addresses, of the same program, made apart from each other."""
    addresses = expected("qsort", "o01")
    builder = HistoryBuilder()
    builder.append(Ran([tuple(addresses)]))
    told = [MemoryAccess(LOAD, 1, sync=0), MemoryAccess(STORE, 1, sync=0)]
    slots = Slots.from_history(builder.finish(Accounting(0, 0, 0, 0)), image("qsort"), told)
    with gzip.open(Path(__file__).resolve().parents[2] / "data" / "etrace-data" / "qsort.csv.gz") as file:
        rows = list(csv.DictReader(io.TextIOWrapper(file)))
    assert len(addresses) == 30000 and len(slots.reaches) == 8754
    spike = [((LOAD, STORE)[int(row["DTYPE"])], 1 << int(row["DSIZE"])) for row in rows[:8754]]
    assert [(found.kind, found.size) for found in slots.reaches] == spike
