"""`rvtrace import` of logs: recognized or named, and what the capture then says."""

import json
from pathlib import Path

import pytest

from rvtrace_gdb.console.main import main
from tests.decode.tandem.corpus import DATA, golden_steps
from tests.decode.tandem.logs.read_logs import written

ELF, SPIKE = DATA / "riscv-tests" / "rv64ui-p-sd", DATA / "tandem" / "flute_rv64ui-p-sd.spike.gz"
IBEX = (
    "Time\tCycle\tPC\tInsn\tDecoded instruction\tRegister and memory contents",
    "10\t5\t00000100\t00108093\taddi\tx1,x1,1\t x1:0x00000001 x1=0x00000002",
    "12\t6\t00000104\t0020a023\tsw\tx2,0(x1)\t x1:0x00000002 x2:0x00000007 PA:0x00000002 store:0x00000007",
    "14\t7\t00000108\t00000013\taddi\tx0,x0,0\t",
)


@pytest.mark.parametrize("words", [[], ["--log", "auto"], ["--log", "spike"]])
def test_spike(words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Also in a gzip file; what wrote the memory last is found, with the value that Spike logs."""
    capture = str(tmp_path / "x.rvt")
    assert main(["import", str(SPIKE), "--elf", str(ELF), "-o", capture, "--json", *words]) == 0
    facts = json.loads(capsys.readouterr().out)
    steps = list(golden_steps("flute_rv64ui-p-sd"))
    assert facts["tandem"][0]["dialect"] == "reconstructed" and facts["messages"] == []
    assert facts["harts"][0]["instructions"] == sum(step.cause is None for step in steps)
    address, data = next(step.stores[-1] for step in reversed(steps) if step.stores)
    assert main(["tandem", "show", capture, "--address", f"{address:#x},{len(data)}"]) == 0
    stores = [line for line in capsys.readouterr().out.splitlines() if line.startswith("\tstore")]
    assert len(stores) == sum(at == address for step in steps for at, _ in step.stores)
    assert stores[-1].endswith(f"= 0x{int.from_bytes(data, 'little'):0{2 * len(data)}x}")


def test_ibex_without_a_program(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capture = str(tmp_path / "x.rvt")
    log = str(written(tmp_path / "trace_core_00000000.log", *IBEX))
    assert main(["import", log, "--hart", "3", "-o", capture]) == 0
    assert "tandem3, hart 3" in capsys.readouterr().out
    assert main(["tandem", "show", capture]) == 0
    shown = capsys.readouterr().out
    assert "ra = 0x00000001 -> 0x00000002" in shown and "store 4 bytes at 0x00000002 = 0x00000007" in shown


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--log", "qemu"], "has no instruction: expected what QEMU writes with -d exec,nochain,int,cpu"),
        (["--log", "ibex", "--btm"], "--btm is for raw bytes, not for a log"),
        (["--log", "ibex", "--elf", str(ELF)], "Ibex is an RV32 core, and the program is RV64"),
    ],
)
def test_refused(words: list[str], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = str(written(tmp_path / "it.log", *IBEX))
    assert main(["import", log, "-o", str(tmp_path / "x.rvt"), *words]) != 0
    assert says in capsys.readouterr().err


def test_a_file_that_is_no_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = str(written(tmp_path / "it.log", "something"))
    assert main(["import", log, "--log", "auto", "-o", str(tmp_path / "x.rvt")]) != 0
    assert "is not a log that is known: give --log, one of spike, qemu, ibex" in capsys.readouterr().err


def test_a_log_of_spike_without_commits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = str(written(tmp_path / "it.log", "core   0: 0x0000000080000000 (0x00000013) nop"))
    assert main(["import", log, "-o", str(tmp_path / "x.rvt")]) != 0
    assert "has no commit lines: expected what `spike -l --log-commits` writes" in capsys.readouterr().err
