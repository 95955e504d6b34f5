"""Loops that call functions: the branch that keeps them is their own, not one of a function that they call."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from rvtrace_gdb.console.main import main
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.transport.simulated.machine import MemoryMap, build
from tests.helpers.cross_compiler import compile_program
from tests.session.board import Board
from tests.session.questions.explain.corpus import described
from tests.session.questions.explain.mutants import FOLDER

SOURCE = FOLDER / "frames.c"
X = ("zero", "ra", "sp", "gp", "tp", "t0", "t1", "t2", "s0", "s1", *(f"a{n}" for n in range(8)),
     *(f"s{n}" for n in range(2, 12)), "t3", "t4", "t5", "t6")  # fmt: skip
"""The registers by their numbers: RISC-V ABIs, table "Integer register convention"."""
SMALL, LARGE = 1 << 12, 1 << 16


def captured(folder: Path, case: int, size: int) -> tuple[Path, tuple[int, ...]]:
    """A capture of a case, and the registers of the hart at its end. *size*: that of the trace buffer."""
    elf = compile_program(folder, SOURCE, options=(f"-DCASE={case}", f"-I{FOLDER}", "-w"))
    machine = build(elf, memory_map=MemoryMap(ram_size=1 << 20, trace_ram_size=size))
    machine.halt_at_start()
    target = Board(machine, elf, folder, registers=True)
    session, context = Session(target.connect, {}), described(target, size, etrace=False)
    session.start(context, {})
    target.run(20_000)
    capture = folder / "frames.rvt"
    session.save(capture, context)
    session.close()
    return capture, tuple(machine.hart.x)


def explained(capture: Path, capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert main(["explain", str(capture), *words, "--json", "--quiet"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def line_of(text: str) -> int:
    return 1 + next(at for at, line in enumerate(SOURCE.read_text().splitlines()) if text in line)


@pytest.mark.parametrize("size", [SMALL, LARGE], ids=["older trace was overwritten", "whole"])
def test_the_bound_is_that_of_the_loop(tmp_path: Path, size: int, capsys: pytest.CaptureFixture[str]) -> None:
    """next_byte() has a branch, too, whose other way did not run; it comes back. The values are those of the hart."""
    capture, registers = captured(tmp_path, 1, size)
    found = explained(capture, capsys)
    [finding] = found["findings"]
    assert finding["kind"] == "counts-past-bound" and "in body()" in finding["text"]
    assert (finding["place"]["func"], finding["place"]["line"]) == ("body", line_of("while (i != length)"))
    compared = re.findall(r"(\w+) = (0x[0-9a-f]+)", finding["text"])
    assert len(compared) == 2 and any(int(value, 16) == 0 for _, value in compared)
    for name, value in compared:
        assert registers[X.index(name)] - int(value, 16) in (0, 1), "the last round may have begun"
    asked = [f"rvtrace why {capture} '${name}' --at {finding['place']['number']}" for name, _ in compared]
    assert set(found["next"][1:]) == set(asked)


def test_what_is_proposed_is_answered(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In the text and in JSON alike; and in a part of the trace."""
    capture, _ = captured(tmp_path, 1, SMALL)
    for part in ((), ("1,2000",)):
        assert main(["explain", str(capture), *part, "--quiet"]) == 0
        text = capsys.readouterr().out
        proposed = explained(capture, capsys, *part)["next"]
        assert [it.strip() for it in text.partition("Next: ")[2].splitlines()] == proposed
        for line in proposed:
            command, *words = shlex.split(line)
            assert (command, main([*words, "--quiet"])) == ("rvtrace", 0), line
            answer = capsys.readouterr().out
            assert answer and "not known" not in answer.splitlines()[0], line


def test_a_wait_through_a_function_is_still_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What answered() tests is what its caller waits for."""
    capture, _ = captured(tmp_path, 2, LARGE)
    [finding] = explained(capture, capsys)["findings"]
    assert finding["kind"] == "waits" and finding["text"].startswith("wait_for_answer() waits for `answers`")
