"""Tasks that move between two harts, which were halted where the trace ends, with what memory was then."""

import json
from dataclasses import replace
from itertools import groupby
from pathlib import Path

import pytest

from rvtrace_gdb.console.commands.sim.target import target_description
from rvtrace_gdb.console.main import main
from rvtrace_gdb.session.capture.file import load, save
from rvtrace_gdb.session.capture.model import SavedAt, SavedMemory, SavedRegisters
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.transport.simulated.hart.block import DebugCause
from rvtrace_gdb.transport.simulated.machine import Machine, MemoryMap, build
from tests.helpers.task_systems import Note, What, notes, small
from tests.session.board import Board

_RAM, _SIZE, _X0, _MACHINE_MODE = 0x8000_0000, 1 << 17, 0x1000, 3
_SWITCH = 300


def stopped(folder: Path, system: str) -> tuple[Path, Machine, Path]:
    """A capture of two harts that are halted at its end, without what they and memory were then; and their machine."""
    elf = small(folder, system, harts=2)
    machine = build(elf, memory_map=MemoryMap(ram_size=1 << 20, trace_ram_size=1 << 18), harts=2)
    machine.halt_at_start()
    (folder / "board.toml").write_text(target_description(machine, "board"))
    session, context = Session(Board(machine, elf, folder).connect, {}), Context(str(elf), f"{folder}/board.toml")
    session.start(context, {"timestamps": True})
    for core in machine._cores:
        core.control.resume()
    for _ in range(4):
        machine.run_slice(80_000)
    for core in machine._cores:
        core.control.halt(DebugCause.HALTREQ)
    session.stop(context=context)
    session.save(folder / "it.rvt", context)
    session.close()
    return folder / "it.rvt", machine, elf


def with_end(file: Path, machine: Machine) -> Path:
    """The capture with the registers and the memory of the machine as they are now."""
    registers = tuple(
        SavedRegisters(
            number, SavedAt.STOP, core.hart.csr.debug.dpc,
            {_X0 + n: value for n, value in enumerate(core.hart.x)}, privilege=_MACHINE_MODE,
        )
        for number, core in enumerate(machine._cores)
    )  # fmt: skip
    words = (machine.bus.read(_RAM + at, 4).to_bytes(4, "little") for at in range(0, _SIZE, 4))
    memory = SavedMemory(SavedAt.STOP, _RAM, b"".join(words))
    save(replace(load(file), registers=registers, memory=(memory,)), file.with_name("end.rvt"))
    return file.with_name("end.rvt")


def switched_to(machine: Machine, elf: Path, hart: int, number: int) -> Note:
    """What the hook of the switch noted that had ended before an instruction: a later one had just begun."""
    noted = (note for note in notes(machine, elf) if note.what is What.SWITCHED_IN and note.hart == hart)
    return [note for _, run in groupby(noted, lambda it: it.task) if (note := next(run)).when < number][-1]


@pytest.mark.parametrize(("system", "known"), [("linux", 2), ("zephyr", 0), ("freertos_smp", 2)])
def test_the_last_turn_of_each_hart_is_known_from_the_memory_of_the_end(
    tmp_path: Path, system: str, known: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where the hart was not just being switched. All tasks that there are have rows, too."""
    file, machine, elf = stopped(tmp_path, system)
    whole = with_end(file, machine)
    for capture, expected in ((file, 0), (whole, known)):
        assert main(["tasks", str(capture), "--json", "--quiet"]) == 0
        [answer] = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        ran = [row for row in answer["tasks"] if row["turns"]]
        assert len(ran) == expected and bool(answer["tasks"]) == (capture == whole)
        for row in ran:
            note = switched_to(machine, elf, *row["first"].values())
            assert (int(row["address"], 16), row["name"], row["id"]) == (note.task, note.name, note.number)
            assert row["state"] == "running" and 0 < row["first"]["number"] - note.when < _SWITCH


@pytest.mark.parametrize("system", ["linux", "zephyr", "freertos_smp"])
def test_what_is_missing_is_said_for_each_hart(
    tmp_path: Path, system: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file, machine, _ = stopped(tmp_path, system)
    for capture in (file, with_end(file, machine)):
        assert main(["tasks", str(capture), "--quiet"]) == 0
        said = " ".join(capsys.readouterr().out.split())
        assert "with contexts (`trace start -context`)" in said and "-with-memory" not in said
        for hart in range(2):
            text = said.partition(f"Not known: which task ran on hart {hart} in ")[2].partition(" Not known:")[0]
            assert "other harts may write the variable that says it; the trace has no contexts" in text
            is_saved, is_known = capture != file, system != "zephyr"
            assert ("not saved where the trace ends" in text) != is_saved
            assert ("or the hart was switching" in text) == (is_saved and not is_known)
