"""Headers of waveform files: VCD as IEEE 1364 has it, and FST as GTKWave's converter makes it of that."""

import subprocess
from pathlib import Path

import pytest

from rvtrace_gdb.session.waves.waveform_file import WaveformFile, waveform_file

DUMP = """$date today $end
$version {version} $end
$comment
  a design
$end
$timescale{scale}$end
$scope module top $end
$var wire 1 ! clk $end
$upscope $end
$enddefinitions $end
#10
0!
#4000
1!
"""
EXPONENTS = {" 1 s ": 0, " 100 ms ": -1, "\n  10us\n": -5, " 1 ns ": -9, " 1 ps ": -12, " 10 fs ": -14}


@pytest.mark.parametrize("scale", EXPONENTS)
def test_the_unit_of_the_times(scale: str, tmp_path: Path) -> None:
    dump, fst = tmp_path / "it.vcd", tmp_path / "it.fst"
    dump.write_text(DUMP.format(version="Simulator 1", scale=scale))
    subprocess.run(["vcd2fst", str(dump), str(fst)], check=True, capture_output=True)
    assert waveform_file(str(dump)) == WaveformFile(EXPONENTS[scale])
    assert waveform_file(str(fst)) == WaveformFile(EXPONENTS[scale], end=4000)


@pytest.mark.parametrize("content", [b"", b"GHDLwave\n", b"\0" * 300, b"$timescale 3 ns $end", b"$timescale 1 ls $end"])
def test_of_others_nothing_is_known(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "it"
    file.write_bytes(content)
    assert waveform_file(str(file)) == WaveformFile()
