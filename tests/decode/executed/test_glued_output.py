"""Logs with what the program printed in them (tests/data/reported-logs/README.md): the same instructions, or an error.

What ran follows from the logs without output, and from the twenty-one instructions of the program.
"""

from itertools import chain
from pathlib import Path

import pytest

from rvtrace_gdb.decode.executed.encoder_ingress import IngressTrap
from rvtrace_gdb.decode.executed.readers import LogError
from tests.decode.executed.reading import executed_pcs, read
from tests.helpers.started_python import rvtrace

LOGS = Path(__file__).parents[2] / "data" / "reported-logs"
ELF = LOGS / "prog.elf"
ROUND = [0x80000004, 0x80000008, 0x8000000C, 0x80000010, 0x80000014]
RAN = [0x80000000, *ROUND * 3, 0x80000018, 0x80000020, 0x80000024, 0x8000001C, 0x8000001C]


@pytest.mark.parametrize("log", sorted(path.name for path in LOGS.glob("*.log") if path.name != "crlf.log"))
def test_a_line_of_spike_behind_output(log: str) -> None:
    """Whatever the instruction is: no row less, and no trap that nothing reports."""
    items, _ = read(LOGS / log, ELF)
    assert executed_pcs(items) == RAN
    assert not [item for item in items if isinstance(item, IngressTrap)]


def test_a_carriage_return_is_output_too() -> None:
    items, _ = read(LOGS / "crlf.log", ELF)
    assert executed_pcs(items) == RAN[:3]


@pytest.mark.parametrize("log", ["t.glued.log", "t.glued.both.log"])
def test_a_tandem_trace_of_such_a_log(tmp_path: Path, log: str) -> None:
    made = []
    for name in ("t.clean.log", log):
        done = rvtrace("encode", "--elf", ELF, "--pcs", LOGS / name, "--tandem", "-o", tmp_path / name, "--quiet")
        assert (done.returncode, done.stderr) == (0, ""), done
        made.append((tmp_path / name).read_bytes())
    assert made[0] == made[1]


def changed(folder: Path, number: int, *lines: bytes) -> Path:
    """The clean log of commits with these in place of line *number*."""
    old = (LOGS / "t.clean.log").read_bytes().splitlines(keepends=True)
    path = folder / "changed.log"
    path.write_bytes(b"".join(chain(old[: number - 1], lines, old[number:])))
    return path


LINE = b"core   0: 3 0x0000000080000008 (0x00000013)"


@pytest.mark.parametrize("tandem", [False, True])
@pytest.mark.parametrize(
    "damaged",
    [
        LINE + LINE + b"\n",
        b"H" + LINE + b"i" + LINE + b"\n",
        b"core   0: 3 0x00000000800Hello\n",
        b"Hcore   0: 3 0x00000000800\n",
        b"core   0: 3 0x0000000080000008 (0x00000H013)\n",
        b"coHre   0: 3 0x0000000080000008 (0x00000013)\n",
        b"re   0: 3 0x0000000080000008 (0x00000013)\n",
    ],
)
def test_a_line_that_is_not_wholly_understood_is_an_error(tmp_path: Path, damaged: bytes, tandem: bool) -> None:
    """With its number: the instructions of such a line would be missing without a word."""
    log = changed(tmp_path, 3, damaged)
    if not tandem:
        with pytest.raises(LogError, match="line 3: expected a line of a Spike log"):
            read(log, ELF)
        return
    done = rvtrace("encode", "--elf", ELF, "--pcs", log, "--tandem", "-o", tmp_path / "x.tvt")
    assert done.returncode == 1 and "line 3:" in done.stderr, done


def test_lines_of_output_are_counted(tmp_path: Path) -> None:
    """They are passed over, and a note says how many, and where the first is."""
    items, notes = read(changed(tmp_path, 3, b"hello\n", LINE + b"\n", b"dump\n"), ELF)
    assert executed_pcs(items) == RAN
    assert "2 lines are not the simulator's and not used, as what the program prints: the first is line 3" in notes


def qemu_log(folder: Path, lines: list[bytes]) -> Path:
    path = folder / "qemu.log"
    path.write_bytes(b"".join(lines))
    return path


def blocks(*pcs: int) -> list[bytes]:
    """The lines of QEMU for blocks of the program that are entered."""
    return [b"Trace 0: 0x7f2478000740 [0000000000000000/%016x/00203003/ff020200] f\n" % pc for pc in pcs]


ENTERED = blocks(0x80000000, 0x80000004, 0x80000004, 0x80000018, 0x80000020, 0x8000001C)


def test_blocks_of_qemu_behind_output(tmp_path: Path) -> None:
    """Program and QEMU write to one terminal."""
    clean = executed_pcs(read(qemu_log(tmp_path, ENTERED), ELF)[0])
    assert clean == [0x80000000, *ROUND * 3, 0x80000018, 0x80000020, 0x80000024]
    glued = [ENTERED[0], b"H" + ENTERED[1], b"ello\n", *ENTERED[2:]]
    items, notes = read(qemu_log(tmp_path, glued), ELF)
    assert executed_pcs(items) == clean
    assert "1 line is not the simulator's and not used, as what the program prints: line 3" in notes


TRAP = b"riscv_cpu_do_interrupt: hart:0, async:0, cause:2, epc:0x80000000, tval:0x0,\n"


@pytest.mark.parametrize("more", [[], [TRAP]], ids=["in_asm", "in_asm,int"])
def test_a_log_of_qemu_that_does_not_say_what_ran(tmp_path: Path, more: list[bytes]) -> None:
    """-d in_asm alone lists code that was translated: that is said, and not that the program is another."""
    listed = b"IN: f\nPriv: 3; Virt: 0\n0x80000000:  00300293  addi t0,zero,3\n\n"
    with pytest.raises(LogError, match=r"has no line `Trace \.\.\.`, so it does not say what ran: give QEMU -d exec"):
        read(qemu_log(tmp_path, [listed, *more]), ELF)
