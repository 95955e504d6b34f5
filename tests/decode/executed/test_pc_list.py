"""Lists of addresses, in the forms other programs write them."""

import gzip
from pathlib import Path

import pytest

from rvtrace_gdb.decode.executed.encoder_ingress import IngressTrap
from rvtrace_gdb.decode.executed.readers import LogError
from tests.decode.executed.reading import executed_pcs, read
from tests.transport.simulated.hart.programs import build

DATA = Path(__file__).resolve().parents[2] / "data" / "ntrace-reference"
T1 = DATA / "t1.elf"
# The first instructions of t1 with the kinds and sizes that the reference code's converter gives them.
SEQUENCE = ["0x20010522,C4", "0x200104F0,L2", "0x200104F2,L2", "0x200104F4,L4"]


def pcs_of(tmp_path: Path, text: str, *, format: str | None = None) -> list[int]:
    log = tmp_path / "pcs.txt"
    log.write_text(text)
    return executed_pcs(read(log, T1, format=format)[0])


def first_pcs(count: int) -> list[int]:
    with gzip.open(DATA / "t1.pcs.gz", "rt") as file:
        return [int(next(file), 16) for _ in range(count)]


def test_every_form_of_an_address(tmp_path: Path) -> None:
    pcs = first_pcs(4)
    bare = "".join(f"{pc:x}\n" for pc in pcs)
    assert pcs_of(tmp_path, bare) == pcs
    assert pcs_of(tmp_path, bare.upper()) == pcs
    assert pcs_of(tmp_path, bare.replace("\n", "\r\n")) == pcs
    assert pcs_of(tmp_path, bare.rstrip("\n")) == pcs
    assert pcs_of(tmp_path, "".join(f"0x{pc:016X}\n" for pc in pcs)) == pcs
    assert pcs_of(tmp_path, "".join(f"  0x{pc:x}  \n\n" for pc in pcs)) == pcs


def test_comments(tmp_path: Path) -> None:
    pcs = first_pcs(3)
    text = f"# made by hand\n; so to say\n// 3 lines\n{pcs[0]:x} # first\n\n0x{pcs[1]:x}\n{pcs[2]:x}; last\n"
    assert pcs_of(tmp_path, text) == pcs


def test_the_lists_of_the_reference_code(tmp_path: Path) -> None:
    """With kind and size; `.end` ends them, whatever follows."""
    pcs = first_pcs(6)
    kinds = ("L4", "BN2", "JI2", "CI4", "R2", "C4")
    text = "".join(f"0x{pc:X},{kind}\n" for pc, kind in zip(pcs, kinds, strict=True))
    assert pcs_of(tmp_path, text) == pcs
    assert pcs_of(tmp_path, text + ".end\n0x10\n") == pcs


def test_addresses_of_a_32_bit_hart_may_be_sign_extended(tmp_path: Path) -> None:
    elf = build(tmp_path, "start.S", "workload.c", march="rv32imac")
    log = tmp_path / "pcs.txt"
    log.write_text("ffffffff80000000\nffffffff80000004\n")
    assert executed_pcs(read(log, elf)[0]) == [0x8000_0000, 0x8000_0004]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("hello", r"expected an address in hexadecimal \(.*\), found `hello`"),
        ("0x2001_0zz2", "found `0x2001_0zz2`"),
        ("0x20010522,X4", "found `0x20010522,X4`"),
        ("0x20010522,CD4,0x20010500", "found `0x20010522,CD4,0x20010500`"),
        ("20010522 20010524", "found `20010522 20010524`"),
        ("-4", "found `-4`"),
        ("20010523", "no instruction can be at 0x20010523, an odd address"),
        ("120010522", "0x120010522 is not an address of a 32-bit hart"),
        ("q" * 300, r"found `q{57}\.\.\.`"),
        ("\x1b[31m", r"found `\?\[31m`"),
    ],
)
def test_a_bad_line_is_one_clear_error(line: str, problem: str, tmp_path: Path) -> None:
    before = [f"{pc:x}" for pc in first_pcs(200)]
    with pytest.raises(LogError, match=rf"pcs.txt, line 201: .*{problem}$") as caught:
        pcs_of(tmp_path, "\n".join([*before, line, *before]))
    assert "\n" not in str(caught.value)


def test_the_format_can_be_named(tmp_path: Path) -> None:
    """Where the first lines are not addresses: then the first of them is at fault."""
    with pytest.raises(LogError, match=r"pcs.txt: is neither a list of addresses nor a log of Spike .*--format"):
        pcs_of(tmp_path, "the trace:\n20010522\n")
    with pytest.raises(LogError, match="line 1: expected an address"):
        pcs_of(tmp_path, "the trace:\n20010522\n", format="pcs")


def test_an_ecall_that_is_not_listed_is_an_exception_all_the_same(tmp_path: Path) -> None:
    elf = build(tmp_path, "traps.S", march="rv64imac")
    listing = tmp_path / "pcs.txt"
    # From the disassembly: `trapping ecall` in `exceptions` is preceded by the two instructions that load s0.
    ecall = elf.read_bytes().find(bytes.fromhex("73000000")) - 0x1000 + 0x8000_0000
    handler = 0x8000_0420
    listing.write_text(f"{ecall - 8:x}\n{ecall - 4:x}\n{handler:x}\n")
    items, notes = read(listing, elf)
    assert [(item.epc, item.interrupt, item.handler) for item in items if isinstance(item, IngressTrap)] == [
        (ecall, False, handler)
    ]
    assert len(notes) == 1 and notes[0].startswith("1 trap was guessed, from steps the code cannot make: ")
