"""Answers to questions why about programs that each have a bug: the rows that lead to it, by their source lines."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from rvtrace_gdb.decode.calls.call_history import CallHistory
from rvtrace_gdb.decode.calls.frames import CallFrames
from rvtrace_gdb.decode.program.context_images import ContextImages
from rvtrace_gdb.decode.program.csrs import FCSR
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.reconstruction.facts import HartMachine, KnownState, MemoryKind, MemoryRange
from rvtrace_gdb.rows.list_rows import WhyRow
from rvtrace_gdb.session.past.reconstructed.facts import HartFacts
from rvtrace_gdb.session.past.reconstructed.past import ReconstructedPast
from rvtrace_gdb.session.past.register_writers import RegisterWriters
from rvtrace_gdb.session.questions.why.answer import WhyAnswer
from rvtrace_gdb.session.questions.why.branches import Decisions
from rvtrace_gdb.session.questions.why.links import ValueLinks
from rvtrace_gdb.session.questions.why.names import ProgramNames
from rvtrace_gdb.session.questions.why.trace import HartRanges, TracedPast
from rvtrace_gdb.support.extents import Extent
from tests.decode.reconstruction.spike_history import history_of
from tests.helpers.amounts import long_only
from tests.helpers.compiled import elf_bytes
from tests.transport.simulated.hart.spike import run_spike

ROOT = Path(__file__).resolve().parents[4]
EXAMPLES, PROGRAMS = ROOT / "examples", ROOT / "tests" / "programs" / "why"
RAM = Extent(0x8000_0000, 1 << 20)
CLINT = Extent(0x0200_0000, 0xC0000)
_OPTIONS = ("-march=rv64gc", "-mabi=lp64d", "-Wa,-march=rv64gc_zicsr", "-mcmodel=medany", "-fno-builtin", "-g")


class Asked(NamedTuple):
    """A program that Spike has run, and what can be asked about it up to where `finish` was called."""

    source: Path
    names: ProgramNames
    trace: TracedPast
    links: ValueLinks
    branches: Decisions
    position: int

    def answer(self, text: str, *, depth: int = 9, thin: bool = False, branches: bool = False) -> WhyAnswer:
        found = WhyAnswer(
            self.trace, self.links, self.branches, self.names, thin=thin, depth=depth, choices=branches
        )
        place = self.names.expression(self.position, text)
        if isinstance(place, int):
            found.ask_register(self.position, place)
        else:
            found.ask_memory(self.position, *place)
        if branches:
            found.ask_branches()
        return found

    def line(self, text: str) -> str:
        """FILE:LINE of the only line of the source that has a text."""
        (number,) = (n for n, line in enumerate(self.source.read_text().splitlines(), 1) if text in line)
        return f"{self.source.name}:{number}"


@cache
def asked(source: Path, level: str, folder: Path, *, known: bool = True) -> Asked:
    elf = folder / f"{source.stem}-{level}.elf"
    sources = [EXAMPLES / "start.S", source]
    command = ["riscv64-unknown-elf-gcc", "--specs=picolibc.specs", "-nostartfiles", f"-{level}", *_OPTIONS]
    elf.write_bytes(elf_bytes([*command, "-T", str(EXAMPLES / "link.ld"), *map(str, sources)], sources))
    run = run_spike(elf, folder, "IMAFDC", steps=20_000, memory=((RAM.address, RAM.size),))
    history, image = history_of(run), Image.from_elf(elf)
    program = ContextImages(image)
    machine = HartMachine(64, "IMAFDC", [RAM], machine_only=True)
    memory = [(RAM.address, bytes(RAM.size)), *image.segments]
    state = KnownState(x=(0, *run.x[1:]), f=[0] * 32, csrs={FCSR: 0}, privilege=3, memory=memory)
    past = ReconstructedPast(history, program, HartFacts(machine, state if known else None))
    ranges = [MemoryRange(*RAM, MemoryKind.RAM), MemoryRange(*CLINT, MemoryKind.VOLATILE)]
    trace = TracedPast(history, program, past, RegisterWriters(history, program), HartRanges(0, False, ranges))
    calls = CallHistory(history, program)
    branches = Decisions(trace, calls, CallFrames(history, calls))
    ((finish, _),) = image.symbols_named("finish")
    position = next(at for at in range(len(history)) if history.pc(at) == finish)
    return Asked(source, ProgramNames(trace), trace, ValueLinks(trace), branches, position)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("answers")


@pytest.fixture(params=["Og", "O2", *long_only("O0")])
def level(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def row(rows: Sequence[WhyRow], subject: str, kind: str = "") -> WhyRow:
    return next(it for it in rows if it.subject == subject and kind in ("", it.kind))


def test_wrong_index(level: str, folder: Path) -> None:
    """The offset was written as a gain, by an index from the map of slots; both are in the chain."""
    it = asked(EXAMPLES / "calibration.c", level, folder)
    rows = it.answer("calibration.offset").rows
    assert rows[0].subject == "calibration.offset"
    assert (rows[0].value, rows[0].source_line) == ("30", it.line("calibration.gain[slot[channel]] = scaled;"))
    slot = row(rows, "slot[5]")
    assert slot.value == r"6 '\006'"
    assert (slot.source_line, slot.role) == (it.line("slot[i] = wiring[i]"), "address")
    assert row(rows, "raw").given is not None
    assert row(rows, "measured[5]").kind == "constant"
    before = row(rows, "calibration.offset", "before")
    assert (before.value, before.source_line) == ("4", it.line("calibration.offset = 4;"))
    assert not any(one.left is not None or one.doubts for one in rows)
    assert len(rows) <= 25


def test_thin(level: str, folder: Path) -> None:
    rows = asked(EXAMPLES / "calibration.c", level, folder).answer("calibration.offset", thin=True).rows
    assert not any(one.role for one in rows)
    assert not any(one.subject == "slot[5]" for one in rows)
    assert row(rows, "raw").value == "20"


def test_overwritten_flag(level: str, folder: Path) -> None:
    """The value is a constant: what was there before, and why the handler ran, are the answer."""
    it = asked(PROGRAMS / "flags.c", level, folder)
    rows = it.answer("flags", branches=True).rows
    kinds = [(one.kind, one.value, one.source_line) for one in rows]
    assert kinds[0] == ("constant", "3", it.line("flags = READY | TICK;"))
    assert kinds[1] == ("before", "5", it.line("flags |= SEND;"))
    assert rows[-1].kind == "trapped"
    assert rows[-1].inside == "main"


@pytest.mark.parametrize("level", ["Og", "O2"])
def test_left_on_the_stack(level: str, folder: Path) -> None:
    """It is seen behind two calls into the library, each one step, and the two calls before."""
    it = asked(PROGRAMS / "leftover.c", level, folder)
    rows = it.answer("first_digit").rows
    assert (rows[0].value, rows[0].source_line) == ("92", it.line("first_digit = strtol(shown, NULL, 10) % 100;"))
    called = row(rows, "strtol()")
    assert called.kind == "call"
    assert called.source_line == rows[0].source_line
    copied = row(rows, "shown[1]")
    assert (copied.kind, copied.returned, copied.source_line) == ("call", "memcpy", it.line("memcpy(shown,"))
    left = row(rows, "reading.level")
    assert (left.left, left.source_line) == ("mixture", it.line("scratch[i] = seed * 9 + i;"))
    assert all(one.left is None for one in rows if one.subject != "reading.level")


def test_neighbours_of_one_loop(folder: Path) -> None:
    """Bytes that one instruction copied or cleared in several rounds are one row."""
    rows = asked(PROGRAMS / "leftover.c", "Og", folder).answer("shown", depth=2).rows
    tops = [one for one in rows if not one.level]
    assert [one.subject for one in tops] == ["shown (byte 0..2)", "shown (byte 3..23)"]
    assert tops[1].inside == "_start"
    assert tops[1].rounds == 6


def test_deeper(folder: Path) -> None:
    """A row that was cut is gone into when it is asked for; the answer is the same as that of a greater depth."""
    it = asked(PROGRAMS / "leftover.c", "Og", folder)
    found = it.answer("first_digit", depth=2)
    first = len(found.rows)
    assert any(one.deeper for one in found.rows)
    while found.deepen():
        pass
    assert not found.deepen()
    whole = it.answer("first_digit", depth=100).rows
    made = {one.position for one in found.rows}
    assert {one.position for one in whole} <= made
    assert first < len(whole)
    assert [one.number for one in found.rows] == list(range(1, len(found.rows) + 1))


@pytest.mark.parametrize("level", ["Og", "O2"])
def test_a_value_that_was_saved_many_times(level: str, folder: Path) -> None:
    """It is followed through a bounded number of calls that save its register; whoever goes on gets to what made it."""
    it = asked(PROGRAMS / "saved.c", level, folder)
    found = it.answer("result")
    lines = [one.source_line for one in found.rows]
    assert lines[0] == it.line("result = kept;")
    assert it.line("return input + 41;") not in lines and found.rows[1].deeper
    times = 0
    while it.line("return input + 41;") not in [one.source_line for one in found.rows]:
        assert found.deepen()
        times += 1
    assert times == 3
    assert {one.value for one in found.rows if one.subject in ("kept", "result") and one.kind != "before"} == {"42"}
    assert not any(one.kind == "rounds" or one.doubts for one in found.rows)


def test_constant_that_a_called_function_chose(level: str, folder: Path) -> None:
    """The branch that chose it is below it, and not among the branches of the caller that stored it."""
    it = asked(PROGRAMS / "chosen.c", level, folder)
    rows = it.answer("duty", branches=True).rows
    at = next(at for at, one in enumerate(rows) if one.returned == "limited" and one.value == "255")
    chosen = rows[at + 1]
    assert (chosen.kind, chosen.level, chosen.inside) == ("branch", rows[at].level + 1, "limited")
    assert chosen.source_line == it.line("if (value > limit)")
    assert {value for _, value in chosen.operands or ()} == {"250", "100"}
    assert [one.source_line for one in rows if one.kind == "branch"].count(chosen.source_line) == 1
    assert not [one for one in it.answer("duty").rows if one.kind == "branch"]


def test_operands_of_a_branch(folder: Path) -> None:
    """A row of the branches can be asked: what it compared."""
    it = asked(EXAMPLES / "calibration.c", "Og", folder)
    found = it.answer("calibration.offset", branches=True)
    branch = next(one for one in found.rows if one.kind == "branch")
    assert branch.source_line == it.line("for (int channel = 0; channel < 6; channel++)")
    assert branch.taken is True
    assert branch.operands is not None
    assert ["channel", "5"] in [list(one) for one in branch.operands]
    first = len(found.rows)
    assert found.ask_row(branch.number)
    assert "channel" in [one.subject for one in found.rows[first:]]
    assert not found.ask_row(len(found.rows) + 1)


def test_edges_of_what_is_known(folder: Path) -> None:
    """Without values the chain of a register goes on, and ends at a load, whose address is not known."""
    it = asked(EXAMPLES / "calibration.c", "Og", folder, known=False)
    trace = TracedPast(it.trace.history, it.trace.program, None, None, HartRanges(0, False, ()))
    found = WhyAnswer(trace, ValueLinks(trace), it.branches, ProgramNames(trace), thin=False, depth=9)
    made = next(at for at in range(it.position) if it.names.source_line(at) == it.line("int scaled = raw * 3 / 2;"))
    found.ask_register(made + 4, 0x100F)
    assert found.rows[0].source_line == it.line("int scaled = raw * 3 / 2;")
    assert {one.kind for one in found.rows if one.subject.startswith("memory")} <= {"no-address"}
    assert all(one.value is None for one in found.rows)
