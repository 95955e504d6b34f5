"""A program may name anything as its source."""

import os
from pathlib import Path

import pytest

from rvtrace_gdb.reports.source_files import source_file


def test_a_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.c").write_bytes(b"int x;\n\xff")
    assert source_file(str(tmp_path / "a.c")) == b"int x;\n\xff"
    assert source_file(str(tmp_path / "a.c"), most=7) is None


@pytest.mark.parametrize("path", ["/dev/zero", "/dev", "/nonexistent.c", "a\0.c", ""])
def test_what_is_no_file_is_not_read(path: str) -> None:
    assert source_file(path) is None


def test_nobody_waits_for_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.c")
    assert source_file(str(tmp_path / "pipe.c")) is None
