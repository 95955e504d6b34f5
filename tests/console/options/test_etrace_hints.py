"""What is said when options of raw E-Trace are forgotten or wrong: following it leads to the trace."""

import random
import re
import subprocess
from pathlib import Path

import pytest

from rvtrace_gdb.console.main import main
from rvtrace_gdb.console.options.etrace import words as changes
from rvtrace_gdb.decode.etrace.dialects import DEFAULTS
from rvtrace_gdb.decode.etrace.options import Dialect
from tests.console.options.beginnings import beginning
from tests.decode.etrace.vectors import ROOT, expected, vector
from tests.helpers import reference_streams
from tests.helpers.amounts import LONG, long_only

BRANCHES = ROOT / "br_j_asm" / "br_j_asm.riscv"
BENCH = ROOT / "esp32_synth" / "embench-crc32.riscv"
HELLO = ROOT / "rv_tracer" / "hello_culsans" / "hello_culsans.riscv"
QSORT = ROOT / "qsort" / "qsort.riscv"
KNOWN = "--ecause-width 5 --context-width 32"
STREAM = "br_j_asm/o01_delta_resync16.te_inst_raw"


def run(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[list[str], list[str]]:
    """What is printed, and what is said beside it."""
    main(list(map(str, words)))
    out, err = capsys.readouterr()
    return out.splitlines(), err.splitlines()


def hint(said: list[str]) -> str:
    """What is hinted at, "" without."""
    found = [line for line in said if line.startswith("hint:")]
    assert len(found) < 2
    return (
        re.sub(r"^hint:     the (trace fits far better|messages make far more sense) ", "", found[0]) if found else ""
    )


def followed(words: list[str], hinted: str) -> list[str]:
    """The options with the changes of a hint."""
    for change in hinted.split(" and "):
        with_it, option, *value = change.split()
        if option in words:
            at = words.index(option)
            has_value = at + 1 < len(words) and not words[at + 1].startswith("--")
            del words[at : at + 1 + has_value]
        if option in ("--ntrace", "--etrace"):
            words = [word for word in words if word not in ("--ntrace", "--etrace")]
        words += [option, *value] if with_it == "with" else []
    return words


@pytest.mark.parametrize(
    ("file", "program", "said", "instructions"),
    [
        ("rv_tracer/hello_culsans/packets.bin", HELLO, "--etrace", 660),
        (STREAM, BRANCHES, "--ntrace", 5149),
        *long_only(
            ("rv_tracer/hello_culsans/normalised.smi", HELLO, "--etrace --dialect pulp", 660),
            ("encap/br_j_asm.src6_type2.bin", BRANCHES, f"--etrace {KNOWN} --src-bits 6 --type-bits 2", 5149),
            ("rv_tracer/hello_culsans/encap.bin", HELLO, "--etrace --dialect pulp", 660),
            ("esp32_synth/embench-crc32.et20.bin", BENCH, "--etrace --dialect et20", 20000),
            ("esp32_synth/embench-crc32.pt10.bin", BENCH, "--etrace", 20000),
            ("esp32_synth/embench-crc32.pt10.bin", BENCH, "--ntrace", 20000),
            ("encap/br_j_asm.src12_T2_allts.bin", BRANCHES, "--ntrace", 5149),
        ),
    ],
)
def test_a_hint_that_is_followed_leads_to_the_trace(
    file: str, program: Path, said: str, instructions: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """The numbers of instructions are the vectors'; of br_j_asm without the 5 in a boot ROM that is not given."""
    words = said.split()
    hinted = hint(run(capsys, "decode", ROOT / file, "--elf", program, *words)[1])
    assert hinted
    told = run(capsys, "decode", ROOT / file, "--elf", program, *followed(words, hinted))[1]
    assert [line for line in told if line.startswith(f"history:  {instructions} instructions, ")], hinted
    assert not hint(told)


@pytest.mark.parametrize(
    ("command", "said"),
    [
        *(("dump", said) for said in ("", "--encapsulation smi", "--src-bits 3")),
        *long_only(("decode", "--src-bits 3"), ("decode", ""), ("decode", "--encapsulation smi")),
    ],
)
def test_ntrace_that_is_taken_for_etrace(command: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    elf = ["--elf", reference_streams.FOLDER / "median.elf"] if command == "decode" else []
    found = run(capsys, command, reference_streams.FOLDER / "median.1.nex", *elf, "--etrace", *said.split())[1]
    assert hint(found) == "with --ntrace"


@pytest.mark.parametrize(
    ("file", "hinted"),
    [
        (STREAM, "with --etrace"),
        ("encap/br_j_asm.src8_framed_nulls.bin", "with --etrace and with --src-bits 8"),
        ("rv_tracer/l1_test/packets.bin", "with --etrace and with --dialect pulp"),
        *long_only(("data/basic/qsort.te_data_raw", "with --etrace and with --encapsulation smi")),
    ],
)  # fmt: skip
def test_etrace_that_is_dumped_as_ntrace(file: str, hinted: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert hint(run(capsys, "dump", ROOT / file, "--ntrace")[1]) == hinted


def test_data_in_another_transport(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = beginning(ROOT / "data" / "basic" / "qsort.te_data_raw", 1000, tmp_path)
    _, said = run(capsys, "data", trace, "--etrace", "--elf", QSORT)
    assert hint(said) == "with --encapsulation smi"
    assert said[-1].startswith("rvtrace: no data trace: ")


@pytest.mark.parametrize("command", ["dump", *long_only("decode")])
def test_noise_has_no_hint(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is said beside noise that is decoded is seen in tests/console/commands/test_unreadable.py, too."""
    (tmp_path / "noise").write_bytes(random.Random(4).randbytes(6_000 if LONG else 400))
    elf = ["--elf", BRANCHES] if command == "decode" else []
    for form in ("--etrace", *long_only("--ntrace")):
        assert hint(run(capsys, command, tmp_path / "noise", form, *elf)[1]) == ""


def test_a_trace_without_synchronization_has_no_hint(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Packets of o03, which synchronizes at its start only."""
    packets = vector("br_j_asm", "o03").packets[100:200]
    (tmp_path / "rest").write_bytes(b"".join(bytes([len(packet)]) + packet for packet in packets))
    _, said = run(capsys, "decode", tmp_path / "rest", "--etrace", "--elf", BRANCHES)
    assert hint(said) == ""
    assert "without a synchronizing message" in said[-1]


def test_what_a_dialect_goes_with_is_said_when_it_goes() -> None:
    pulp = {"dialect": "pulp", **DEFAULTS[Dialect.PULP]}
    others = {key: value for key, value in pulp.items() if key not in ("dialect", "privilege_width")}
    assert changes({}, pulp) == ["with --dialect pulp"]
    assert sorted(changes(pulp, others)) == [
        "with --ecause-width 64",
        "with --encapsulation pulp",
        "with --iaddress-lsb 0",
        "with --support pulp",
        "without --dialect",
    ]
    assert changes(pulp, {**pulp, "encapsulation": "encap"}) == ["with --encapsulation encap"]
    assert changes(pulp, {key: value for key, value in pulp.items() if key != "encapsulation"}) == [
        "with --encapsulation encap"
    ]


# Sources and programs


def test_a_source_that_is_not_there_is_nobodys(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = beginning(ROOT / "encap" / "br_j_asm.src8_T2_nulls_unframed.bin", 1000, tmp_path)
    words = ["decode", file, "--etrace", "--elf", BRANCHES, *KNOWN.split(), "--src-bits", 8, "--timestamp-bytes", 2]
    shown, _ = run(capsys, *words, "--src", 3)
    assert len(shown) > (5000 if LONG else 500)
    shown, said = run(capsys, *words, "--src", 4)
    assert shown == []
    assert said[-1].startswith("rvtrace: ")
    _, said = run(capsys, *words, "--src", 256)
    assert said == ["rvtrace: --src 256 does not fit srcID: say with --src-bits how wide it is"]


@pytest.fixture(scope="module")
def rom(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The boot ROM of the vectors as an ELF of its own."""
    folder = tmp_path_factory.mktemp("rom")
    code = bytes.fromhex(vector("br_j_asm", "o05").what["bootrom"].rpartition("= ")[2])
    (folder / "rom.s").write_text(f".globl _start\n_start: .byte {', '.join(map(str, code))}\n")
    command = ["riscv64-unknown-elf-gcc", "-march=rv64i", "-mabi=lp64", "-nostdlib", "-nostartfiles", "-Wl,-N"]
    subprocess.run([*command, "-Wl,-Ttext=0x1000", "rom.s", "-o", "rom.elf"], cwd=folder, check=True)
    return folder / "rom.elf"


def test_programs_that_are_there_at_once(rom: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """o05 does not synchronize again: without the boot ROM most of it is lost. A capture keeps the code."""
    stream = ROOT / "br_j_asm" / "o05_implret_v20_stack.te_inst_raw"
    words = ["--etrace", "--parameters", stream.with_suffix(".json"), "--elf", BRANCHES, "--elf", rom]
    run(capsys, "import", stream, *words, "-o", tmp_path / "x.rvt")
    for command in (["decode", stream, *words], ["decode", tmp_path / "x.rvt"]):
        shown, said = run(capsys, *command)
        assert [int(line.split()[1].rstrip(":"), 16) for line in shown] == expected("br_j_asm", "o05")
        assert not [line for line in said if line.startswith("warning")]


def test_a_program_for_another_hart_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    _, said = run(capsys, "decode", ROOT / STREAM, "--etrace", "--elf", BRANCHES, "--elf", BENCH)
    assert said == [f"rvtrace: --elf {BENCH}: RV32, and {BRANCHES} is an RV64 program"]


def test_memory_that_nothing_accessed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = beginning(ROOT / "data" / "basic" / "qsort.te_data_raw", 1000, tmp_path)
    words = ["--etrace", "--encapsulation", "smi", "--data-reference", "--elf", QSORT]
    shown, said = run(capsys, "data", trace, *words, "0x10,4")
    assert (shown, said[-1]) == ([], "No access to 4 bytes at 0x10 is in the trace.")


def test_programs_that_ran_one_after_the_other_are_encoded(
    rom: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pcs = ROOT / "br_j_asm" / vector("br_j_asm", "o01").what["pcs_file"]
    words = ["encode", "--etrace", "--pcs", pcs, "--elf", BRANCHES, "--elf", rom, "-o", tmp_path / "x.rvt"]
    assert run(capsys, *words)[1][-1].startswith("5154 instructions, ")
    assert len(run(capsys, "decode", tmp_path / "x.rvt")[0]) == 5154


@pytest.mark.parametrize(
    ("file", "wrong", "hinted"),
    [
        ("qsort/o01_delta_resync16.te_inst_raw", "--privilege-width 3", "without --privilege-width"),
        *long_only(
            (STREAM, "--iaddress-width 39", "with --iaddress-width 64"),
            ("qsort/o01_delta_resync16.te_inst_raw", "--iaddress-lsb 2", "without --iaddress-lsb"),
            ("qsort/o01_delta_resync16.te_inst_raw", "--privilege-width 1", "without --privilege-width"),
            (STREAM, "--privilege-width 1", "without --privilege-width"),
            (STREAM, "--iaddress-lsb 2", "without --iaddress-lsb"),
        ),
    ],
)
def test_a_wrong_width_is_named_where_bytes_are_damaged_too(
    file: str, wrong: str, hinted: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And nothing else, such as another encapsulation, that would only pass over what is damaged."""
    data, rng = bytearray((ROOT / file).read_bytes()), random.Random(5)
    for _ in range(2):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    trace, program = tmp_path / "damaged", QSORT if "qsort" in file else BRANCHES
    trace.write_bytes(data)
    words = ["decode", trace, "--etrace", "--elf", program, *KNOWN.split()]
    assert hint(run(capsys, *words, *wrong.split())[1]) == hinted
    assert not hint(run(capsys, *words)[1])
