"""The decode tables against the GNU disassembler: all compressed instructions, and the offsets of jumps and branches.

That everything else decodes as in Spike is shown by executing it (`test_hart_spike`).
"""

import random
import re
import struct
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from rvtrace_gdb.decode.semantics.encodings import Decoder, Operation
from tests.helpers.amounts import sparse

# What a compressed instruction expands to, with the operands in the disassembler's order.
EXPANSIONS = {
    "c.addi4spn": ("addi", "rd rs1 imm"), "c.addi16sp": ("addi", "rd imm"), "c.addi": ("addi", "rd imm"),
    "c.li": ("addi", "rd imm"), "c.addiw": ("addiw", "rd imm"), "c.lui": ("lui", "rd page"),
    "c.slli": ("slli", "rd imm"), "c.slli64": ("slli", "rd"), "c.srli": ("srli", "rd imm"), "c.srli64": ("srli", "rd"),
    "c.srai": ("srai", "rd imm"), "c.srai64": ("srai", "rd"), "c.andi": ("andi", "rd imm"),
    "c.mv": ("add", "rd rs2"), "c.add": ("add", "rd rs2"), "c.sub": ("sub", "rd rs2"), "c.xor": ("xor", "rd rs2"),
    "c.or": ("or", "rd rs2"), "c.and": ("and", "rd rs2"), "c.subw": ("subw", "rd rs2"), "c.addw": ("addw", "rd rs2"),
    "c.j": ("jal", "target"), "c.jal": ("jal", "target"), "c.jr": ("jalr", "rs1"), "c.jalr": ("jalr", "rs1"),
    "c.beqz": ("beq", "rs1 target"), "c.bnez": ("bne", "rs1 target"), "c.ebreak": ("ebreak", ""),
    **{f"c.{m}{sp}": (m, "rd imm rs1") for m in ("lw", "ld", "flw", "fld") for sp in ("", "sp")},
    **{f"c.{m}{sp}": (m, "rs2 imm rs1") for m in ("sw", "sd", "fsw", "fsd") for sp in ("", "sp")},
    **{m: (m, "rs1 rs2 target") for m in ("beq", "bne", "blt", "bge", "bltu", "bgeu")}, "jal": ("jal", "rd target"),
}  # fmt: skip
ILLEGAL = (".2byte", "c.unimp")

_LINE = re.compile(r" *([0-9a-f]+):\s+([0-9a-f]+)\s+(\S+)\s*([^#<]*)")


def disassembled(folder: Path, xlen: int, words: Sequence[int], size: int) -> list[tuple[str, list[int], int]]:
    """Mnemonic, operands as numbers, address."""
    binary = folder / "code.bin"
    binary.write_bytes(struct.pack(f"<{len(words)}{'H' if size == 2 else 'I'}", *words))
    command = ["riscv64-unknown-elf-objdump", "-b", "binary", "-m", f"riscv:rv{xlen}", "-M", "no-aliases,numeric", "-D"]
    listing = subprocess.run([*command, str(binary)], check=True, capture_output=True, text=True).stdout
    found = [match for line in listing.splitlines() if (match := _LINE.match(line))]
    assert len(found) == len(words)
    return [(name, _numbers(operands), int(address, 16)) for address, _, name, operands in (m.groups() for m in found)]


def _numbers(operands: str) -> list[int]:
    return [int(token.lstrip("xf") if token[0] in "xf" else token, 0) for token in re.findall(r"[-\w]+", operands)]


def shown(operation: Operation, operands: str, pc: int, xlen: int) -> list[int]:
    values = operation._asdict()
    values["target"] = pc + operation.imm & (1 << xlen) - 1
    values["page"] = operation.imm >> 12 & 0xFFFFF
    return [values[name] for name in operands.split()]


def reserved(name: str, operands: list[int], xlen: int) -> bool:
    """What the disassembler shows though the manual reserves it: shifts by 32 or more on RV32, adding 0 to sp."""
    shift = xlen == 32 and name in ("c.slli", "c.srli", "c.srai") and operands[1] > 31
    return shift or (name == "c.addi16sp" and operands[1] == 0)


@pytest.mark.parametrize("xlen", [64, 32])
def test_all_compressed_instructions(xlen: int, tmp_path: Path) -> None:
    """If this is not the long run, every third word: all values of each field, not all of two fields."""
    decoder = Decoder(xlen, "IMAFDC")
    words = [word for word in range(0, 1 << 16, sparse(1)) if word & 3 != 3]
    for word, (name, operands, pc) in zip(words, disassembled(tmp_path, xlen, words, 2), strict=True):
        operation = decoder.decode(word)
        if name in ILLEGAL or reserved(name, operands, xlen):
            assert operation.name == "illegal", hex(word)
            continue
        expansion, order = EXPANSIONS[name]
        assert operation.length == 2
        assert (operation.name, shown(operation, order, pc, xlen)) == (expansion, operands), hex(word)


def test_links_of_compressed_jumps() -> None:
    decoder = Decoder(32, "IC")
    assert [decoder.decode(word).rd for word in (0xA001, 0x2001, 0x8082, 0x9082)] == [0, 1, 0, 1]


@pytest.mark.parametrize("xlen", [64, 32])
def test_offsets_of_jumps_and_branches(xlen: int, tmp_path: Path) -> None:
    rng = random.Random(64)
    decoder = Decoder(xlen, "I")
    words = [rng.getrandbits(25) << 7 | rng.choice((0x6F, 0x63)) for _ in range(3000)]
    words = [word for word in words if word & 0x7F == 0x6F or word >> 12 & 7 not in (2, 3)]
    for word, (name, operands, pc) in zip(words, disassembled(tmp_path, xlen, words, 4), strict=True):
        operation = decoder.decode(word)
        expansion, order = EXPANSIONS[name]
        assert (operation.name, shown(operation, order, pc, xlen)) == (expansion, operands), hex(word)
