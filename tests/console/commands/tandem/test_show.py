"""`rvtrace tandem show`: what is said of a group, held against Spike's logs, the document and a model of the hart."""

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rvtrace_gdb.console.main import main
from rvtrace_gdb.decode.program.csrs import CSRS
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.tandem.decoder import decode
from rvtrace_gdb.decode.tandem.encoder import encode
from rvtrace_gdb.decode.tandem.protocol import AdditionalState, FullRegister, Group, Instr, StateId, TandemParameters
from rvtrace_gdb.views.disassembly import Disassemblers
from rvtrace_gdb.views.tandem import csr_fields
from rvtrace_gdb.views.tandem.group_rows import GroupObjects, GroupWords, Known, pages
from rvtrace_gdb.views.tandem.groups import Groups, GroupTexts
from tests.decode.tandem.corpus import DATA, Step, golden_steps, trace_bytes
from tests.decode.tandem.groups import INIT, NOP, RESET, group, pc, x

X = (
    "zero", "ra", "sp", "gp", "tp", "t0", "t1", "t2", "s0", "s1", *(f"a{n}" for n in range(8)),
    *(f"s{n}" for n in range(2, 12)), "t3", "t4", "t5", "t6",
)  # fmt: skip


def command(name: str, *words: object) -> list[str]:
    dialect, _, elf = name.partition("_")
    trace = str(DATA / "tandem" / f"{name}.tvt")
    shown = ["tandem", "show", trace, "--dialect", dialect, "--elf", str(DATA / "riscv-tests" / elf), "--quiet"]
    return [*shown, *map(str, words)]


def show(capsys: pytest.CaptureFixture[str], name: str, *words: object) -> list[str]:
    assert main(command(name, *words)) == 0
    return capsys.readouterr().out.splitlines()


def rows(capsys: pytest.CaptureFixture[str], name: str, *words: object) -> list[dict[str, Any]]:
    return [json.loads(line) for line in show(capsys, name, "--json", *words)]


def test_a_listing(capsys: pytest.CaptureFixture[str]) -> None:
    """Values as in tests/data/tandem/flute_rv64mi-p-scall.spike.gz; offsets are those of the bytes 01."""
    lines = show(capsys, "flute_rv64mi-p-scall", "95,100")
    assert lines[:7] == [
        "95\t0x00000a16 @- U 0x00000000800001cc <do_scall+0>:\tecall",
        "\texception 8 (environment call from U-mode or VU-mode), to 0x0000000080000004 <trap_vector+0>",
        "\tprivilege U -> M",
        "\tmstatus = 0x0000000a00000088 -> 0x0000000a00000080 (MIE 1 -> 0)",
        "\tmcause = 0x0000000000000002 -> 0x0000000000000008 (exception 8 (environment call from U-mode or VU-mode))",
        "\tmepc = 0x00000000800001c8 -> 0x00000000800001cc",
        "\tmtval = 0x000000003b029073 -> 0x0000000000000000",
    ]
    assert lines[-2:] == [
        "100\t0x00000abb @97 M 0x0000000080000044 <write_tohost+4>:\tsw\tgp,-64(t5) # 0x80001000",
        "\tstore 4 bytes at 0x0000000080001000 = 0x00000001",
    ]


class Model:
    """A hart that does what Spike's log says, from the program's first instruction on."""

    def __init__(self, name: str) -> None:
        self.x: dict[str, int] = {}
        self.memory: dict[int, int] = {}
        self.steps = self._steps(name)

    def _steps(self, name: str) -> Iterator[Step]:
        steps = golden_steps(name)
        for step in steps:
            if step.pc == 0x8000_0000:
                yield step
                yield from steps

    def after(self, step: Step) -> None:
        self.x |= {X[number]: value for number, value in step.x.items()}
        for address, data in step.stores:
            self.memory |= dict(enumerate(data, address))


def test_every_group_says_what_spike_says(capsys: pytest.CaptureFixture[str]) -> None:
    """Registers before and after each instruction, loads and stores, as a model has them."""
    name, model = "flute_rv64ui-p-sd", Model("flute_rv64ui-p-sd")
    found = rows(capsys, name)
    first = next(number for number, row in enumerate(found) if int(row.get("addr", "0"), 16) == 0x8000_0000)
    stores = 0
    for row, step in zip(found[first:], model.steps, strict=False):
        assert int(row["addr"], 16) == step.pc and row["opcodes"] == f"{step.word:08x}"
        written = {n: value for n, value in row["registers"].items() if n in X}
        assert {n: int(value["new"], 16) for n, value in written.items()} == {X[n]: v for n, v in step.x.items()}
        for register, value in written.items():
            if register in model.x:
                assert int(value["old"], 16) == model.x[register]
        for address, data in step.stores:
            stores += 1
            access = row["access"]
            assert (access["kind"], access["size"]) == ("store", len(data))
            assert int(access["memory"]["addr"], 16) == address
            assert int(access["value"], 16) == int.from_bytes(data, "little")
        model.after(step)
    assert stores > 30 and [row["group"] for row in found] == list(range(1, len(found) + 1))
    positions = [row["position"] for row in found if "position" in row]
    assert positions == list(range(1, len(positions) + 1))


def test_the_state_after_a_group(capsys: pytest.CaptureFixture[str]) -> None:
    name, model = "flute_rv64ui-p-sd", Model("flute_rv64ui-p-sd")
    number, steps = 9, 300
    for _ in range(steps):
        step = next(model.steps)
        model.after(step)
        number += 1
        number += step.cause is not None and step.word is None
    (state,) = rows(capsys, name, "--state", number)
    assert int(state["addr"], 16) == next(model.steps).pc and state["group"] == number and state["prv"] == 0
    for register, value in model.x.items():
        assert int(state["registers"][register], 16) == value
    known: dict[int, int] = {}
    for row in state["memory"]:
        pairs = [row["bytes"][at : at + 2] for at in range(0, 32, 2)]
        known |= {int(row["addr"], 16) + at: int(pair, 16) for at, pair in enumerate(pairs) if pair != ".."}
    assert known == model.memory and len(known) > 8
    lines = show(capsys, name, "--state", number)
    assert lines[0].startswith(f"state after group {number} of ") and lines[2] == "privilege: U"
    assert f"sp = 0x{model.x['sp']:016x}" in lines


def numbers(found: list[dict[str, Any]]) -> list[int]:
    return [row["group"] for row in found if "lost" not in row]


def test_only_some_groups(capsys: pytest.CaptureFixture[str]) -> None:
    name = "flute_rv64mi-p-scall"
    whole = rows(capsys, name)
    writers = [row["group"] for row in whole if {"t0", "mstatus"} & row["registers"].keys()]
    assert numbers(rows(capsys, name, "--register", "x5", "--register", "$csr768")) == writers
    assert numbers(rows(capsys, name, "--register", "t0", "--register", "mstatus", "20,60")) == [
        number for number in writers if 20 <= number <= 60
    ]
    assert numbers(rows(capsys, name, "--address", "0x80001002,2")) == numbers(
        rows(capsys, name, "--address", "tohost")
    )
    assert numbers(rows(capsys, name, "--address", "tohost")) == [100]
    inside = [row["group"] for row in whole if row.get("func") == "write_tohost"]
    assert numbers(rows(capsys, name, "--function", "write_tohost")) == inside and len(inside) > 2
    assert numbers(rows(capsys, name, "--traps")) == [1, 54, 95]
    assert numbers(rows(capsys, name, "--register", "t5", "--function", "write_tohost")) == [99, 102]
    assert main([word for word in command(name, "--register", "s5", "90,99") if word != "--quiet"]) == 0
    out, err = capsys.readouterr()
    assert out == "" and "none of the groups 90 to 99 writes s5" in err


def test_element_by_element_as_the_document_has_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Table C.1 of the specification: add gp, t0, t1."""
    trace = tmp_path / "c1.tvt"
    trace.write_bytes(bytes.fromhex("01 03 11 b3 81 62 00 04 03 10 34 12 00 00 00 00 00 00 02"))
    assert main(["tandem", "show", str(trace), "--raw", "--quiet"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "1\t0x00000000 @- ? at an address that is not known:\t.4byte\t0x006281b3"
    assert lines[1:] == [
        "\tbegin group", "\tincrement pc", "\t32-bit instruction 0x006281b3",
        "\tfull register gp (x3) = 0x0000000000001234", "\tend group",
    ]  # fmt: skip
    assert main(["tandem", "show", str(trace), "/r", "--quiet"]) == 0
    assert capsys.readouterr().out.splitlines() == lines


def test_what_the_program_does_not_have_there_is_the_trace_s(capsys: pytest.CaptureFixture[str]) -> None:
    """With another program the addresses have its names, and the instructions are those that ran."""
    name = "flute_rv64mi-p-scall"
    words = command(name, "11")
    words[words.index("--elf") + 1] = str(DATA / "riscv-tests" / "rv64ui-p-add")
    assert main([*words, "--json"]) == 0
    out, err = capsys.readouterr()
    assert "warning: trace does not match rv64ui-p-add at 0x80000000" in err
    assert json.loads(out.splitlines()[0])["inst"] == "li\tra,0"
    assert [json.loads(line)["opcodes"] for line in out.splitlines()] == [
        row["opcodes"] for row in rows(capsys, name, "11")
    ]


def test_what_is_wrong_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Losses where they are, with nothing known behind them, and rules that are broken."""
    trace, parameters = tmp_path / "x.tvt", TandemParameters(64, 64)
    at = 0x8000_0000
    parts: list[Group | bytes] = [group(RESET), group(NOP, x(5, 7), pc(at + 4)), b"\xdc" * 9]
    parts += [group(NOP, x(5, number), pc(at + 4 * number)) for number in range(8, 14)]
    parts += [group(INIT, x(6, 1)), group(NOP, INIT, pc(at + 56))]
    trace.write_bytes(b"".join(part if isinstance(part, bytes) else encode([part], parameters) for part in parts))
    assert main(["tandem", "show", str(trace), "--quiet"]) == 0
    out, err = capsys.readouterr()
    lines = out.splitlines()
    lost = next(number for number, line in enumerate(lines) if "[" in line)
    assert lines[lost].startswith("3\t[") and "trace byte 0x" in lines[lost]
    assert lines[lost + 2] == "\tt0 = 0x0000000000000008" and " ? 0x" in lines[lost + 1]
    assert any(line.endswith("state initialization, from outside the hart") for line in lines)
    assert "\twarning: a state initialization and an instruction in one group" in lines
    assert "warning:" in err


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (("9999",), 1, "Range out of bounds: numbers go from 1 to "),
        (("x",), 1, "Expected positive number, got: x."),
        (("/q",), 1, "Invalid modifier: q."),
        (("--state", "9999"), 1, "--state 9999: the trace has 102 groups"),
        (("--state", "3", "1,2"), 1, "--state N shows the state after one group"),
        (("--register", "q9"), 1, "--register q9: there is no such register"),
        (("--address", "nowhere"), 1, "--address nowhere: neither ADDRESS, nor ADDRESS,SIZE, nor a symbol of "),
        (("--address", "0x10,0"), 1, "--address 0x10,0: neither"),
        (("--function", "nowhere"), 1, "--function nowhere: "),
        (("--hart", "1"), 1, "--hart 1: it has no tandem trace, only hart 0"),
        (("--flen", "7"), 2, "argument --flen: invalid choice: "),
    ],
)
def test_what_cannot_be_shown(
    words: tuple[str, ...], status: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        found = main(command("flute_rv64mi-p-scall", *words))
    except SystemExit as error:
        found = int(error.code or 0)
    out, err = capsys.readouterr()
    assert (found, out) == (status, "") and said in err.splitlines()[-1]


def test_no_bytes_make_it_fail() -> None:
    """Damaged traces are shown, whole and as objects, and every state in them."""
    rng, image = random.Random(9), Image(64)
    content = trace_bytes("flute_rv64ua-p-amoadd_d")
    with Disassemblers(image) as source:
        for _ in range(25):
            data = bytearray(content[: rng.randrange(1500)] + rng.randbytes(rng.randrange(60)) + content[2600:])
            for _ in range(rng.randrange(30)):
                data[rng.randrange(len(data))] = rng.randrange(256)
            tandem = decode(bytes(data), image, TandemParameters(64, 64))
            groups = Groups(tandem)
            texts = GroupTexts(source, image, 64)
            for row in groups.rows(range(len(groups))):
                row = row._replace(pc=None)  # no disassembler for what is not a program
                assert list(GroupWords(groups, texts).lines(row)) and list(
                    GroupWords(groups, texts, raw=True).lines(row)
                )
                for line in GroupObjects(groups, texts, 0, raw=True).lines(row):
                    json.loads(line)
            for number in range(0, len(groups) + 1, 40):
                json.loads(Known(tandem, number, None).json(0))


def test_encodings_and_modes_that_no_hart_has() -> None:
    """An instruction with the length of another one, for which a disassembler wants more bytes; behind mode 2.

    What tells of a mode that cannot be is noise: nothing in it is believed.
    """
    image, sent = Image(64), [group(INIT, pc(0x8000_0000)), group(pc(0x8000_0004), Instr(0x3, 2))]
    sent.append(group(pc(0x8000_0006), AdditionalState(StateId.PRIVILEGE_MODE, 2), Instr(0x1, 4)))
    sent.append(group(pc(0x200), FullRegister(0x342, 1 << 63 | 7), FullRegister(0x341, 0x8000_0006)))
    tandem = decode(encode(sent, TandemParameters(64, 64)), image, TandemParameters(64, 64))
    with Disassemblers(image) as source:
        groups, texts = Groups(tandem), GroupTexts(source, image, 64)
        [rows] = pages(groups, texts, range(1, 4))
        heads = [next(line for line in GroupWords(groups, texts).lines(row) if "[" not in line) for row in rows]
    assert [head.partition(" ")[2] for head in heads] == [
        "@1 ? 0x0000000080000000:\t.2byte\t0x0003", "@- ? at an address that is not known:\t.4byte\t0x00000001",
        "interrupt 7 (machine timer interrupt) at ? 0x0000000080000006",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("csr", "xlen", "old", "new", "words"),
    [
        ("mstatus", 64, 0x1800, 0x80, "MPIE 0 -> 1, MPP M -> U"),
        ("mstatus", 32, None, 0x8000_6100, "SPP S, FS Dirty, SD 1"),
        ("mstatus", 64, None, 0xA_0000_0000, "UXL 64, SXL 64"),
        ("mip", 64, 0, 0x82, "SSIP 0 -> 1, MTIP 0 -> 1"),
        ("mcause", 32, None, 0x8000_0007, "interrupt 7 (machine timer interrupt)"),
        ("scause", 64, 3, 12, "exception 12 (instruction page fault)"),
        ("satp", 64, 0, 8 << 60 | 3 << 44 | 0x80002, "PPN 0 -> 0x80002, ASID 0 -> 3, MODE Bare -> Sv39"),
        ("satp", 32, None, 0x8008_0003, "PPN 0x80003, MODE Sv32"),
        ("fcsr", 64, 0, 0x21, "NX 0 -> 1, RM RNE -> RTZ"),
        ("mtvec", 64, 0, 0x8000_0301, "MODE direct -> vectored"),
        ("mstatush", 32, 0, 0x80, "MPV 0 -> 1"),
        ("mscratch", 64, 0, 5, ""),
    ],
)
def test_the_fields_of_csrs(csr: str, xlen: int, old: int | None, new: int, words: str) -> None:
    """Bits as in the Privileged Architecture, chapter 3 and 12; fcsr: F extension."""
    assert csr_fields.change_text(CSRS[csr], old, new, xlen) == words


def test_a_trap_whose_cause_is_not_told_is_not_called_an_interrupt(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A pc and no instruction: an exception of the fetch looks the same."""
    file = tmp_path / "x.tvt"
    groups = [group(RESET), group(pc(0x1000)), group(pc(0x200)), group(pc(0x204), NOP)]
    file.write_bytes(encode(groups, TandemParameters(64)))
    words = ["tandem", "show", str(file), "--xlen", "64", "--quiet"]
    assert main(words) == 0
    out = capsys.readouterr().out
    assert out.count(" exception or interrupt") == 2 and "cause not known" not in out
    assert main([*words, "--json"]) == 0
    traps = [row["trap"] for row in map(json.loads, capsys.readouterr().out.splitlines()) if "trap" in row]
    assert traps and all(trap.keys() <= {"text", "from", "to"} for trap in traps)
    assert {trap["text"] for trap in traps} == {"exception or interrupt"}
