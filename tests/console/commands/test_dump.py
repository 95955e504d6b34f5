"""`rvtrace dump`: of captures and of raw bytes, of all or some messages, and of SiFive's own captures."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from rvtrace_gdb.console.main import main
from rvtrace_gdb.decode.program.image import Image
from tests.decode.ntrace.messages import split
from tests.helpers import reference_streams
from tests.helpers.core_captures import sifive

HOME = Path(__file__).resolve().parents[3]
STREAM = reference_streams.FOLDER / "median.1.nex"


def dump(capsys: pytest.CaptureFixture[str], *words: object) -> list[str]:
    assert main(["dump", *map(str, words)]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out.splitlines()


def names(lines: list[str]) -> list[str]:
    return [line.split()[2] for line in lines]


def meanings(lines: list[str], begin: str) -> list[str]:
    """Those that begin so."""
    found = [line.rpartition("# ")[2] for line in lines]
    return [meaning for meaning in found if meaning.startswith(begin)]


def columns(line: str) -> dict[str, str]:
    return dict(column.split("=", 1) for column in line.partition(" # ")[0].split()[3:])


def test_a_capture_and_its_raw_bytes_have_the_same_messages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown = dump(capsys, STREAM, "--ntrace")
    main(["import", str(STREAM), "--elf", str(reference_streams.FOLDER / "median.elf"), "-o", str(tmp_path / "x.rvt")])
    capsys.readouterr()
    assert dump(capsys, tmp_path / "x.rvt") == shown
    offsets = [int(line.split()[1], 16) for line in shown]
    messages = list(split(STREAM.read_bytes()))
    assert offsets == [sum(map(len, messages[:n])) for n in range(len(messages))]
    assert [int(line.split()[0]) for line in shown] == list(range(1, len(messages) + 1))
    with_bytes = dump(capsys, tmp_path / "x.rvt", "--raw")
    assert [columns(line)["RAW"] for line in with_bytes] == [raw.hex() for raw in messages]
    for words in (("/r", "2,4"), ("2,4", "/r")):
        assert dump(capsys, tmp_path / "x.rvt", *words) == with_bytes[1:4]


def test_some_messages_by_number_or_by_byte(capsys: pytest.CaptureFixture[str]) -> None:
    shown = dump(capsys, STREAM, "--ntrace")
    assert dump(capsys, STREAM, "--ntrace", "3,5") == shown[2:5]
    assert dump(capsys, STREAM, "3,+2", "--ntrace") == shown[2:4]
    assert dump(capsys, STREAM, "--ntrace", "240") == shown[239:]
    inside = int(shown[99].split()[1], 16) + 1
    assert dump(capsys, STREAM, "--ntrace", "--offset", inside) == shown[99:]
    assert dump(capsys, STREAM, "--ntrace", "--offset", inside, "101,110") == shown[100:110]


def test_messages_of_one_source(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    harts = [reference_streams.from_source(STREAM.read_bytes(), 2, src) for src in (1, 3)]
    (tmp_path / "raw").write_bytes(reference_streams.in_turn(*harts))
    alone = dump(capsys, tmp_path / "raw", "--ntrace", "--src-bits", 2, "--src", 3)
    assert {columns(line)["SRC"] for line in alone} == {"3"}
    assert len(alone) == len(harts[1])


def test_standard_input_is_read_as_it_comes() -> None:
    """From somebody who never stops writing."""
    command = [sys.executable, "-m", "rvtrace_gdb", "dump", "-", "--ntrace", "5,10"]
    endless = [sys.executable, "-c", "import sys\nwhile True: sys.stdout.buffer.write(bytes([12, 15]) * 9999)"]
    with subprocess.Popen(endless, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as writer:
        done = subprocess.run(command, stdin=writer.stdout, capture_output=True, timeout=60, cwd=HOME, check=True)
        assert writer.stdout is not None
        writer.stdout.close()
    shown = done.stdout.decode().splitlines()
    assert shown[0] == "5\t0x00000008 DirectBranch TCODE=3 I-CNT=3 # branch taken"
    assert len(shown) == 6


def test_a_ring_that_wrapped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = STREAM.read_bytes()
    (tmp_path / "raw").write_bytes(data[3:])
    shown = dump(capsys, tmp_path / "raw", "--ntrace", "--wrapped", "--xlen", 64)
    assert shown[0].endswith(" # the start of the buffer, inside a message")
    assert names(shown[1:]) == names(dump(capsys, STREAM, "--ntrace"))[1:]
    assert all("=?" in line for line in shown if " U-ADDR=" in line), "no address was sent in full"


# SiFive's captures: facts from the files themselves, and from their programs


def test_sifive_data_written_by_the_program_is_its_text(capsys: pytest.CaptureFixture[str]) -> None:
    shown = dump(capsys, sifive("itc_printf.rtd"), "--ntrace", "--dialect", "sifive", "--xlen", 32)
    written = [line for line in shown if " DataAcquisition " in line]
    assert len(written) == 63
    text = "".join(ast.literal_eval(line.rpartition(": ")[2]) for line in written)
    assert text.startswith("Hello, World!\n1\n12\n123\n1234\n")
    assert b"Hello, World!" in sifive("itc_printf.elf").read_bytes()


def test_sifive_events_have_their_addresses(capsys: pytest.CaptureFixture[str]) -> None:
    """Four watchpoints in a row, 0 to 3: on four instructions in a row of one function; samples wherever it is."""
    image = Image.from_elf(sifive("dv-uaddr1.elf"))
    shown = dump(capsys, sifive("dv-uaddr1.rtd"), "--ntrace", "--dialect", "sifive")
    assert names(shown).count("InCircuitTrace") == 11
    watchpoints = [int(columns(line)["addr"], 16) for line in shown if "# watchpoint" in line]
    assert [line.rpartition("# ")[2] for line in shown if "# watchpoint" in line] == [
        f"watchpoint {n}" for n in range(4)
    ]
    assert [pc - watchpoints[0] for pc in watchpoints] == [0, 4, 8, 12]
    for line in shown:
        if " InCircuitTrace " in line:
            assert image.symbol(int(columns(line)["addr"], 16)) is not None, line
    assert [line.rpartition("# ")[2] for line in shown if "# control" in line] == [
        "control: trace on",
        "control: trace off",
    ]


def test_sifive_times_never_go_back(capsys: pytest.CaptureFixture[str]) -> None:
    """XOR is how TSTAMP is meant in all 834 messages; added up, the times would run away from the absolute ones."""
    options = ("--ntrace", "--timestamps", "--timestamp-bits", 40)
    shown = dump(capsys, sifive("timestamp.rtd"), *options, "--dialect", "sifive")
    times = [int(columns(line)["time"]) for line in shown if "TSTAMP=" in line]
    assert len(times) == 834
    assert times == sorted(times) and times[-1] - times[0] < 1 << 20
    added = [
        int(columns(line)["time"]) for line in dump(capsys, sifive("timestamp.rtd"), *options) if "TSTAMP=" in line
    ]
    assert added[-1] > times[-1] + 1_000_000


def test_sifive_linux_addresses_are_those_of_user_and_kernel(capsys: pytest.CaptureFixture[str]) -> None:
    """48 bits were sent: the addresses are canonical (Sv48), in the program, its libraries, the kernel, or firmware."""
    shown = dump(capsys, sifive("linux-static.rtd"), "--ntrace", "--dialect", "sifive", "--src-bits", 2)
    assert len(shown) == 22_334, "22333 messages, and one run of idle bytes"
    assert columns(shown[-1]) == {"BYTES": "6"}
    addresses = [int(columns(line)["addr"], 16) for line in shown if "addr=0x" in line]
    assert {pc >> 47 for pc in addresses} == {0, 0x1FFFF}
    assert "U-mode, scontext 738" in meanings(shown, "U-mode") and "S-mode" in meanings(shown, "S-mode")
