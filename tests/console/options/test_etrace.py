"""Raw E-Trace on the command line: import, decode, dump, data, and what is said of options that are wrong."""

import gzip
import json
import re
from pathlib import Path

import pytest

from rvtrace_gdb.console.main import main, parser
from rvtrace_gdb.console.options import raw
from rvtrace_gdb.console.options.request import EncoderBytes
from rvtrace_gdb.session.capture.etrace_settings import EtraceTraceOptions, etrace_of
from rvtrace_gdb.session.capture.file import load, save
from rvtrace_gdb.session.formats.sinks import feeding, options_of
from rvtrace_gdb.session.queries.lists.search import NO_ACCESSES
from tests.console.options.beginnings import beginning
from tests.decode.etrace.vectors import ROOT, expected, vector
from tests.helpers.amounts import LONG, long_only, thorough
from tests.helpers.without_guesses import without_guesses

PROGRAM = ROOT / "br_j_asm"
ELF = str(PROGRAM / "br_j_asm.riscv")
STREAM = str(PROGRAM / "o01_delta_resync16.te_inst_raw")
ALIKE = "--ecause-width 5 --context-width 32 --ecall-retires"
"""How the streams of the vectors were made, most of them."""


@pytest.fixture(scope="module")
def rom(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The code the programs of the vectors begin in, as the option --kernel-pages takes it."""
    folder = tmp_path_factory.mktemp("rom")
    code = vector("br_j_asm", "o01").what["bootrom"].rpartition("= ")[2]
    (folder / "kmem.0x1000").write_bytes(bytes.fromhex(code))
    return str(folder)


def run(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[list[str], list[str]]:
    """What is printed, and what is said beside it."""
    assert main(list(map(str, words))) == 0
    out, err = capsys.readouterr()
    return out.splitlines(), err.splitlines()


def listed(lines: list[str]) -> list[int]:
    return [int(found[1], 16) for line in lines if (found := re.match(r"\d+\t   0x([0-9a-f]+)", line))]


@pytest.mark.parametrize(
    ("option", "more"),
    [
        ("o01_delta_resync16", ""),
        ("o02_full_addr", ""),
        ("o04_sijump", ""),
        ("o05_implret_v20_stack", ""),
        ("o06_implret_ext_irets", "--support standard"),
        ("o07_bpred", ""),
        ("o08_jtc", ""),
        ("o10_all_ext", "--support standard"),
        ("o11_implicit_exc", "{handlers}"),
        ("o12_time_context", ""),
        ("o13_no_compress", ""),
        ("o14_ecall_not_retired", ""),
        ("o15_nocontext_min", ""),
    ],
)
def test_streams_are_decoded_as_their_descriptions_say(
    option: str, more: str, rom: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The descriptions name parameters as the specification does, with _p."""
    traps = vector("br_j_asm", option[:3]).what["trap_vectors"] or ()
    handlers = " ".join(f"--trap-handler {'i' * t['interrupt']}{t['cause']}=0x{t['handler']}" for t in traps)
    words = ["decode", PROGRAM / f"{option}.te_inst_raw", "--etrace", "--encapsulation", "smi", "--kernel-pages", rom]
    words += ["--parameters", PROGRAM / f"{option}.json", "--elf", ELF, *more.format(handlers=handlers).split()]
    shown, said = run(capsys, *words)
    assert listed(shown) == expected("br_j_asm", option[:3])
    assert not [line for line in said if line.startswith(("warning", "hint"))]


def test_every_option_is_said_to_the_decoder(tmp_path: Path, rom: str) -> None:
    words = (
        "--iaddress-width 39 --iaddress-lsb 2 --privilege-width 3 --ecause-width 6 --context-width 17 --time-width 40"
        " --bpred-size 7 --cache-size 5 --return-stack-size 3 --call-counter-size 2 --f0s-width 2 --iret-ext"
        " --ecall-retires --data-width 128 --daddress-width 48 --lrid-width 4 --data-format-width 2"
        " --data-diff-width 1 --data-difference --data-reference --csr-width 32 --mmacas-ext --full-address"
        " --implicit-exception --sijump --implicit-return on --branch-prediction --jump-target-cache --resync-disabled"
        " --data-no-address --data-no-data --data-full-address --data-full-data --unfiltered --pin-modes"
        " --sync-packets 64 --branch-count-bits 31"
        " --support standard --dialect qemu --trap-vector 0x80000101 --trap-handler 2=0x80000200"
        " --trap-handler i7=0x80000300 --encapsulation smi --src-bits 3 --timestamp-bytes 5 --type-bits 2"
        " --instruction-type 1 --data-type 3 --extend-bit 5 --bit-packed --block-size 512 --block-start 8 --src 5"
        " --wrapped"
    )
    line = ["import", STREAM, "--etrace", "--elf", ELF, "-o", "x.rvt", *words.split()]
    request = raw.trace_request(parser().parse_args(line), STREAM)
    save(request.capture(), tmp_path / "x.rvt")  # it does not fit, and is not imported
    capture = load(tmp_path / "x.rvt")
    assert capture.sinks[0].wrapped
    assert capture.encoders[0].hart == 5
    numbers = {
        "iaddress_width": 39, "iaddress_lsb": 2, "privilege_width": 3, "ecause_width": 6, "context_width": 17,
        "time_width": 40, "bpred_size": 7, "cache_size": 5, "return_stack_size": 3, "call_counter_size": 2,
        "f0s_width": 2, "data_width": 128, "daddress_width": 48, "lrid_width": 4, "data_format_width": 2,
        "data_diff_width": 1, "csr_width": 32, "src_bits": 3, "timestamp_bytes": 5, "type_bits": 2,
        "instruction_type": 1, "data_type": 3, "extend_bit": 5, "block_size": 512, "block_start": 8,
        "sync_packets": 64, "branch_count_bits": 31,
    }  # fmt: skip
    switches = (
        "iret_ext", "ecall_retires", "data_difference", "data_reference", "mmacas_ext", "full_address",
        "implicit_exception", "sijump", "implicit_return", "branch_prediction", "jump_target_cache", "resync_disabled",
        "data_no_address", "data_no_data", "data_full_address", "data_full_data", "unfiltered", "pinned",
        "bit_packed",
    )  # fmt: skip
    names = {"support": "standard", "dialect": "qemu", "encapsulation": "smi", "trap_vector": "0x80000101"}
    handlers = {"2": "0x80000200", "i7": "0x80000300"}
    wanted = etrace_of({**numbers, **dict.fromkeys(switches, True), **names, "trap_handlers": handlers})
    assert options_of(feeding(capture.sinks[0], capture.encoders)) == wanted


NO_NUMBER = "cache_size is 'many', which is not a number"
TOO_WIDE = "iaddress_width is 99, must be a number from 2 to 64"
NO_PARAMETERS = "--parameters text: has neither lines like `iaddress_width_p = 64` nor JSON with such names"


def said(*words: object) -> EtraceTraceOptions:
    """How the bytes of an RV64 program were made, in these words."""
    request = raw.raw_bytes(parser().parse_args(["dump", STREAM, "--etrace", *map(str, words)]))
    assert isinstance(request, EncoderBytes)
    trace_options = request.trace_options(64)
    assert isinstance(trace_options, EtraceTraceOptions)
    return trace_options


def test_a_dialect_goes_with_a_transport_and_parameters() -> None:
    """Unless others are said."""
    for words, transport, width in (("", "esp32", 5), ("--encapsulation encap --ecause-width 8", "encap", 8)):
        trace_options = said("--dialect", "pt10", *words.split())
        assert (trace_options.encapsulation.name, trace_options.options.parameters.ecause_width) == (transport, width)


def test_a_capture_and_its_raw_bytes_are_the_same(tmp_path: Path, rom: str, capsys: pytest.CaptureFixture[str]) -> None:
    raw = ["--etrace", *ALIKE.split()]
    program = ["--elf", ELF, "--kernel-pages", rom]
    run(capsys, "import", STREAM, *raw, *program, "-o", tmp_path / "x.rvt")
    assert run(capsys, "decode", tmp_path / "x.rvt")[0] == run(capsys, "decode", STREAM, *raw, *program)[0]
    first, *_ = run(capsys, "decode", tmp_path / "x.rvt", "--events")[0]
    assert first.startswith("1\ttrace-on offset=0x2 next_pc=0x0000000000001000")
    shown, said = run(capsys, "dump", STREAM, *raw)
    assert said == []
    assert run(capsys, "dump", tmp_path / "x.rvt") == (shown, [])
    assert run(capsys, "dump", tmp_path / "x.rvt", "3,5")[0] == shown[2:5]
    offsets = [int(line.split()[1], 16) for line in shown]
    sizes = [1 + len(packet) for packet in vector("br_j_asm", "o01").packets]
    assert offsets == [sum(sizes[:n]) for n in range(len(sizes))]
    assert run(capsys, "dump", tmp_path / "x.rvt", "--offset", offsets[99] + 1)[0] == shown[99:]


def test_packets_of_one_source(capsys: pytest.CaptureFixture[str]) -> None:
    file = ROOT / "encap" / "br_j_asm.src8_T0_type1.bin"
    words = ["dump", file, "--etrace", *ALIKE.split(), "--src-bits", 8, "--type-bits", 1]
    shown, _ = run(capsys, *words)
    assert run(capsys, *words, "--src", 90)[0] == shown
    assert main([*map(str, words), "--src", "91"]) == 1
    assert capsys.readouterr().err == f"rvtrace: {file} has no message of SRC 91 there\n"


@pytest.mark.parametrize(
    ("file", "words", "hint"),
    [
        ("br_j_asm/o01_delta_resync16.te_inst_raw", "", "with --ecause-width 5 and with --context-width 32"),
        ("br_j_asm/o10_all_ext.te_inst_raw", "--parameters {json}", "with --support standard"),
        ("br_j_asm/o01_delta_resync16.te_inst_raw", f"{ALIKE} --src-bits 4", "without --src-bits"),
        *long_only(("encap/br_j_asm.src12_T2_allts.bin", ALIKE, "with --src-bits 12 and with --timestamp-bytes 2")),
    ],
)
def test_forgotten_options_are_named(
    file: str, words: str, hint: str, rom: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = words.format(json=(ROOT / file).with_suffix(".json"))
    command = ["import", ROOT / file, "--etrace", "--elf", ELF, "--kernel-pages", rom, "-o", tmp_path / "x.rvt"]
    shown, _ = run(capsys, *command, *words.split())
    assert shown[-1] == f"hint:     the trace fits far better {hint}"


@thorough("console/options/test_hints.py::test_no_option_makes_up_for_the_wrong_program")
def test_another_program_makes_no_hint(rom: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With the wrong ELF no reading is right; that of xrle takes every byte, and runs nothing."""
    elf = ROOT / "towers" / "towers.riscv"
    for program in ("br_j_asm", "xrle", *long_only("dhrystone")):
        stream = next((ROOT / program).glob("o01*raw"))
        command = ["import", stream, "--etrace", "--encapsulation", "smi", *ALIKE.split(), "--elf", elf]
        shown, _ = run(capsys, *command, "--kernel-pages", rom, "-o", tmp_path / "x.rvt")
        assert not [line for line in shown if line.startswith("hint")], program


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("import {raw} --etrace -o x.rvt", "which program ran? Give its ELF (--elf FILE)"),
        ("decode {raw} --etrace --elf {elf} --btm", "--btm is an option of N-Trace, not of E-Trace"),
        ("decode {raw} --ntrace --elf {elf} --cache-size 3", "--cache-size is an option of E-Trace, not of N-Trace"),
        (
            "decode {raw} --cache-size 3",
            "--cache-size is for raw bytes: add --etrace (a capture includes its settings)",
        ),
        (
            "import {raw} --etrace --elf {elf} --dialect rc7 -o x.rvt",
            "--dialect rc7 belongs to N-Trace; E-Trace has standard, pulp, pt10, et20, qemu",
        ),
        (
            "import {raw} --ntrace --elf {elf} --dialect pulp -o x.rvt",
            "--dialect pulp belongs to E-Trace; N-Trace has 1.0, rc7, sifive",
        ),
        (
            "import {raw} --etrace --elf {elf} --src 1 -o x.rvt",
            "--src 1: packets do not say their source: say with --src-bits how wide srcID is",
        ),
        (
            "dump {raw} --etrace --encapsulation qemu --src-bits 3",
            "--encapsulation does not fit the other settings: encapsulation qemu has no src_bits",
        ),
        ("dump {raw} --etrace --parameters none", "--parameters none: cannot be read: No such file or directory"),
        ("dump {raw} --etrace --parameters {elf}", "--parameters {elf}: is not text"),
        ("dump {raw} --etrace --parameters text", NO_PARAMETERS),
        ("dump {raw} --etrace --parameters wide", f"--parameters wide: {TOO_WIDE}"),
        ("dump {raw} --etrace --parameters word", f"--parameters word: line 1: {NO_NUMBER}"),
        ("data {raw} --etrace --elf {elf}", NO_ACCESSES),
        ("encode --etrace --elf {elf} --pcs x --branch-prediction", "--branch-prediction needs a --bpred-size"),
        (
            "encode --etrace --elf {elf} --pcs x --src-id 3",
            "--src-id 3 does not fit srcID: say with --src-bits how wide it is",
        ),
    ],
)  # fmt: skip
def test_what_is_wrong_is_one_line(
    words: str, line: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text").write_text("nothing of use\n")
    (tmp_path / "wide").write_text("iaddress_width_p = 99\n")
    (tmp_path / "word").write_text("cache_size: many\n")
    places = {"raw": STREAM, "elf": ELF}
    assert main(words.format(**places).split()) == 1
    said = capsys.readouterr().err.splitlines()
    assert said[-1] == f"rvtrace: {line.format(**places)}"


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("--iaddress-width 65", "'65' is not a number from 2 to 64"),
        ("--support mine", "invalid choice: 'mine'"),
        ("--trap-vector here", "'here' is not an address"),
        ("--trap-handler 2", "'2' is not a cause and a handler, as in 2=0x80000100 or i7=0x80000200"),
        ("--ntrace", "not allowed with argument"),
    ],
)
def test_values_are_checked(words: str, problem: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["import", STREAM, "--etrace", "--elf", ELF, "-o", "x.rvt", *words.split()])
    assert problem in capsys.readouterr().err


def test_parameters_are_read_from_files_of_other_tools(tmp_path: Path) -> None:
    """The reference models' .scf and .ucf, the TOML of others, JSON; comments, and what no decoder needs."""
    texts = {
        "a.scf": "; comment\n[required]\niaddress_width_p = 39\nnocontext_p = 1\ncontext_width_p = 32\nsijump_p = 1\n",
        "b.toml": "iaddress_width_p = 39 # bits\nfull-address = false\nimplicit_return = true\n",
        "c.json": json.dumps({"params": {"iaddress_width_p": 39}, "options": {"jtc": 1, "cache_size_p": 5}}, indent=1),
    }
    wanted = {
        "a.scf": {"iaddress_width": 39, "sijump": True},
        "b.toml": {"iaddress_width": 39, "implicit_return": True},
        "c.json": {"iaddress_width": 39, "jump_target_cache": True, "cache_size": 5},
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
        assert said("--parameters", tmp_path / name) == etrace_of(wanted[name])


# Data


def test_accesses_are_listed_with_their_values(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The reference model's loads and stores of qsort; their list is beside them, in the same order."""
    folder = ROOT / "data"
    trace = beginning(folder / "basic" / "qsort.te_data_raw", 2000, tmp_path)
    words: list[object] = ["data", trace, "--etrace", "--encapsulation", "smi", "--data-reference"]
    words += ["--parameters", folder / "basic" / "hw.scf", "--lrid-width", 0, "--elf", ROOT / "qsort" / "qsort.riscv"]
    with without_guesses():
        shown, _ = run(capsys, *words)
        of_address, _ = run(capsys, *words, "0x80025b30")
        assert main([*map(str, words), "nowhere"]) == 1
    assert "nowhere: neither ADDRESS, nor ADDRESS,SIZE, nor a symbol of " in capsys.readouterr().err
    rows = gzip.decompress((folder / "qsort.spike_data_trace.csv.gz").read_bytes()).decode().split()[1:]
    wanted = []
    for row in rows:
        _, kind, address, size, data = row.split(",")
        what = "store" if kind == "1" else "load"
        wanted.append((what, 1 << int(size), int(address, 16), int(data, 16)))
    pattern = re.compile(r":\t(load|store) (\d+) bytes? at (0x[0-9a-f]+)(?: <\S+>)? = (0x[0-9a-f]+)")
    found = [match for line in shown if (match := pattern.search(line))]
    assert LONG or 200 < len(found) < len(wanted)
    wanted = wanted if LONG else wanted[: len(found)]
    assert [(f[1], int(f[2]), int(f[3], 16), int(f[4], 16)) for f in found] == wanted
    place = [one for one in wanted if one[2] <= 0x80025B30 < one[2] + one[1]]
    assert len(of_address) == len(place) > 0


def test_the_reference_page_shows_what_dump_prints(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Bytes by hand, LSB first: 1f is format 3, subformat 3, ienable and zeros; 73000000e0 format 3, subformat 0,
    branch 1, privilege 3, 0x80000000 >> 1 in 31 bits and its sign; 26 format 2 and 9, half of 0x12; 0df1 format 1,
    branches 3, map 010, and -4 from bit 10 on.
    """
    page = (Path(__file__).resolve().parents[3] / "docs" / "messages.md").read_text(encoding="utf-8")
    example = bytes.fromhex("01 1f 05 73 00 00 00 e0 01 26 02 0d f1 00 00 00")
    assert f"The bytes `{example.hex(' ')}`" in page
    (tmp_path / "raw").write_bytes(example)
    shown, beside = run(capsys, "dump", tmp_path / "raw", "--etrace", "--iaddress-width", 32)
    assert (len(shown), beside) == (5, [])
    for line in shown:
        assert f"\n    {line}\n" in page
    values = [dict(word.split("=") for word in line.partition(" # ")[0].split() if "=" in word) for line in shown]
    assert [row.get("addr") for row in values] == [None, "0x80000000", "0x80000012", "0x8000000a", None]
    assert values[3]["map"] == "TNT"
