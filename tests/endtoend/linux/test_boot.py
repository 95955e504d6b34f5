"""A trace of a real Linux: processes, system calls, page faults, interrupts, a module, firmware in one history."""

import zipfile
from pathlib import Path

import pytest

from rvtrace_gdb.console.main import main
from rvtrace_gdb.decode.history.events import ContextChange
from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.decode.program.image import read_elf
from rvtrace_gdb.session.decoded_capture import Decoded
from rvtrace_gdb.session.session import Session
from tests.endtoend.linux.guest_system import FIRMWARE, LINUX, Booted, boot
from tests.helpers.amounts import long_only

IMAGE_AT = 0xFFFFFFFF80000000


def decoded(file: Path) -> Decoded:
    session = Session()
    session.open(file, None)
    return session.harts()


def spaces(booted: Booted) -> dict[str, int]:
    """The address space of each process: the first thing that it runs there is its entry."""
    [history] = decoded(booted.capture).harts.histories.values()
    entries = {read_elf(booted.programs[name]).entry: name for name in ("one", "two")}
    found: dict[str, int] = {}
    for event in history.events:
        if isinstance(event.fact, ContextChange) and event.fact.now.prv == 0 and event.position < len(history):
            name, asid = entries.get(history.pc(event.position) or 0), event.fact.now.scontext
            if name is not None and asid is not None:
                found.setdefault(name, asid)
    return found


def imported(booted: Booted, asids: dict[str, int], folder: Path, format: str, *memory: str) -> Path:
    """A capture of the bytes of the trace, with the programs, their address spaces and what the guest has copied of its
    kernel, and nothing else.
    """
    raw, file = folder / "raw", folder / "imported.rvt"
    with zipfile.ZipFile(booted.capture) as capture:
        raw.write_bytes(capture.read("sinks/0.bin"))
    words = ["import", str(raw), f"--{format}", "-o", str(file), "--quiet", "--elf", str(FIRMWARE)]
    words += ["--context-width", "16"] if format == "etrace" else []
    words += ["--symbols", str(booted.kallsyms), *(word for one in memory for word in ("--memory", one))]
    for name, program in booted.programs.items():
        maps, start = folder / f"{name}.maps", 0x200000 if name == "init" else 0x10000
        maps.write_text(f"{start:08x}-{start + 0x1000:08x} r-xp 00000000 00:02 3 /{name}\n")
        words += ["--elf", str(program), "--maps", f"{asids[name]}={maps}" if name in asids else str(maps)]
    assert main(words) == 0
    return file


@pytest.mark.parametrize("format", ["ntrace", *long_only("etrace")])
def test_each_instruction_of_a_running_kernel(tmp_path: Path, format: str, capsys: pytest.CaptureFixture[str]) -> None:
    booted = boot(tmp_path, format)
    asids = spaces(booted)
    found = decoded(imported(booted, asids, tmp_path, format, *booted.memory))
    assert not found.warnings
    [history] = found.harts.histories.values()
    assert not history.gaps and len(history) > 500_000
    assert list(history.pcs()) == list(booted.executed[: len(history)])
    assert capsys.readouterr() == ("", "")
    named = names(found, history)
    assert {"handle_exception", "do_trap_ecall_u", "handle_page_fault", "virtio_queue_rq", "work"} <= named
    assert {history.context_at(i).prv for i in range(0, len(history), 97)} == {0, 1, 3}
    # With the kernel's file instead: a hint names a page, which has to be among those that the kernel has changed.
    image = next(LINUX.glob("boot/vmlinux-*"))
    imported(booted, asids, tmp_path, format, f"{image}@{IMAGE_AT:#x}", *booted.memory[1:])
    warning, hint = capsys.readouterr().out.splitlines()
    assert warning.startswith("warning: trace does not match ") and hint.startswith("hint: ")
    page = int(hint.partition("add the page at ")[2].split()[0], 16)
    now = Path(booted.memory[0].partition("@")[0]).read_bytes()
    assert image.read_bytes()[page - IMAGE_AT :][:4096] != now[page - IMAGE_AT - 0x2000 :][:4096]


def names(found: Decoded, history: History) -> set[str]:
    """The functions that ran."""
    images = [found.program.image_of(history.context_at(i)) for i in range(0, len(history), 1000)]
    pcs = set(history.pcs())
    symbols = {image.symbol(pc) for image in set(images) for pc in pcs if image.knows(pc)}
    return {symbol[0] for symbol in symbols if symbol is not None}
