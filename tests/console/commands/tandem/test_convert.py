"""`rvtrace tandem convert`: the logs are Spike's own, line for line; the rows of riscv-dv say what those logs say."""

import csv
import gzip
import json
import re
from collections.abc import Iterable
from itertools import islice
from pathlib import Path

import pytest

from rvtrace_gdb.console.main import main
from rvtrace_gdb.decode.executed.readers import Log
from rvtrace_gdb.decode.program import debug_info
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.tandem.decoder import DecodedTandem, decode
from rvtrace_gdb.decode.tandem.encoder import GroupEncoder, Retired
from rvtrace_gdb.decode.tandem.logs.spike import CommitLog
from rvtrace_gdb.decode.tandem.protocol import Instr, TandemParameters
from rvtrace_gdb.session.exports.logs.commits import Spelling
from rvtrace_gdb.session.exports.logs.riscv_dv import TraceCsv
from rvtrace_gdb.session.exports.logs.spike_log import SpikeLog
from rvtrace_gdb.views.disassembly import Disassemblers
from rvtrace_gdb.views.tandem.groups import Groups, GroupTexts
from tests.decode.tandem.corpus import DATA, GOLDEN, Step, decoded, golden_steps, parameters_of, program_of
from tests.helpers.commit_logs import encode_log

OTHER_PATHS = {
    "flute_rv64ua-p-lrsc": "sc.w    a4, a4, (a0)", "piccolo_rv32ua-p-lrsc": "sc.w    a4, a4, (a0)",
    "piccolo_rv32mi-p-breakpoint": "csrw    tdata1, a0",
}  # fmt: skip
"""The core goes another way from this instruction on: sc never succeeds there, and there are no triggers."""
PROGRAM = re.compile(r"core +0: (>>>>  _start|0x0*80000000 )")


def log_of(
    tandem: DecodedTandem, image: Image, *, symbols: dict[int, str] | None = None, mode: int | None = None
) -> SpikeLog:
    groups, xlen = Groups(tandem), tandem.trace.parameters.xlen
    return SpikeLog(groups, Spelling(GroupTexts(Disassemblers(image), image, xlen), xlen), 0, symbols or {}, mode)


def spike_lines(
    tandem: DecodedTandem, image: Image, *, symbols: dict[int, str] | None = None, mode: int | None = None
) -> list[str]:
    log = log_of(tandem, image, symbols=symbols, mode=mode)
    return list(log.lines(Groups(tandem).rows(range(len(tandem.trace)))))


def of_program(lines: Iterable[str]) -> list[str]:
    """Without the boot ROM, which is another one."""
    all_lines = list(lines)
    begin = next(number for number, line in enumerate(all_lines) if PROGRAM.match(line))
    return all_lines[begin:]


def golden_lines(name: str) -> list[str]:
    """What Spike wrote, but for what docs/tandem.md lists: registers and bits these cores have otherwise."""
    text = gzip.decompress((DATA / "tandem" / f"{name}.spike.gz").read_bytes()).decode()
    text = re.sub(r" c784_mstatush 0x0+ c1957_tcontrol 0x0+", "", text)
    text = re.sub(r"c777_mvip 0x0+ c836_mip 0x0+82\n", "c836_mip 0x0000000000000002\n", text)
    if name.startswith("flute_rv64si"):
        text = text.replace("c770_medeleg 0x000000000000b108", "c770_medeleg 0x000000000000b109")
    if name == "flute_rv64ui-v-add":
        text = re.sub(r"( c768_mstatus 0x8000000a000[04]6)0", r"\g<1>6", text)  # VS, from its first write on
    if name == "flute_rv64mi-p-csr":  # the first that tells fflags, which nobody knew before
        text = text.replace("f0  0xffffffff00000000\n", "f0  0xffffffff00000000 c1_fflags 0x0000000000000000\n")
    return of_program(text.splitlines())


@pytest.mark.parametrize("name", GOLDEN)
def test_the_log_is_the_one_spike_writes(name: str) -> None:
    image = program_of(name)
    found = of_program(spike_lines(decoded(name), image, symbols=debug_info.symbol_names(image.path)))
    expected = golden_lines(name)[: len(found)]
    if name in OTHER_PATHS:
        differ = next(n for n, (one, other) in enumerate(zip(found, expected, strict=True)) if one != other)
        assert differ > 60 and found[differ - 1].endswith(OTHER_PATHS[name])
    else:
        assert found == expected


def rows_of(tandem: DecodedTandem, image: Image) -> list[list[str]]:
    groups, xlen = Groups(tandem), tandem.trace.parameters.xlen
    form = TraceCsv(groups, Spelling(GroupTexts(Disassemblers(image), image, xlen), xlen))
    lines = list(form.lines(groups.rows(range(len(groups)))))
    assert all(line.endswith("\r") for line in lines)
    return list(csv.reader(line[:-1] for line in lines))


X = [
    "zero",
    "ra",
    "sp",
    "gp",
    "tp",
    "t0",
    "t1",
    "t2",
    "s0",
    "s1",
    "a0",
    "a1",
    "a2",
    "a3",
    "a4",
    "a5",
    "a6",
    "a7",
    "s2",
    "s3",
    "s4",
    "s5",
    "s6",
    "s7",
    "s8",
    "s9",
    "s10",
    "s11",
    "t3",
    "t4",
    "t5",
    "t6",
]
F = [*(f"ft{n}" for n in range(8)), "fs0", "fs1", *(f"fa{n}" for n in range(8)), *(f"fs{n}" for n in range(2, 12)),
     *(f"ft{n}" for n in range(8, 12))]  # fmt: skip


def row_of(step: Step, xlen: int) -> list[str]:
    """A step of Spike's as riscv-dv's document has it: pc, gpr, binary, mode."""
    written = [f"{X[n]}:{value:0{xlen // 4}x}" for n, value in step.x.items()]
    written += [f"{F[n]}:{value:016x}" for n, value in step.f.items()]
    mode = "" if step.mode is None else str(step.mode)
    return [f"{step.pc:0{xlen // 4}x}", ";".join(written), f"{step.word:08x}", mode]


@pytest.mark.parametrize(
    "name", ["flute_rv64ud-p-fadd", "flute_rv64uc-p-rvc", "flute_rv64si-p-scall", "piccolo_rv32ui-p-lw"]
)
def test_the_rows_are_what_spike_did(name: str) -> None:
    xlen = parameters_of(name).xlen
    rows = rows_of(decoded(name), program_of(name))
    begin = next(number for number, row in enumerate(rows) if int(row[0], 16) == 0x8000_0000)
    steps = [step for step in golden_steps(name) if step.word is not None]
    start = next(number for number, step in enumerate(steps) if step.pc == 0x8000_0000)
    assert len(rows) > begin + 100
    for row, step in zip(rows[begin:], steps[start:], strict=False):
        expected = row_of(step, xlen)
        assert [row[0], row[2], row[4], row[5] if step.mode is not None else ""] == expected


def test_the_csv_as_riscv_dv_writes_it(tmp_path: Path) -> None:
    """Rows as its converter makes them of the same program's log, but for csrr and li, which are not instructions."""
    name, out = "flute_rv64mi-p-scall", tmp_path / "out.csv"
    elf = DATA / "riscv-tests" / "rv64mi-p-scall"
    words = [
        str(DATA / "tandem" / f"{name}.tvt"),
        "--dialect",
        "flute",
        "--elf",
        str(elf),
        "--to",
        "riscv-dv",
        "--quiet",
    ]
    assert main(["tandem", "convert", *words, "-o", str(out)]) == 0
    lines = out.read_bytes().split(b"\r\n")
    assert lines[0] == b"pc,instr,gpr,csr,binary,mode,instr_str,operand,pad"
    for line in (
        b'0000000080000000,jal,,,04c0006f,3,j       0x4c,"zero,76",',
        b'0000000080000054,addi,gp:0000000000000000,,00000193,3,"li      gp, 0","gp,zero,0",',
        b'000000007000000c,ld,t0:00000000c0000000,,0182b283,3,"ld      t0, 24(t0)","t0,t0,24",',
        b'0000000070000008,csrrs,a0:0000000000000000,,f1402573,3,"csrr    a0, mhartid","a0,mhartid,zero",',
        b'0000000080000164,csrrwi,,mstatus:0000000a00000000,30005073,3,"csrwi   mstatus, 0","zero,mstatus,0",',
        b'000000008000000c,beq,,,03ff0a63,3,"beq     t5, t6, 52","t5,t6,52",',
        b'0000000080000044,sw,,,fc3f2023,3,"sw      gp, -64(t5)","gp,t5,-64",',
        b"00000000800001cc,ecall,,mstatus:0000000a00000080;mcause:0000000000000008;mepc:00000000800001cc;"
        b"mtval:0000000000000000,00000073,0,ecall,,",
    ):
        assert line in lines, line


@pytest.mark.parametrize(
    "name", ["flute_rv64ud-p-fadd", "flute_rv64si-p-csr", "piccolo_rv32mi-p-ma_addr", "flute_rv64ua-p-amoadd_d"]
)
def test_there_and_back_again(name: str, tmp_path: Path) -> None:
    """The log read again makes a trace with the same state after every instruction, as far as Spike logs it."""
    tandem, image = decoded(name), program_of(name)
    parameters = TandemParameters(parameters_of(name).xlen, 64)
    log = tmp_path / "out.log"
    log.write_text("\n".join(spike_lines(tandem, image)) + "\n")
    sent: list[bytes] = []
    with Log(str(log)) as opened:
        encode_log(CommitLog(opened, parameters.xlen, image), GroupEncoder(parameters, sent.append))
    back = decode(b"".join(sent), image, parameters)
    assert list(back.history.pcs()) == list(tandem.history.pcs())
    assert [trap._replace(group=0) for trap in back.index.traps] == [
        trap._replace(group=0, tval=trap.tval or 0) for trap in tandem.index.traps
    ]
    for position in range(0, len(tandem.history), 5):
        one, other = tandem.before(position), back.before(position)
        assert (one.xs(), one.fs()) == (other.xs(), other.fs())
        mine, theirs = one.csrs(), other.csrs()
        assert {n: value for n, value in theirs.items() if mine.get(n, value) != value} == {}
        assert one.memory(0x8000_1000, 4) == other.memory(0x8000_1000, 4)
        assert one.memory(0x8000_2000, 32) == other.memory(0x8000_2000, 32)


RV64 = TandemParameters(64, 64)
SPIN = Instr(0xA001, 2)  # c.j 0


def made(*steps: Retired, begin: int = 0x8000_0000) -> DecodedTandem:
    sent: list[bytes] = []
    encoder = GroupEncoder(RV64, sent.append)
    encoder.begin(begin)
    for step in steps:
        encoder.put(step)
    encoder.finish()
    return decode(b"".join(sent), Image(64), RV64)


def test_a_jump_to_itself_is_listed_once() -> None:
    """Spike says how often when something else comes (riscv/processor.cc, disasm)."""
    here = 0x8000_0000
    spin = Retired(here, SPIN, privilege=3)
    interrupt = Retired(0x100, None, csrs=((0x342, 1 << 63 | 7), (0x341, here)), privilege=3)
    tandem = made(spin, spin, spin, interrupt, Retired(0x104, Instr(0x13, 4)))
    commit = "core   0: 3 0x0000000080000000 (0xa001)"
    assert spike_lines(tandem, Image(64), mode=3) == [
        "core   0: 0x0000000080000000 (0x0000a001) c.j     pc + 0", commit, commit, commit,
        "core   0: exception interrupt #7, epc 0x0000000080000000",
        "core   0: Executed 3 times",
        "core   0: 0x0000000000000100 (0x00000013) nop", "core   0: 3 0x0000000000000100 (0x00000013)",
    ]  # fmt: skip


def test_what_the_trace_does_not_tell_is_left_out() -> None:
    nop = Retired(0x8000_0004, Instr(0x13, 4), gpr=(5, 1))
    for mode, commits in ((None, []), (1, ["core   0: 1 0x0000000080000000 (0x00000013) x5  0x0000000000000001"])):
        tandem = made(nop)
        log = log_of(tandem, Image(64), mode=mode)
        lines = list(log.lines(Groups(tandem).rows(range(len(tandem.trace)))))
        assert lines == ["core   0: 0x0000000080000000 (0x00000013) nop", *commits]
        assert sum(log.left_out.values()) == (mode is None)


def test_a_csr_without_a_name_comes_back(tmp_path: Path) -> None:
    """Spike calls all that are custom unknown-csr."""
    write = Retired(0x8000_0004, Instr(0x7C05_1073, 4), csrs=((0x7C0, 5),))
    lines = spike_lines(made(write, Retired(0x8000_0008, Instr(0x13, 4))), Image(64), mode=3)
    assert "core   0: 3 0x0000000080000000 (0x7c051073) c1984_unknown-csr 0x0000000000000005" in lines
    (tmp_path / "x.log").write_text("\n".join(lines) + "\n")
    with Log(str(tmp_path / "x.log")) as opened:
        assert [one.csrs for one in CommitLog(opened, 64).retired()] == [((0x7C0, 5),), ()]


def convert(*words: object) -> list[str]:
    trace = DATA / "tandem" / "flute_rv64mi-p-scall.tvt"
    return ["tandem", "convert", str(trace), "--dialect", "flute", *map(str, words)]


def test_a_loss_is_in_the_log_and_readers_go_over_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content = (DATA / "tandem" / "flute_rv64mi-p-scall.tvt").read_bytes()
    (tmp_path / "x.tvt").write_bytes(content[:1300] + b"\xdc" * 40 + content[1440:])
    words = ["tandem", "convert", str(tmp_path / "x.tvt"), "--dialect", "flute", "--to", "spike", "-o"]
    assert main([*words, str(tmp_path / "x.log"), "--json"]) == 0
    out, err = capsys.readouterr()
    assert "warning: a part of the trace cannot be decoded, at byte" in err
    facts = json.loads(out)
    lines = (tmp_path / "x.log").read_text().splitlines()
    assert facts["format"] == "spike" and facts["lines"] == len(lines)
    lost = [line for line in lines if not line.startswith("core   0: ")]
    assert len(lost) == 1 and re.fullmatch(r"\[.*; trace byte 0x[0-9a-f]+\]", lost[0])
    assert "commits of instructions whose privilege mode is not known are left out" in facts["messages"][0]
    with Log(str(tmp_path / "x.log")) as opened:
        assert len(list(CommitLog(opened, 64).retired())) > 50
    assert main([*words, "-", "--mode", "M", "40,+30"]) == 0
    out, err = capsys.readouterr()
    assert "left out" not in err and len(out.splitlines()) > 55


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (("--to", "spike"), 2, "the following arguments are required: -o/--output"),
        (("--to", "vcd", "-o", "x"), 2, "invalid choice: 'vcd'"),
        (("--to", "spike", "-o", "/dev/full"), 1, "/dev/full: cannot be written: No space left on device"),
        (("--to", "spike", "-o", "/nonexistent/x"), 1, "/nonexistent/x: cannot be written: No such file or directory"),
        (("--to", "spike", "-o", "-", "--json"), 1, "--json and -o - would both write to standard output"),
        (("--to", "spike", "-o", "-", "900"), 1, "Range out of bounds: numbers go from 1 to "),
        (("--to", "spike", "-o", "-", "--hart", "7"), 1, "--hart 7: it has no tandem trace, only hart 0"),
    ],
)  # fmt: skip
def test_what_cannot_be_done(
    words: tuple[str, ...], status: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        found = main(convert(*words))
    except SystemExit as error:
        found = int(error.code or 0)
    err = capsys.readouterr().err.splitlines()
    assert found == status and said in err[-1]


def test_only_some_groups(tmp_path: Path) -> None:
    whole, part = tmp_path / "whole.log", tmp_path / "part.log"
    assert main(convert("--to", "spike", "-o", whole, "--quiet")) == 0
    assert main(convert("--to", "spike", "-o", part, "20,+3", "--quiet")) == 0
    lines = part.read_text().splitlines()
    assert len(lines) == 6 and "\n".join(lines) in whole.read_text()
    assert not list(islice(tmp_path.glob("*.tmp"), 1))
