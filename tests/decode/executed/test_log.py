"""Files of logs: compressed, damaged, empty, endless."""

import gzip
import subprocess
import sys
from pathlib import Path

import pytest

from rvtrace_gdb.decode.executed.readers import LogError
from tests.decode.executed.reading import executed_pcs, read, told
from tests.helpers.amounts import thorough

DATA = Path(__file__).resolve().parents[2] / "data" / "ntrace-reference"
HOME = Path(__file__).resolve().parents[3]
T1 = DATA / "t1.elf"
LIST = gzip.decompress((DATA / "t1.pcs.gz").read_bytes())


def test_gzip_is_recognized_whatever_the_name(tmp_path: Path) -> None:
    plain, packed = tmp_path / "plain.gz", tmp_path / "packed.txt"
    plain.write_bytes(LIST)
    packed.write_bytes(gzip.compress(LIST))
    expected = [int(line, 16) for line in LIST.split()]
    assert executed_pcs(read(plain, T1)[0]) == expected == executed_pcs(read(packed, T1)[0])


def test_damaged_gzip(tmp_path: Path) -> None:
    whole = gzip.compress(LIST)
    damaged = bytearray(whole)
    damaged[len(whole) // 2] ^= 0xFF
    log = tmp_path / "log.gz"
    for content in (whole[: len(whole) // 2], whole[:5], bytes(damaged), whole[:-6] + b"\0\0\0\0\0\0"):
        log.write_bytes(content)
        with pytest.raises(LogError, match=r"log.gz: is a damaged gzip file|log.gz, line \d+: expected"):
            read(log, T1)


@pytest.mark.parametrize("content", [b"", gzip.compress(b"", mtime=0)])
def test_an_empty_log(content: bytes, tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(content)
    with pytest.raises(LogError, match="log: is empty"):
        read(log, T1)


@pytest.mark.parametrize("content", [bytes(100_000), b"\x7fELF" + bytes(range(256)) * 50, b"\n" * 200])
def test_files_that_are_no_logs(content: bytes, tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(content)
    with pytest.raises(LogError, match="log: is neither a list of addresses nor a log of Spike"):
        read(log, T1)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(LogError, match="missing: cannot be read: No such file or directory"):
        read(tmp_path / "missing", T1)
    with pytest.raises(LogError, match="cannot be read: Is a directory"):
        read(tmp_path, T1)


def test_start_and_limit(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(LIST)
    expected = [int(line, 16) for line in LIST.split()]
    place = expected[1000]
    first = expected.index(place)
    items, _ = read(log, T1, starts=lambda pc: pc == place, limit=5000)
    assert executed_pcs(items) == expected[first : first + 5000]
    with pytest.raises(LogError, match="no instruction in it is where encoding can start"):
        read(log, T1, starts=lambda pc: pc == 2)
    assert told(read(log, T1, limit=0)[0]) == []


_MEASURE = """
import sys
from rvtrace_gdb.console.main import main
assert main(["encode", "--elf", sys.argv[1], "--pcs", sys.argv[2], "-o", "/dev/null"]) == 0
print(next(line for line in open("/proc/self/status") if line.startswith("VmHWM:")).split()[1])
"""
"""Its own peak: what getrusage says is at least that of the tests, which started it."""


@thorough("decode/check/test_long_traces.py::test_memory_does_not_grow")
def test_memory_does_not_grow_with_the_log(tmp_path: Path) -> None:
    """In KiB, of the whole process."""
    peaks = []
    for times in (1, 8):
        log = tmp_path / f"{times}.gz"
        log.write_bytes(gzip.compress(LIST, 1) * times)  # 0.16 and 1.3 million lines
        command = [sys.executable, "-c", _MEASURE, str(T1), str(log)]
        peaks.append(int(subprocess.run(command, cwd=HOME, check=True, capture_output=True, text=True).stdout))
    assert peaks[1] - peaks[0] < 6 << 10
