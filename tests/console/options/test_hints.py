"""Forgotten and wrong options: what the user is told of real captures, of which the right options are known."""

import random
from dataclasses import replace
from pathlib import Path

import pytest

from rvtrace_gdb.console.main import main
from rvtrace_gdb.decode.ntrace.options import DIALECTS
from rvtrace_gdb.decode.program.image import Image
from tests.console.options.beginnings import beginning
from tests.decode.ntrace.messages import encoded, groups
from tests.helpers import reference_streams
from tests.helpers.amounts import LONG, long_only, thorough
from tests.helpers.compiled import elf_bytes
from tests.helpers.core_captures import sifive

FITS = "hint:     the trace fits far better "
SENSE = "hint:     the messages make far more sense "


def hint(capsys: pytest.CaptureFixture[str], *words: object) -> str | None:
    """The hint of a command, which is the last thing it says but for an error."""
    main([str(word) for word in words])
    _, err = capsys.readouterr()
    said = [line for line in err.splitlines() if not line.startswith("rvtrace: ")]
    assert sum(line.startswith("hint:") for line in said) == (bool(said) and said[-1].startswith("hint:"))
    return said[-1] if said and said[-1].startswith("hint:") else None


def of_sifive(capsys: pytest.CaptureFixture[str], name: str, options: str) -> str | None:
    words = options.split()
    return hint(capsys, "decode", sifive(f"{name}.rtd"), "--ntrace", "--elf", sifive(f"{name}.elf"), *words)


COUNTER = "--implicit-return counter"
E31 = f"--dialect sifive {COUNTER}"


@pytest.mark.parametrize("name", ["e31_hello_debug", *long_only("propertiesfile", "itc_printf", "dv-uaddr1")])
def test_there_is_no_hint_where_all_is_well(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert of_sifive(capsys, name, E31) is None


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("--dialect sifive", "with --implicit-return full"),
        (E31, None),
        *long_only(
            ("", "with --dialect sifive and with --implicit-return full"),
            (f"{E31} --src-bits 2", "without --src-bits"),
        ),
    ],
)
def test_what_is_wrong_is_named_where_bytes_are_damaged_too(
    said: str, told: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing synchronizes behind the damage, whatever the options are."""
    data, trace = bytearray(sifive("e31_hello_debug.rtd").read_bytes()), tmp_path / "damaged.rtd"
    data[len(data) // 2] ^= 4
    trace.write_bytes(data)
    found = hint(capsys, "decode", trace, "--ntrace", "--elf", sifive("e31_hello_debug.elf"), *said.split())
    assert found == (FITS + told if told else None)


@pytest.mark.parametrize(
    ("name", "said", "told"),
    [
        ("e31_hello_debug", COUNTER, "with --dialect sifive"),
        ("e31_hello_debug", "--dialect sifive", "with --implicit-return full"),
        ("e31_hello_debug", "", "with --dialect sifive and with --implicit-return full"),
        ("e31_hello_debug", f"{E31} --btm", "without --btm"),
        ("e31_hello_debug", f"{E31} --all-jumps", "without --all-jumps"),
        ("e31_hello_debug", f"{E31} --src-bits 2", "without --src-bits"),
        ("e31_coremark_release", "", "with --dialect sifive and with --implicit-return full"),
        ("timestamp", E31, "with --timestamps"),
        ("ca-vector-gemm", "--dialect sifive", "with --btm"),
        *long_only(
            ("ca-vector-gemm", "--btm", "with --dialect sifive"),
            ("dv-uaddr1", "--dialect sifive", "with --implicit-return full"),
            ("timestamp", COUNTER, "with --dialect sifive and with --timestamps"),
        ),
    ],
)
def test_the_option_is_named(name: str, said: str, told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert of_sifive(capsys, name, said) == FITS + told


@pytest.mark.parametrize("program", ["median", *long_only("qsort")])
@pytest.mark.parametrize(
    ("mode", "told"),
    [(0, "with --btm"), (1, None), (2, None), *long_only((3, "with --implicit-return full"))],
)
def test_the_option_of_the_reference_streams_is_named(
    program: str, mode: int, told: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stream = beginning(reference_streams.FOLDER / f"{program}.{mode}.nex", 400, tmp_path)
    elf = reference_streams.FOLDER / f"{program}.elf"
    assert hint(capsys, "decode", stream, "--ntrace", "--elf", elf) == (told and FITS + told)


@pytest.mark.parametrize("mode", [0, *long_only(1, 2, 3, 4)])
def test_no_option_makes_up_for_the_wrong_program(
    mode: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stream = beginning(reference_streams.FOLDER / f"median.{mode}.nex", 1000, tmp_path)
    elf = reference_streams.FOLDER / "towers.elf"
    own = f"{FITS}with --implicit-return full" if mode > 2 else None  # what the stream has, whatever the program
    assert hint(capsys, "decode", stream, "--ntrace", "--elf", elf) in (None, own)


HIGH = """
    .globl _start
_start: li a0, 60
1:  addi a0, a0, -1
    andi a1, a0, 3
    beqz a1, 2f
    nop
2:  bnez a0, 1b
3:  j 3b
"""


@pytest.mark.parametrize(
    ("base", "sent", "said", "told"),
    [
        (0x0012_0000_8000_0000, 0, "--dialect sifive", "with --address-bits 64"),
        (0x0012_0000_8000_0000, 0, "--address-bits 40", "without --address-bits"),
        (0x0012_0000_8000_0000, 0, "--dialect sifive --address-bits 64", None),
        (0xFFFF_FFC0_8000_0000, 40, "", "with --address-bits 40"),
        (0xFFFF_FFC0_8000_0000, 40, "--address-bits 40", None),
        (0x8000_0000, 0, "--dialect sifive", None),
    ],
)
def test_the_number_of_address_bits_is_named(
    base: int, sent: int, said: str, told: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """SiFive's encoders send 48 of them, and bit 0; others send those of the virtual memory that there is."""
    source, elf = tmp_path / "high.S", tmp_path / "high.elf"
    source.write_text(HIGH)
    command = ["riscv64-unknown-elf-gcc", "-march=rv64i", "-mabi=lp64", "-nostdlib", "-nostartfiles", str(source)]
    elf.write_bytes(elf_bytes([*command, f"-Wl,-Ttext=0x{base:x}", "-Wl,--no-relax"], [source]))
    image = Image.from_elf(elf)
    pcs = [base]
    for left in range(59, -1, -1):
        pcs += [base + 4, base + 8, base + 12, *([base + 16] if left & 3 else []), base + 20]
    dialect = replace(DIALECTS["1.0"], address_bits=sent)
    data = b"".join(encoded(image, [*pcs, base + 24], xlen=64, dialect=dialect, hist_limit=9))
    (tmp_path / "raw.nex").write_bytes(data)
    command = ["decode", str(tmp_path / "raw.nex"), "--ntrace", "--elf", str(elf), *said.split()]
    assert hint(capsys, *command) == (told and FITS + told)


def without_flow(kind: str) -> bytes:
    """Traces of SiFive's encoders that hold nothing but their own messages: PC samples, or text the program writes."""
    if kind == "text":
        return b"".join(groups((7, 6), (0, 0), (letter, 0)) for letter in b"Hello, World!" * 3)
    first = groups((35, 6), (15, 4), (0, 2), (0x10001AC0, 0))
    return first + b"".join(groups((34, 6), (15, 4), (0, 2), (0x28 + i, 0)) for i in range(40))


@pytest.mark.parametrize(
    ("kind", "command"),
    [
        ("samples", "import"), ("samples", "dump"), ("text", "dump"),
        *long_only(("samples", "decode"), ("text", "import"), ("text", "decode")),
    ],
)  # fmt: skip
def test_a_trace_without_flow_is_of_the_dialect_that_has_its_messages(
    kind: str, command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody has to say which; where it is said, that holds, and a hint says what would fit."""
    (tmp_path / "raw.bin").write_bytes(without_flow(kind))
    program = () if command == "dump" else ("--elf", reference_streams.FOLDER / "median.elf")
    output = ("-o", tmp_path / "x.rvt") if command == "import" else ()
    words = [str(word) for word in (command, tmp_path / "raw.bin", "--ntrace", *program, *output)]
    main(words)
    said = "".join(capsys.readouterr())
    assert "hint:" not in said
    main([*words, "--dialect", "sifive"])
    assert "".join(capsys.readouterr()).replace("over the one that was there", "") == said or command == "import"
    main([*words, "--dialect", "1.0"])
    assert "with --dialect sifive\n" in "".join(capsys.readouterr()) or (kind, command) != ("samples", "dump")


def test_a_trace_that_contradicts_itself_has_no_hint(capsys: pytest.CaptureFixture[str]) -> None:
    assert of_sifive(capsys, "dv-850", f"{E31} --timestamps") is None


@thorough("test_the_option_is_named")
@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("", "with --dialect sifive and with --src-bits 2"),
        *long_only(
            ("--dialect sifive --src-bits 2", None),
            ("--src-bits 2", "with --dialect sifive"),
            ("--dialect sifive", "with --src-bits 2"),
            ("--dialect sifive --src-bits 3", "with --src-bits 2"),
        ),
    ],
)
def test_the_option_is_named_where_code_is_missing_too(
    said: str, told: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In 1000 bytes it is missing five times."""
    folder = sifive("linux-static")
    trace = beginning(sifive("linux-static.rtd"), 1000, tmp_path)
    words = ["--maps", f"738={folder / 'gtod.map'}", "--kernel-pages", folder / "kmem", "--elf", folder / "gtod"]
    found = hint(capsys, "decode", trace, "--ntrace", "--events", *words, *said.split())
    assert found == (told and FITS + told)


def test_the_hint_comes_with_the_import_and_with_what_was_imported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--elf", str(sifive("e31_hello_debug.elf")), "--dialect", "sifive"]
    assert main(["import", str(sifive("e31_hello_debug.rtd")), *words, "-o", str(tmp_path / "x.rvt")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == f"{FITS}with --implicit-return full"
    assert [line for line in lines if line.startswith("history:  93 instructions, 1 gap; 748 bytes: ")]
    assert [line for line in lines if line.endswith("is this the program that ran?")]
    assert hint(capsys, "decode", tmp_path / "x.rvt") == f"{FITS}with --implicit-return full"


@pytest.mark.parametrize(
    ("name", "said", "told"),
    [
        ("linux-static", "--src-bits 4 --timestamps", "with --src-bits 2"),
        ("timestamp", "", "with --timestamps"),
        ("itc_printf", "--src-bits 2", "with --dialect sifive and without --src-bits"),
        ("e31_hello_debug", "", None),
        *long_only(
            ("linux-static", "", "with --src-bits 2"),
            ("linux-static", "--src-bits 2 --dialect sifive", None),
            ("timestamp", "--timestamps", None),
            ("itc_printf", "", "with --dialect sifive"),
        ),
    ],
)
def test_the_messages_alone_tell_how_they_are_laid_out(
    name: str, said: str, told: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = beginning(sifive(f"{name}.rtd"), 4000, tmp_path)
    assert hint(capsys, "dump", trace, "--ntrace", *said.split()) == (told and SENSE + told)


@pytest.mark.parametrize("command", ["dump", *long_only("decode")])
def test_noise_has_no_hint(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is said beside noise that is decoded is seen in tests/console/commands/test_unreadable.py, too."""
    (tmp_path / "noise").write_bytes(random.Random(1).randbytes(20_000 if LONG else 700))
    words = ["--elf", reference_streams.FOLDER / "median.elf", "--events"] if command == "decode" else []
    assert hint(capsys, command, tmp_path / "noise", "--ntrace", *words) is None
