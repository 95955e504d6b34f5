"""What the kernel's records say of a trace: which thread ran, which program it had, when, and which code the kernel
had. Known of harts that were stepped, of the records, and of the trace.
"""

import struct
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from rvtrace_gdb.console.main import main
from rvtrace_gdb.decode.coresight.formatter import FrameFormatter
from rvtrace_gdb.decode.history.events import BreakKind
from rvtrace_gdb.decode.history.hart_order import HartOrder
from rvtrace_gdb.decode.history.history import GAP, History
from rvtrace_gdb.session.capture import file as capture_file
from rvtrace_gdb.session.capture.model import UNKNOWN_THREAD, CapturedSink, TraceBreak
from rvtrace_gdb.session.session import Session
from tests.helpers.cross_compiler import symbol_address
from tests.reports.coverage import traced
from tests.session.perf_data.recorded import ARCH, code_segment, started
from tests.session.perf_data.recorder import Recorder
from tests.session.perf_data.test_importing import SRC_BITS, imported, in_context, trace_of
from tests.session.perf_data.writer import attr


class Program:
    """A program that ran: its file, what ran, its trace."""

    def __init__(
        self, folder: Path, name: str, level: str = "-O0", *, form: str = "--ntrace",
        sources: Sequence[Path] = traced.SOURCES,
    ) -> None:  # fmt: skip
        built = traced.program(folder / "built", sources, level)
        self.elf = folder / f"{name}.elf"
        self.elf.write_bytes(built.read_bytes())
        self.ran = traced.retired(self.elf)
        self.data, self.settings = trace_of(self.elf, self.ran, folder / "it.rvt", form)


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Program:
    return Program(tmp_path_factory.mktemp("one"), "one")


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Program:
    """It has other code at the same addresses."""
    return Program(tmp_path_factory.mktemp("other"), "other", "-O2")


def opened(data: bytes, folder: Path, *programs: Program, more: tuple[str, ...] = ()) -> tuple[Session, list[str]]:
    words = [word for program in programs for word in ("--elf", str(program.elf))]
    return imported(data, folder / "perf.data", "--settings", str(programs[0].settings), *words, *more)


def history_of(session: Session, hart: int = 0) -> History:
    return session.harts().harts.histories[hart]


def by_context(history: History) -> list[tuple[int | None, list[int]]]:
    """What ran, without gaps, in each context, whose thread comes first."""
    begins = [position for position, _ in history.contexts]
    return [
        (context.scontext, [pc for pc in history.pcs(begin, end) if pc != GAP])
        for (_, context), (begin, end) in zip(history.contexts, pairwise([*begins, len(history)]), strict=True)
    ]


def test_a_process_executes_another_program(one: Program, other: Program, tmp_path: Path) -> None:
    """The same process, at the same addresses, with the code of each time; and a process of the same number later."""
    writer = Recorder()
    started(writer, one.elf, 100)
    writer.piece(one.data, pid=100, time=10)
    writer.comm(100, 100, "other", exec=True, time=20)
    segment = code_segment(other.elf)
    size = segment.vaddr + len(segment.data) - (segment.vaddr & -4096) + 4096 & -4096
    writer.mmap2(100, segment.vaddr & -4096, size, segment.offset & -4096, f"/bin/{other.elf.name}", time=21)
    writer.piece(b"", pid=100, time=22)  # from here on the other program alone
    writer.piece(other.data, pid=100, time=30)
    session, notes = opened(writer.written(), tmp_path, one, other)
    assert by_context(history_of(session)) == [(100, one.ran), (100, other.ran)]
    assert notes == []


def test_where_a_program_is_executed_meanwhile_both_have_run(one: Program, other: Program, tmp_path: Path) -> None:
    """What both have alike at an address ran; elsewhere nobody knows the code, and no instruction is made up."""
    writer = Recorder()
    started(writer, one.elf, 100)
    writer.comm(100, 100, "other", exec=True, time=20)
    segment = code_segment(other.elf)
    size = segment.vaddr + len(segment.data) - (segment.vaddr & -4096) + 4096 & -4096
    writer.mmap2(100, segment.vaddr & -4096, size, segment.offset & -4096, f"/bin/{other.elf.name}", time=21)
    writer.piece(one.data + other.data, pid=100, time=30)
    writer.piece(other.data, pid=100, time=40)
    session, _ = opened(writer.written(), tmp_path, one, other)
    history = history_of(session)
    (_, mixed), (_, last) = by_context(history)
    assert last == other.ran and len(mixed) < len(one.ran) + len(other.ran)
    places = [(at, len(data)) for at, data in session.capture().images[0].code]
    assert all(any(at <= pc < at + size for at, size in places) for pc in mixed)
    assert any("code of one of several programs" in event.text for event in history.events)


@pytest.mark.parametrize("wide", [True, False])
def test_switches_say_which_thread_ran(wide: bool, one: Program, other: Program, tmp_path: Path) -> None:
    """In a session of whole CPUs the AUX record comes at any time: its own thread, here 1, means nothing."""
    writer = Recorder()
    writer.id_index((1, 0, 0, -1), (2, 1, 1, -1))
    started(writer, one.elf, 100)
    started(writer, other.elf, 200)
    for begin, thread, program in ((100, 100, one), (200, 200, other), (300, 100, one)):
        writer.switch(thread, time=begin, other=0 if wide else None)
        writer.switch(thread, time=begin + 50, other=0 if wide else None, out=True)
        writer.piece(program.data, pid=1, time=begin + 60)
    session, notes = opened(writer.written(), tmp_path, one, other)
    assert by_context(history_of(session)) == [(100, one.ran), (200, other.ran), (100, one.ran)]
    assert notes == []


def test_which_of_several_threads_ran_is_not_known(one: Program, tmp_path: Path) -> None:
    """Two processes with the same program: the code is known, and the thread is not."""
    writer = Recorder()
    writer.id_index((1, 0, 0, -1))
    started(writer, one.elf, 100)
    started(writer, one.elf, 200)
    writer.switch(100, time=10, other=0)
    writer.switch(100, time=20, other=200, out=True)
    writer.piece(one.data, pid=200, time=30)  # what runs when the record is made
    session, _ = opened(writer.written(), tmp_path, one)
    [sink] = session.capture().sinks
    assert [mark.thread for mark in sink.marks] == [UNKNOWN_THREAD]
    history = history_of(session)
    assert list(history.pcs()) == one.ran and history.context_at(0).scontext is None


def test_each_cpu_has_one_history_and_times_merge_them(one: Program, other: Program, tmp_path: Path) -> None:
    """Threads with buffers of their own, each on both CPUs in turn. The kernel says which hart a CPU is."""
    writer = Recorder()
    started(writer, one.elf, 100)
    started(writer, other.elf, 200)
    for cpu, hart in ((0, 4), (1, 7)):
        writer.kernel_record(21, writer.pack("Q", hart), cpu=cpu, time=3)
    writer.piece(one.data, pid=100, time=10, cpu=0, index=0)
    writer.piece(other.data, pid=200, time=15, cpu=1, index=1, id=2)
    writer.piece(one.data, pid=100, time=30, cpu=1, index=0)
    writer.piece(other.data, pid=200, time=25, cpu=0, index=1, id=2)
    session, notes = opened(writer.written(tids={0: 100, 1: 200}), tmp_path, one, other)
    assert sorted(session.harts().harts.histories) == [4, 7] and notes == []
    assert by_context(history_of(session, 4)) == [(100, one.ran), (200, other.ran)]
    assert by_context(history_of(session, 7)) == [(200, other.ran), (100, one.ran)]
    order = [(run.hart, run.end - run.begin) for run in HartOrder(session.harts().harts.histories).runs()]
    assert [hart for hart, _ in order] == [4, 7, 4, 7]


@pytest.mark.parametrize("form", ["--ntrace", "--etrace"])
def test_pieces_that_do_not_go_on_begin_anew(form: str, tmp_path: Path) -> None:
    """A series resets the write pointer at each context switch: what is cut off at the end of a piece belongs to
    nothing behind it, and the next piece is read from its first message on.
    """
    program = Program(tmp_path, "one", form=form)
    cut = program.data[: len(program.data) // 2]
    sinks = {}
    for kind in BreakKind:
        data = cut + program.data
        sinks[kind] = decoded_with(program, data, (TraceBreak(len(cut), "why", kind),))
    for kind in (BreakKind.MESSAGE, BreakKind.RESTART):
        parts = stretches_of(sinks[kind])
        assert parts[-1] == program.ran
        assert parts[0] == program.ran[: len(parts[0])] and len(parts) == 2
    assert len(stretches_of(sinks[BreakKind.ANYWHERE])[-1]) < len(program.ran)
    ended = decoded_with(program, program.data + program.data, (TraceBreak(len(program.data), "w", BreakKind.RESTART),))
    assert stretches_of(ended) == [program.ran, program.ran]
    assert not any(event.is_loss for event in ended.events)


def test_the_series_that_begins_anew_with_each_piece(tmp_path: Path) -> None:
    """SiFive's encoders of version 0, whose driver resets the write pointer at each switch: a piece that is cut off."""
    elf = traced.program(tmp_path / "program")
    ran = traced.retired(elf)
    settings = traced.trace(elf, ran, tmp_path / "it.rvt", "--ntrace", "--dialect", "sifive", "--sync-max", "0")
    [sink] = capture_file.load(settings).sinks
    (tmp_path / "one.elf").write_bytes(elf.read_bytes())
    writer = Recorder()
    started(writer, elf, 100, name="one.elf")
    writer.piece(sink.data[:-1], pid=100, time=10)
    writer.piece(sink.data, pid=100, time=20)
    words = "--settings", str(settings), "--elf", str(tmp_path / "one.elf")
    session, _ = imported(writer.written(), tmp_path / "perf.data", *words)
    assert [part for part in stretches_of(history_of(session)) if part][-1] == ran
    [captured] = session.capture().sinks
    assert [it.kind for it in captured.breaks] == [BreakKind.RESTART]


def decoded_with(program: Program, data: bytes, breaks: tuple[TraceBreak, ...]) -> History:
    """A history of other bytes with the settings, the program and the code of a trace."""
    capture = capture_file.load(program.settings)
    [sink] = capture.sinks
    assert isinstance(sink, CapturedSink)
    session = Session()
    session.open_capture(replace(capture, sinks=(replace(sink, data=data, breaks=breaks),)), "x", None)
    [history] = session.harts().harts.histories.values()
    return history


def stretches_of(history: History) -> list[list[int]]:
    found: list[list[int]] = [[]]
    for pc in history.pcs():
        if pc == GAP:
            found.append([])
        else:
            found[-1].append(pc)
    return found


KEY = """
int seen;
__attribute__((noinline)) static void work(void)
{
    asm volatile(".option push\\n.option norvc\\n.balign 4\\n.globl key\\nkey: " INSTRUCTION
                 "\\nnop\\n1: nop\\n.option pop");
    seen++;
}
int main(void)
{
    for (int n = 0; n < 4; n++)
        work();
    return 0;
}
"""


def with_key(folder: Path, instruction: str) -> Program:
    folder.mkdir()
    source = folder / "key.c"
    source.write_text(KEY.replace("INSTRUCTION", f'"{instruction}"'))
    return Program(folder, "vmlinux", sources=(source,))


def test_the_kernel_changes_its_code(tmp_path: Path) -> None:
    """A static key: a nop that becomes a jump and a nop again. Of the piece in which it changes nobody knows it."""
    off, on = with_key(tmp_path / "off", "nop"), with_key(tmp_path / "on", "j 1f")
    segment = code_segment(off.elf)
    key = symbol_address(off.elf, "key")
    nop, jump = (code_segment(it.elf).data[key - segment.vaddr :][:4] for it in (off, on))
    assert key == symbol_address(on.elf, "key") and nop != jump and off.ran != on.ran
    writer = Recorder()
    writer.piece(off.data, pid=100, time=10)
    writer.poke(key, nop, jump, time=20)
    writer.piece(b"", pid=100, time=21)
    writer.piece(on.data, pid=100, time=30)
    writer.piece(on.data, pid=100, time=40)
    writer.poke(key, jump, nop, time=41)
    writer.piece(b"", pid=100, time=42)
    writer.piece(off.data, pid=100, time=50)
    writer.poke(key, nop, jump, time=60)
    writer.piece(off.data, pid=100, time=70)
    session, _ = opened(writer.written(), tmp_path, off)
    *known, changing = [part for part in stretches_of(history_of(session)) if part]
    assert known[:4] == [off.ran, on.ran, on.ran, off.ran]
    assert key not in changing and changing == off.ran[: len(changing)]




def test_timestamps_say_where_in_a_piece_a_thread_begins(tmp_path: Path) -> None:
    """The trace's clock counts instructions; TIME_CONV makes two nanoseconds of each, from 1000 on. The switch is after
    the last message that was sent before it.
    """
    elf = traced.program(tmp_path / "program")
    ran = traced.retired(elf)
    settings = traced.trace(elf, ran, tmp_path / "it.rvt", "--ntrace", "--timestamps", "--sync-max", "0")
    [sink] = capture_file.load(settings).sinks
    at = len(ran) // 3
    writer = Recorder()
    writer.record(79, writer.pack("5Q", 8, 512, 1000, 0, 0) + bytes((1, 0, 0, 0, 0, 0, 0, 0)))
    writer.id_index((1, 0, 0, -1))
    started(writer, elf, 100, name="one.elf")
    started(writer, elf, 200, name="one.elf")
    (tmp_path / "one.elf").write_bytes(elf.read_bytes())
    writer.switch(100, time=900, other=0)
    writer.switch(100, time=1000 + 2 * at, other=200, out=True)
    writer.piece(sink.data, pid=1, time=1000 + 2 * len(ran) + 50)
    clock = struct.pack("<2I2Q", 1, 1, 10**18, 500)
    data = writer.written({}, features={29: clock})
    words = "--settings", str(settings), "--elf", str(tmp_path / "one.elf")
    session, notes = imported(data, tmp_path / "perf.data", *words)
    history = history_of(session)
    assert list(history.pcs()) == ran
    (_, first), (begin, second) = history.contexts
    assert (first.scontext, second.scontext) == (100, 200)
    sent = [time for time in history.times.arrays[1] if time < at]
    assert sent[-1] <= begin <= at and at - begin < 200
    moment = 10**18 + 1000 + 2 * len(ran) + 50 - 500
    assert notes == [
        f"the first piece of trace was recorded at 2001-09-09T01:46:40.{moment - 10**18:09}Z,"
        f" {1000 + 2 * len(ran) + 50} ns of CLOCK_MONOTONIC"
    ]


def test_a_process_in_frames_executes_another_program(one: Program, other: Program, tmp_path: Path) -> None:
    """The series whose trace has contexts, and frames: the records say which code the thread of a context had then."""
    writer, formatter = Recorder(), FrameFormatter()
    started(writer, one.elf, 100)
    writer.comm(100, 100, "other", exec=True, time=20)
    segment = code_segment(other.elf)
    size = segment.vaddr + len(segment.data) - (segment.vaddr & -4096) + 4096 & -4096
    writer.mmap2(100, segment.vaddr & -4096, size, segment.offset & -4096, f"/bin/{other.elf.name}", time=21)
    pieces = [formatter.put(3, in_context(program.data, 0, 100)) + formatter.flush() for program in (one, other)]
    for number, (piece, time) in enumerate(zip((pieces[0], b"", pieces[1]), (10, 25, 30), strict=True)):
        writer.aux(len(pieces[0]) * (number > 0), len(piece), pid=100, time=time)
    writer.auxtrace_info([9 << 32 | 1, 0, 5, 1, 1, 0, SRC_BITS, 0])
    writer.auxtrace(b"".join(pieces))
    words = [word for program in (one, other) for word in ("--elf", str(program.elf))]
    session, notes = imported(writer.file([(attr(), [1])], ARCH), tmp_path / "perf.data", *words)
    assert [part for part in stretches_of(history_of(session)) if part] == [one.ran, other.ran]
    assert notes == []


def in_user_mode(elf: Path, ran: list[int], folder: Path) -> tuple[bytes, Path]:
    """The E-Trace of a program that ran in U mode, as a log of Spike says, and a capture with its settings."""
    segment, log, file = code_segment(elf), folder / f"{elf.stem}.log", folder / f"{elf.stem}.rvt"
    words = ((pc, int.from_bytes(segment.data[pc - segment.vaddr :][:4], "little")) for pc in ran)
    rows = ((pc, word if word & 3 == 3 else word & 0xFFFF) for pc, word in words)
    log.write_text("".join(f"core   0: 0 0x{pc:016x} (0x{word:x})\n" for pc, word in rows))
    command = ["encode", "--elf", str(elf), "--pcs", str(log), "-o", str(file), "--etrace", "--quiet"]
    assert main([*command, "--sync-mode", "packets", "--sync-max", "0"]) == 0
    [sink] = capture_file.load(file).sinks
    return sink.data, file


def test_threads_of_etrace(one: Program, other: Program, tmp_path: Path) -> None:
    """Packets have the privilege mode, and no context."""
    traces = [in_user_mode(program.elf, program.ran, tmp_path) for program in (one, other)]
    writer = Recorder()
    started(writer, one.elf, 100)
    started(writer, other.elf, 200)
    for number, pid in enumerate((100, 200, 100)):
        writer.piece(traces[number % 2][0], pid=pid, time=10 + number)
    words = [word for program in (one, other) for word in ("--elf", str(program.elf))]
    session, _ = imported(writer.written(), tmp_path / "perf.data", "--settings", str(traces[0][1]), *words)
    history = history_of(session)
    assert [part for part in stretches_of(history) if part] == [one.ran, other.ran, one.ran]
    found = [history.context_at(len(one.ran) // 2), history.context_at(len(history) - 9)]
    assert [(it.prv, it.scontext) for it in found] == [(0, 100), (0, 100)]
    assert [it.scontext for _, it in history.contexts if it.prv == 0][:3] == [100, 200, 100]


def test_no_process_of_whole_cpus_can_be_chosen(
    one: Program, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    writer = Recorder()
    writer.id_index((1, 0, 0, -1))
    started(writer, one.elf, 100)
    writer.switch(100, time=10, other=0)
    writer.piece(one.data, pid=1, time=20)
    (tmp_path / "perf.data").write_bytes(writer.written())
    words = ["--settings", str(one.settings), "--elf", str(one.elf), "--quiet", "-o", str(tmp_path / "it.rvt")]
    for pid, why in (
        (100, "of whole CPUs (perf record -a or -C), not of process 100: import it without --pid"),
        (7, "process 7 has no trace; those that have: 100 (one)"),
    ):
        assert main(["import", str(tmp_path / "perf.data"), *words, "--pid", str(pid)]) == 1
        assert why in capsys.readouterr().err


def test_a_file_that_is_not_there_is_said_before_its_program_is_missed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["import", str(tmp_path / "perf.data"), "-o", str(tmp_path / "it.rvt")]) == 1
    assert "perf.data: cannot be read: No such file or directory" in capsys.readouterr().err


def test_a_hint_names_files_whose_code_ran_and_was_not_found(
    one: Program, other: Program, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    writer = Recorder()
    started(writer, one.elf, 100)
    started(writer, other.elf, 200)
    for pid, program in ((100, one), (200, other)):
        writer.piece(program.data, pid=pid, time=pid)
    (tmp_path / "perf.data").write_bytes(writer.written())
    words = ["--settings", str(one.settings), "-o", str(tmp_path / "it.rvt")]
    for elves, missed in (((one,), [other]), ((), [one, other]), ((one, other), [])):
        given = [word for program in elves for word in ("--elf", str(program.elf))]
        assert main(["import", str(tmp_path / "perf.data"), *words, *given]) == 0
        hints = [line for line in capsys.readouterr().out.splitlines() if line.startswith("hint:")]
        names = ", ".join(f"/usr/bin/{program.elf.name}" for program in missed)
        expected = f"code ran whose file was not found, {names}: --sysroot DIR, the target's root file system, or"
        expected += " --elf FILE"
        assert [line.removeprefix("hint:").strip() for line in hints] == ([expected] if missed else [])
