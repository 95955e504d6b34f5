"""What gdb is connected through: a socket that nobody else can connect to, unless a port was asked for."""

import os
import re
import stat
from pathlib import Path

import pytest

from rvtrace_gdb.console.main import main
from tests.gdbext.gdb_process import SOURCE, every_gdb, newest_gdb, run_gdb
from tests.gdbext.replay.test_replay import nm
from tests.helpers.cross_compiler import demo
from tests.helpers.wait import until


@pytest.fixture
def opened(tmp_path: Path) -> tuple[Path, str]:
    """A program, and the command that opens a capture of it."""
    elf = demo(tmp_path, "rv64imac_zicsr")
    start = nm(elf)["_start"]
    (tmp_path / "pcs").write_text("".join(f"{pc:x}\n" for pc in (start, start + 4, start + 8)))
    capture = tmp_path / "x.rvt"
    assert main(["encode", "--elf", str(elf), "--pcs", str(tmp_path / "pcs"), "--ntrace", "-o", str(capture)]) == 0
    return elf, f"trace open {capture}"


@every_gdb
def test_gdb_is_connected_through_a_socket_in_a_private_folder(gdb: str, opened: tuple[Path, str]) -> None:
    elf, opening = opened
    folder = "python import os; f = gdb.selected_inferior().connection.details"
    mode = "python s = os.stat(os.path.dirname(f)); print(oct(s.st_mode), s.st_uid)"
    said = run_gdb(elf, [SOURCE, opening, "trace replay", "info connections", folder, mode, "python print(f)"], gdb=gdb)
    path = said["python print(f)"].strip()
    assert re.fullmatch(r"/\S*/rvtrace-gdb-\w+/gdb", path)
    assert f"extended-remote {path}" in said["info connections"]
    assert said[mode].split() == [oct(stat.S_IFDIR | 0o700), str(os.getuid())]
    until(lambda: not Path(path).parent.exists(), "the folder's end, with the session's")


@newest_gdb
def test_the_folder_for_what_runs_is_taken(gdb: str, opened: tuple[Path, str], short_path: Path) -> None:
    elf, opening = opened
    shown = "python print(gdb.selected_inferior().connection.details)"
    said = run_gdb(elf, [SOURCE, opening, "trace replay", shown], gdb=gdb, XDG_RUNTIME_DIR=str(short_path))
    assert said[shown].startswith(f"{short_path}/rvtrace-gdb-")


@newest_gdb
def test_a_socket_for_a_gdb_that_connects_itself(gdb: str, opened: tuple[Path, str], tmp_path: Path) -> None:
    """As an IDE does that takes a path where it takes a host and a port."""
    elf, opening = opened
    path = str(tmp_path / "past")
    listening = f"trace connect -listen {path}"
    commands = [SOURCE, opening, "trace replay", "disconnect", listening, f"trace connect -listen {tmp_path}/a:b"]
    said = run_gdb(elf, commands, gdb=gdb)
    # Nobody is the stub here: the place is checked first.
    assert "no OpenOCD and no other gdb stub at localhost:3333" in said[listening]
    assert f"cannot wait for gdb at {tmp_path}/a:b: gdb takes a path with a colon" in said[commands[-1]]


def test_what_is_no_place_to_listen_at(opened: tuple[Path, str]) -> None:
    elf, opening = opened
    commands = [f"trace connect -listen {place}" for place in ("x", "65536", "")]
    said = run_gdb(elf, [SOURCE, opening, *commands])
    for command, got in zip(commands, ("x", "65536", "none"), strict=True):
        line = f"trace connect: -listen takes a port, 0 for any, or the path of a socket, got: {got}."
        assert said[command].strip() == line
