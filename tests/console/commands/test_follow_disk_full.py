"""`rvtrace decode --follow -o` on a disk that is full: decoding goes on, and what is kept is said."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rvtrace_gdb.console.main import main
from rvtrace_gdb.session.capture.file import load
from tests.console.interruption import stdin
from tests.helpers import reference_streams

ELF = str(reference_streams.FOLDER / "median.elf")
STREAM = (reference_streams.FOLDER / "median.1.nex").read_bytes()
MADE = ["--ntrace", "--elf", ELF]


@pytest.mark.parametrize("room", [0, 1000])
def test_a_disk_that_is_full_does_not_end_decoding(room: int, tmp_path: Path) -> None:
    """A limit for files stands for the disk; the capture itself has no room in any case."""
    kept = tmp_path / "x.rvt"
    limit = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({room}, {room}))"
    program = f"{limit}; from rvtrace_gdb.console.main import main; raise SystemExit(main())"
    words = ["decode", "--follow", str(reference_streams.FOLDER / "median.1.nex"), *MADE, "-o", str(kept)]
    with open(reference_streams.FOLDER / "median.1.nex", "rb") as file:
        words[2] = "-"
        done = subprocess.run(
            [sys.executable, "-B", "-c", program, *words], stdin=file, capture_output=True, text=True, check=False
        )
    count, _ = reference_streams.golden("median")
    assert (done.returncode, len(done.stdout.splitlines())) == (1, count)
    full, has = "cannot be written: File too large", f"only the first {room} bytes are kept"
    said = done.stderr.splitlines()
    assert said[1] == f"warning: {kept}.part: {full}: {has if room else 'nothing is kept'}; decoding continues"
    if not room:
        none = f"warning: none of the {len(STREAM)} bytes that arrived could be kept: {kept} is not written"
        assert said[2:] == [none, f"the end of the stream: {len(STREAM)} bytes: {count} instructions, nothing lost"]
        assert list(tmp_path.iterdir()) == []
    else:
        assert said[2:] == [f"rvtrace: {kept}: {full}; the {room} bytes are in {kept}.part"]
        assert (tmp_path / "x.rvt.part").read_bytes() == STREAM[:room]


def test_where_the_disk_was_full_the_capture_has_what_came_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """There is room again when it is written."""
    room, kept, really = 1000, tmp_path / "x.rvt", os.pwrite

    def full(file: int, data: bytes, at: int) -> int:
        if at >= room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return really(file, data[: room - at], at)

    monkeypatch.setattr(os, "pwrite", full)
    record = tmp_path / "record.bin"
    record.write_bytes(STREAM)
    with open(record, "rb") as file, stdin(file.fileno()):
        assert main(["decode", "--follow", "-", *MADE, "-o", str(kept)]) == 1
    out, err = capfd.readouterr()
    count, _ = reference_streams.golden("median")
    assert len(out.splitlines()) == count
    assert err.splitlines()[1:] == [
        f"warning: {kept}.part: cannot be written: No space left on device: only the first 1000 bytes are"
        " kept; decoding continues",
        f"Saved the first 1000 of the {len(STREAM)} bytes of trace to {kept}.",
        f"the end of the stream: {len(STREAM)} bytes: {count} instructions, nothing lost",
    ]
    assert load(kept).sinks[0].data == STREAM[:room]
