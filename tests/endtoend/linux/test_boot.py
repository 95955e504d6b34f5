"""A trace of a real Linux: processes, system calls, page faults, interrupts, a module, firmware in one history."""

import zipfile
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from rvtrace_gdb.console.main import main
from rvtrace_gdb.decode.history.events import ContextChange
from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.decode.program.image import read_elf
from rvtrace_gdb.session.capture.file import load, save
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.decoded_capture import Decoded
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.session.tasks.tasks import tasks_of
from rvtrace_gdb.session.tasks.turns import TaskTurns
from tests.endtoend.linux.guest_system import (
    FIRMWARE,
    IMAGE_AT,
    LINUX,
    Booted,
    boot,
    btf,
    kernel_address,
    tasks_that_ran,
)
from tests.helpers.amounts import long_only

RET = b"\x82\x80"


@pytest.fixture(scope="module", params=["ntrace", *long_only("etrace")])
def booted(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Booted:
    return boot(tmp_path_factory.mktemp("boot"), request.param)


def decoded(file: Path) -> Decoded:
    session = Session()
    session.open(file, None)
    return session.harts()


def spaces(booted: Booted) -> dict[str, int]:
    """The address space of each process: the first thing that it runs there is its entry."""
    return spaces_in(booted.capture, tuple((name, booted.programs[name]) for name in ("one", "two")))


@cache
def spaces_in(capture: Path, programs: tuple[tuple[str, Path], ...]) -> dict[str, int]:
    [history] = decoded(capture).harts.histories.values()
    entries = {read_elf(program).entry: name for name, program in programs}
    found: dict[str, int] = {}
    for event in history.events:
        if isinstance(event.fact, ContextChange) and event.fact.now.prv == 0 and event.position < len(history):
            name, asid = entries.get(history.pc(event.position) or 0), event.fact.now.scontext
            if name is not None and asid is not None:
                found.setdefault(name, asid)
    return found


def imported(booted: Booted, folder: Path, *memory: str) -> Path:
    """The bytes of the trace, with the programs and what the guest has copied of its kernel, and nothing else."""
    raw, file = folder / "raw", folder / "imported.rvt"
    with zipfile.ZipFile(booted.capture) as capture:
        raw.write_bytes(capture.read("sinks/0.bin"))
    words = ["import", str(raw), f"--{booted.format}", "-o", str(file), "--quiet", "--elf", str(FIRMWARE)]
    words += ["--context-width", "16"] if booted.format == "etrace" else []
    words += ["--symbols", str(booted.kallsyms), *(word for one in memory for word in ("--memory", one))]
    asids = spaces(booted)
    for name, program in booted.programs.items():
        maps, start = folder / f"{name}.maps", 0x200000 if name == "init" else 0x10000
        maps.write_text(f"{start:08x}-{start + 0x1000:08x} r-xp 00000000 00:02 3 /{name}\n")
        words += ["--elf", str(program), "--maps", f"{asids[name]}={maps}" if name in asids else str(maps)]
    assert main(words) == 0
    return file


@pytest.fixture(scope="module")
def whole(booted: Booted, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The trace with what the guest has copied of its kernel, and the types of that."""
    folder = tmp_path_factory.mktemp("whole")
    return imported(booted, folder, *booted.memory, btf(booted, folder))


def test_each_instruction_of_a_running_kernel(
    booted: Booted, whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = decoded(whole)
    assert not found.warnings
    [history] = found.harts.histories.values()
    assert not history.gaps and len(history) > 500_000
    assert list(history.pcs()) == list(booted.executed[0][: len(history)])
    assert capsys.readouterr() == ("", "")
    named = names(found, history)
    assert {"handle_exception", "do_trap_ecall_u", "handle_page_fault", "virtio_queue_rq", "work"} <= named
    assert {history.context_at(i).prv for i in range(0, len(history), 97)} == {0, 1, 3}
    # With the kernel's file instead: a hint names a page, which has to be among those that the kernel has changed.
    image = next(LINUX.glob("boot/vmlinux-*"))
    imported(booted, tmp_path, f"{image}@{IMAGE_AT:#x}", *booted.memory[1:])
    warning, *_, hint = capsys.readouterr().out.splitlines()  # of E-Trace parts may be left out, too
    assert warning.startswith("warning: trace does not match ") and hint.startswith("hint: ")
    page = int(hint.partition("add the page at ")[2].split()[0], 16)
    now = Path(booted.memory[0].partition("@")[0]).read_bytes()
    assert image.read_bytes()[page - IMAGE_AT :][:4096] != now[page - IMAGE_AT - 0x2000 :][:4096]


def test_what_qemu_has_recorded_needs_nothing_else(booted: Booted) -> None:
    """The capture has the code of the kernel as it was, and of each process, also where two have the same addresses."""
    found = decoded(booted.capture)
    [history] = found.harts.histories.values()
    assert not found.warnings and list(history.pcs()) == list(booted.executed[0][: len(history)])
    assert load(booted.capture).images


def names(found: Decoded, history: History) -> set[str]:
    """The functions that ran."""
    images = [found.program.image_of(history.context_at(i)) for i in range(0, len(history), 1000)]
    pcs = set(history.pcs())
    symbols = {image.symbol(pc) for image in set(images) for pc in pcs if image.knows(pc)}
    return {symbol[0] for symbol in symbols if symbol is not None}


@pytest.fixture(scope="module")
def stopped(booted: Booted, whole: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same, with the registers and the memory of the kernel that were saved where the trace ends."""
    file, saved = tmp_path_factory.mktemp("stopped") / "stopped.rvt", load(booted.capture)
    save(replace(load(whole), registers=saved.registers, memory=saved.memory), file)
    return file


@pytest.fixture(scope="module")
def turns(stopped: Path) -> Iterator[tuple[TaskTurns, History]]:
    session = Session()
    session.open(stopped, None)
    selected = session.selected(Context())
    yield tasks_of(session, selected), selected.history
    session.close()


def test_each_switch_is_where_the_kernel_switched_and_no_task_is_wrong(
    booted: Booted, turns: tuple[TaskTurns, History]
) -> None:
    """The kernel's own event of a switch says whose turns they are, what was executed where they begin."""
    found, history = turns
    begin, text = kernel_address(booted.kallsyms, "__switch_to"), Path(booted.memory[0].partition("@")[0]).read_bytes()
    ret = begin + next(at for at in range(0, 512, 2) if text[begin - IMAGE_AT - 0x2000 + at :][:2] == RET)
    switched = [at + 1 for at, pc in enumerate(booted.executed[0][: len(history) - 1]) if pc == ret]
    assert [turn.begin for turn in found.turns] == [0, *switched]
    tasks = tasks_that_ran(booted)
    assert len(tasks) >= len(found.turns) > 20
    pids: dict[int, set[int]] = defaultdict(set)
    for turn, ran in zip(found.turns, tasks, strict=False):
        if turn.task is None:
            continue
        task = found.tasks[turn.task]
        pids[turn.task].add(ran.pid)
        if task.name:
            assert (task.name, task.id) == ran, turn
    assert all(len(each) == 1 for each in pids.values()), "a row mixes tasks"
    named = {found.tasks[row].name for row in pids}
    assert "init" in named and found.turns[-1].task is not None
    of_processes = {found.tasks[row].id for row in pids if found.tasks[row].address is None}
    assert of_processes >= set(spaces(booted).values())


def test_the_tasks_where_a_kernel_stands_are_those_that_it_names(
    booted: Booted, turns: tuple[TaskTurns, History]
) -> None:
    found, _ = turns
    listed = {task.id: task.name for task in found.at_end.tasks if task.id is not None}
    tasks = tasks_that_ran(booted)
    names = {pid: name for name, pid in tasks}
    ended = {pid for name, pid in tasks if name in ("one", "two")}
    assert found.at_end.complete and len(listed) > 20 and not ended & set(listed)
    there = set(listed) & set(names)
    assert {1} < there and {pid: listed[pid] for pid in there} == {pid: names[pid] for pid in there}
