"""gdb's commands where registers and memory are known here and there: stacks and ways are those with all values."""

import json
import random
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from rvtrace_gdb.session.capture.file import save
from rvtrace_gdb.session.formats.imports.raw_import import tandem_capture
from tests.endtoend.tandem.random_walk import check_walk
from tests.gdbext.gdb_process import GDB, GDB16, GDB18, SOURCE, run_gdb
from tests.helpers.amounts import long_only, some_of, thorough
from tests.helpers.cross_compiler import demo
from tests.transport.simulated.devices.tandem_port import Ported

FOLDER = Path(__file__).resolve().parent
READER = f"source {FOLDER / 'stack_reader.py'}"
COMMANDS = some_of(150)


def hiding_python(folder: Path, share: int) -> str:
    """The path of what starts a session that hides values. *share*: how many, in percent."""
    session = folder / f"python{share}"
    session.write_text(f"#!/bin/sh\nexec {sys.executable} {FOLDER / 'hiding_session.py'} {share}\n")
    session.chmod(0o755)
    return str(session)


def read(elf: Path, capture: Path, numbers: list[int], share: int, folder: Path, gdb: str) -> dict[str, Any]:
    """What the reader sees at some places where *share* % of the values are hidden."""
    asked, result = folder / f"asked{share}.json", folder / f"result{share}.json"
    asked.write_text(json.dumps(numbers))
    files = {"STACK_ASKED": str(asked), "STACK_RESULT": str(result), "RVTRACE_PYTHON": hiding_python(folder, share)}
    run_gdb(elf, [SOURCE, f"trace open {capture}", "trace replay", READER], gdb=gdb, **files)
    found: dict[str, Any] = json.loads(result.read_text())
    return found


@pytest.mark.parametrize("gdb, share", [(GDB, 45), *long_only((GDB16 or GDB, 20), (GDB16 or GDB, 80), (GDB, 100))])
def test_stacks_are_those_with_all_values_and_values_these_or_unavailable(
    gdb: str, share: int, tmp_path: Path
) -> None:
    ported = Ported(demo(tmp_path), extensions="IMAC")
    for _ in range(2000):
        ported.hart.step()
    history = ported.decoded().history
    capture = tandem_capture("x", bytes(ported.traces[0]), ported.parameters, ported.image)
    save(capture, tmp_path / "x.rvt")
    numbers = random.Random(share).sample(range(1, len(history) + 1), some_of(60))
    elf = Path(ported.image.path)
    whole, partly = (read(elf, tmp_path / "x.rvt", numbers, each, tmp_path, gdb) for each in (0, share))
    known = unknown = 0
    for number, one in whole.items():
        other = partly[number]
        assert other["stack"] == one["stack"], number
        for name, value in other["registers"].items():
            assert value in (None, one["registers"][name]), (number, name)
            known, unknown = known + (value is not None), unknown + (value is None)
        assert not re.search("Traceback|corrupt|error reading", other["full"])
        assert other["full"].count("\n#") == one["full"].count("\n#")
    assert known and (unknown > len(numbers) or not share)


@thorough("test_stacks_are_those_with_all_values_and_values_these_or_unavailable")
@pytest.mark.parametrize("gdb, share", [(GDB18 or GDB, 30), *long_only((GDB16 or GDB, 60), (GDB, 5), (GDB, 90))])
def test_random_commands_end_where_the_model_says(gdb: str, share: int, tmp_path: Path) -> None:
    check_walk(gdb, tmp_path, COMMANDS, RVTRACE_PYTHON=hiding_python(tmp_path, share))
