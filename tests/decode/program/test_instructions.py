"""Classification against objdump, which disassembles without us, and against tables 2 of N-Trace and 4.4 of E-Trace."""

import random
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from rvtrace_gdb.decode.program.instructions import Instruction, IType, UndecodableInstruction, classify, length
from tests.decode import assembler
from tests.helpers.amounts import some_of, sparse

_LINE = re.compile(r"^ *([0-9a-f]+):\t([0-9a-f]+) *\t(\S+)(?:\t([^#<]*))?")
_BASE = 0x100_0000  # far enough from 0 for every backward jump
_LINK = ("x1", "x5")
_BRANCHES = {"beq", "bne", "blt", "bge", "bltu", "bgeu", "c.beqz", "c.bnez"}
_OTHERS = {
    "ecall": IType.EXCEPTION,
    "ebreak": IType.EXCEPTION,
    "c.ebreak": IType.EXCEPTION,
    "c.unimp": IType.EXCEPTION,
    "mret": IType.TRAP_RETURN,
    "sret": IType.TRAP_RETURN,
    "uret": IType.TRAP_RETURN,
    "dret": IType.TRAP_RETURN,
}


def disassemble(folder: Path, code: bytes, xlen: int) -> Iterator[tuple[int, str, list[str]]]:
    """Address, mnemonic and operands of every instruction in raw bytes, as objdump sees them."""
    raw = folder / "code.bin"
    raw.write_bytes(code)
    command = ["riscv64-unknown-elf-objdump", "-D", "-z", "-b", "binary", "-m", f"riscv:rv{xlen}"]
    command += ["-M", "no-aliases,numeric", f"--adjust-vma={_BASE}", str(raw)]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return lines(text)


def lines(listing: str) -> Iterator[tuple[int, str, list[str]]]:
    for match in filter(None, map(_LINE.match, listing.splitlines())):
        yield int(match[1], 16), match[3], re.split(r"[,() ]+", (match[4] or "").strip(" )"))


def expected(address: int, mnemonic: str, operands: list[str]) -> tuple[IType, int | None]:
    """The itype by the tables, from what objdump says; the offset of what goes somewhere the code tells."""
    if mnemonic in _BRANCHES:
        return IType.NOT_TAKEN, int(operands[-1], 16) - address
    if mnemonic in ("jal", "c.jal", "c.j"):
        link = mnemonic == "c.jal" or (mnemonic == "jal" and operands[0] in _LINK)
        return IType.INFERABLE_CALL if link else IType.OTHER_INFERABLE, int(operands[-1], 16) - address
    if mnemonic in ("jalr", "c.jr", "c.jalr"):
        rd = {"jalr": operands[0], "c.jr": "x0", "c.jalr": "x1"}[mnemonic]
        return register_jump(rd, operands[-1]), None
    return _OTHERS.get(mnemonic, IType.NONE), None


def register_jump(rd: str, rs1: str) -> IType:
    if rd in _LINK:
        return IType.COROUTINE_SWAP if rs1 in _LINK and rd != rs1 else IType.UNINFERABLE_CALL
    return IType.RETURN if rs1 in _LINK else IType.OTHER_UNINFERABLE


def check(folder: Path, code: bytes, xlen: int) -> set[str]:
    """Compares every instruction; returns the mnemonics that change the flow."""
    seen = set()
    for address, mnemonic, operands in disassemble(folder, code, xlen):
        ours = classify(int.from_bytes(code[address - _BASE :][:4], "little"), xlen)
        itype, offset = expected(address, mnemonic, operands)
        assert (ours.itype, ours.offset) == (itype, offset), (hex(address), mnemonic, operands)
        if itype is not IType.NONE:
            seen.add(mnemonic)
    return seen


C_EBREAK = 0x9002


@pytest.mark.parametrize("xlen", [32, 64])
def test_every_16_bit_encoding_agrees_with_objdump(tmp_path: Path, xlen: int) -> None:
    """Or every third one, which are of all the forms but c.ebreak, which is one alone."""
    code = b"".join(half.to_bytes(2, "little") for half in [*range(0, 0x1_0000, sparse(1)), C_EBREAK] if half & 3 != 3)
    flow = {"c.beqz", "c.bnez", "c.j", "c.jr", "c.jalr", "c.ebreak", "c.unimp"} | ({"c.jal"} if xlen == 32 else set())
    assert check(tmp_path, code, xlen) == flow


@pytest.mark.parametrize("xlen", [32, 64])
def test_32_bit_encodings_agree_with_objdump(tmp_path: Path, xlen: int) -> None:
    rng = random.Random(xlen)
    words = [rng.getrandbits(32) & ~0x7F | opcode for opcode in (0x63, 0x67, 0x6F, 0x73) for _ in range(some_of(4000))]
    words += [rng.getrandbits(30) << 2 | 3 for _ in range(some_of(8000))]
    words += [rs1 << 15 | rd << 7 | 0x67 for rs1 in range(32) for rd in range(32)]
    words += [0x0000_0073, 0x0010_0073, 0x0020_0073, 0x1020_0073, 0x3020_0073, 0x7B20_0073]
    code = b"".join(word.to_bytes(4, "little") for word in words if word & 0x1F != 0x1F)
    flow = {"beq", "bne", "blt", "bge", "bltu", "bgeu", "jal", "jalr", *_OTHERS} - {"c.ebreak", "c.unimp"}
    assert check(tmp_path, code, xlen) == flow


_FORMS = """
top: beq a0, a1, top; bne a0, a1, far; blt a0, a1, top; bge a0, a1, far; bltu a0, a1, top; bgeu a0, a1, far
c.beqz a0, top; c.bnez s1, near; c.j top; near: jal top; jal x5, far; jal x0, far; call far; tail far
jalr x1, 0(x6); jalr x5, 4(x1); jalr x1, 0(x1); jalr x0, 0(x1); jalr x0, 0(x5); jalr x0, 8(x7); jalr x6, 0(x5)
c.jr x1; c.jr x5; c.jr x6; c.jalr x1; c.jalr x5; c.jalr x6
ret; ecall; ebreak; c.ebreak; mret; sret; wfi; fence.i; far: nop; c.nop
"""


@pytest.mark.parametrize("xlen", [32, 64])
def test_every_form_of_jump_and_branch_as_the_assembler_writes_it(tmp_path: Path, xlen: int) -> None:
    source, elf = tmp_path / "forms.S", tmp_path / "forms.elf"
    source.write_text(_FORMS.replace("; ", "\n") + ("c.jal top\n" if xlen == 32 else ""))
    march, abi = ("rv32imac_zifencei", "ilp32") if xlen == 32 else ("rv64imac_zifencei", "lp64")
    command = ["riscv64-unknown-elf-gcc", f"-march={march}", f"-mabi={abi}", "-nostdlib", "-Ttext=0", "-Wl,--no-relax"]
    subprocess.run([*command, str(source), "-o", str(elf)], check=True, capture_output=True)
    raw = tmp_path / "forms.bin"
    subprocess.run(["riscv64-unknown-elf-objcopy", "-O", "binary", "-j", ".text", elf, raw], check=True)
    seen = check(tmp_path, raw.read_bytes(), xlen)
    assert {"c.j", "c.jr", "c.jalr", "c.beqz", "c.bnez", "jal", "jalr", "beq", "mret", "sret", "ecall"} <= seen


@pytest.mark.parametrize(
    ("half", "itype"),
    [  # encodings from LLVM's and GNU's assembler tests (our binutils does not know these extensions)
        (0xBE42, IType.RETURN),  # cm.popret {ra}, 16
        (0xBE5E, IType.RETURN),  # cm.popret {ra, s0}, 64
        (0xBC42, IType.RETURN),  # cm.popretz {ra}, 16
        (0xBA42, IType.NONE),  # cm.pop {ra}, 16
        (0xB842, IType.NONE),  # cm.push {ra}, -16
        (0xACA2, IType.NONE),  # cm.mvsa01 s1, s0
        (0xACE2, IType.NONE),  # cm.mva01s s1, s0
        (0xA006, IType.OTHER_INFERABLE),  # cm.jt 1
        (0xA082, IType.INFERABLE_CALL),  # cm.jalt 32
    ],
)
def test_zcmp_and_zcmt(half: int, itype: IType) -> None:
    assert classify(half, 32, zcm=True) == Instruction(2, itype)
    assert classify(half, 64) == Instruction(2, IType.NONE)  # c.fsdsp


def test_lengths_by_the_isa_manual() -> None:
    """Figure "RISC-V instruction length encoding" of volume I."""
    assert [length(half) for half in (0x0001, 0x0013, 0x001F, 0x003F)] == [2, 4, 6, 8]
    assert [length(0x007F | nnn << 12) for nnn in range(7)] == [10, 12, 14, 16, 18, 20, 22]


def test_reserved_lengths_are_an_error() -> None:
    with pytest.raises(UndecodableInstruction, match="0xffff"):
        length(0xFFFF)
    with pytest.raises(UndecodableInstruction):
        classify(0x7FFF_7FFF, 64)


def test_long_and_custom_instructions_may_change_the_flow() -> None:
    """N-Trace 10.1: what a custom instruction does, only its designer knows."""
    assert classify(int.from_bytes(assembler.LONG_48[:4], "little"), 64) == Instruction(6, IType.NONE, custom=True)
    assert classify(int.from_bytes(assembler.CUSTOM_0, "little"), 64) == Instruction(4, IType.NONE, custom=True)
    assert not classify(int.from_bytes(assembler.NOP, "little"), 64).custom


def test_kinds() -> None:
    kinds = {
        "branch": [assembler.beq(8), assembler.c_beqz(-8)],
        "inferable": [assembler.jal(16), assembler.jal(-16, 1), assembler.c_j(4)],
        "uninferable": [assembler.jalr(0, 1), assembler.c_jr(6), assembler.c_jalr(5), assembler.MRET, assembler.SRET],
        "plain": [assembler.NOP, assembler.C_NOP, assembler.ECALL, assembler.EBREAK, assembler.C_EBREAK],
    }
    for kind, codes in kinds.items():
        for code in codes:
            instruction = classify(int.from_bytes(code, "little"), 64)
            assert instruction.is_branch == (kind == "branch")
            assert instruction.is_inferable_jump == (kind == "inferable")
            assert instruction.is_uninferable == (kind == "uninferable")
