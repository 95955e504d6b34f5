"""`rvtrace import --neorv32`, `--tacit`, `--gem5`: the capture says what the RTL logged, and where nothing is."""

import gzip
import json
from pathlib import Path

import pytest

from rvtrace_gdb.console.main import main
from rvtrace_gdb.decode.branches.tacit.packets import TacitKind, TacitPacket, packet_bytes
from tests.decode.branches.gem5_probe import compressed, header
from tests.decode.branches.test_neorv32 import DATA, ELF, raw, retired
from tests.fuzz.kinds.branches import branches_of


@pytest.mark.parametrize("as_text", [True, False])
def test_pairs(as_text: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, capture = DATA / "pairs.txt", str(tmp_path / "x.rvt")
    if not as_text:
        file = tmp_path / "pairs.bin"
        file.write_bytes(raw("pairs.txt"))
    told = ["import", str(file), "--neorv32", "--elf", str(ELF), "--hart", "1", "--json", "-o", capture]
    assert main(told) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["branches"] == [{"name": "tracer1", "hart": 1, "kind": "neorv32", "bytes": 1088}]
    assert main(["decode", capture, "--elf", str(ELF), "--json", "1,459"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [int(row["addr"], 16) for row in rows] == retired()
    assert main(["decode", str(file), "--neorv32", "--elf", str(ELF), "--json"]) == 0
    assert [json.loads(line)["addr"] for line in capsys.readouterr().out.splitlines()] == [row["addr"] for row in rows]
    assert main(["dump", str(file), "--neorv32", "1,2"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "1\t0x00000000 Pair src=0x00000068 dst=0x000000e4 first", "2\t0x00000008 Pair src=0x000000ee dst=0x0000011a",
    ]  # fmt: skip
    assert main(["check", capture, "--elf", str(ELF), "--quiet"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "each transfer was compared with the program when it was decoded: 0 gaps.", "No damage is seen.",
    ]  # fmt: skip
    assert main(["functions", capture, "--elf", str(ELF)]) == 0
    assert "fib" in capsys.readouterr().out


def test_a_check_of_damaged_pairs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A pair from where no jump is is a gap, and the exit status that of a trace with losses."""
    file, data = tmp_path / "pairs.bin", bytearray(raw("pairs.txt"))
    data[8 * 40] += 2
    file.write_bytes(data)
    told = ["check", str(file), "--neorv32", "--elf", str(ELF)]
    assert main([*told, "--json"]) == 3
    [row] = map(json.loads, capsys.readouterr().out.splitlines())
    assert (row["conclusion"], row["lost"] > 0, row["intervals"]) == ("compared", True, 0)
    assert main([*told, "--quiet"]) == 3
    assert "is in `gaps`." in capsys.readouterr().out
    assert main(["gaps", *told[1:], "--check", "--quiet"]) == 0
    assert len(capsys.readouterr().out.splitlines()) >= row["lost"]


def test_tacit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace, file = branches_of("tacit"), tmp_path / "it.bin"
    file.write_bytes(trace.data)
    capture = str(tmp_path / "x.rvt")
    assert main(["import", str(file), "--tacit", "--elf", str(ELF), "-o", capture]) == 0
    assert "TACIT" in capsys.readouterr().out
    assert main(["dump", capture, "/r", "1,2"]) == 0
    assert capsys.readouterr().out.splitlines()[0].endswith("16 80 81 Sync untold address=0x0 time=1")


def test_predicted_branches(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A trace without the layout that says so: the option does."""
    branch, back = TacitPacket(TacitKind.NOT_TAKEN, 3), TacitPacket(TacitKind.UNINFERABLE_JUMP, 1, target=0x76 >> 1)
    file, capture = tmp_path / "it.bin", str(tmp_path / "x.rvt")
    file.write_bytes(b"".join(map(packet_bytes, (TacitPacket(TacitKind.SYNC, 1, 0x11A), branch, back))))
    assert main(["import", str(file), "--tacit", "--tacit-predictor", "64", "--elf", str(ELF), "-o", capture]) == 0
    capsys.readouterr()
    assert main(["dump", capture]) == 0
    assert "Mispredicted time=+3" in capsys.readouterr().out
    assert main(["decode", capture, "--elf", str(ELF)]) == 0
    assert "0x0000011c" in (said := capsys.readouterr().out) and "0x00000146" in said
    assert main(["dump", str(file), "--tacit", "--tacit-predictor", "64"]) == 0
    assert "Mispredicted" in capsys.readouterr().out
    assert main(["dump", capture, "--tacit-predictor", "64"]) != 0
    assert "--tacit-predictor is for raw bytes: add --tacit" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--neorv32", "--btm"], "--btm is an option of other formats, not of --neorv32"),
        (["--neorv32", "--tacit-predictor", "64"], "--tacit-predictor is an option of --tacit, not of --neorv32"),
        (["--tacit", "--dialect", "rc7"], "--dialect is an option of other formats, not of --tacit"),
    ],
)
def test_refused(words: list[str], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = ["import", str(DATA / "pairs.txt"), *words, "--elf", str(ELF), "-o", str(tmp_path / "x.rvt")]
    assert main(told) != 0
    assert says in capsys.readouterr().err


def test_a_text_that_breaks_off(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "pairs.txt"
    file.write_text("00000069 000000e4\n000000ec 0000\n")
    assert main(["import", str(file), "--neorv32", "--elf", str(ELF), "-o", str(tmp_path / "x.rvt")]) != 0
    assert "line 2 is not a pair of DELTA_SRC and DELTA_DST: 000000ec 0000" in capsys.readouterr().err


def test_gem5(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace, file = branches_of("gem5"), tmp_path / "system.cpu.probe.etrace.pb.gz"
    file.write_bytes(compressed(trace.data))
    capture = str(tmp_path / "x.rvt")
    assert main(["import", str(file), "--gem5", "--elf", str(ELF), "--hart", "2", "--json", "-o", capture]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["branches"] == [{"name": "gem52", "hart": 2, "kind": "gem5", "bytes": len(trace.data)}]
    assert main(["decode", capture, "--elf", str(ELF), "--json", "1,100"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    logged = gzip.decompress((DATA / "neorv32.tracer0.log.gz").read_bytes()).decode().splitlines()
    assert [int(row["addr"], 16) for row in rows] == [int(line.split()[2], 16) for line in logged[:100]]
    assert main(["dump", str(file), "--gem5", "1,3"]) == 0
    assert "START address=0x0" in capsys.readouterr().out
    file.write_bytes(header(ver=2))
    assert main(["import", str(file), "--gem5", "--elf", str(ELF), "-o", capture]) != 0
    assert "version 2 of gem5's E-Trace, whose field numbers are not known here" in capsys.readouterr().err


def test_ctxp_of_two_sources(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, capture = tmp_path / "x.ctxp.txt", str(tmp_path / "x.rvt")
    events = "SYNC::0x64 @ 0\n#{0}:CALL:0x68:0xe4 @ 3\n#{0}:CALL:0xee:0x11a @ 9\n"
    text = "HDR:format=accemic//ctxp-txt,ver=1\n" + "".join(f"#{n}:{events.format(n)}" for n in (0, 3))
    file.write_text(text)
    assert main(["import", str(file), "--ctxp", "--elf", str(ELF), "--json", "-o", capture]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert [one["hart"] for one in facts["branches"]] == [0, 3] == [one["hart"] for one in facts["harts"]]
    file.write_text(text + "#0:JUMP:0x0:0x4\n")
    assert main(["import", str(file), "--ctxp", "--elf", str(ELF), "-o", capture]) != 0
    assert "line 8: is not an event: #0:JUMP:0x0:0x4" in capsys.readouterr().err
