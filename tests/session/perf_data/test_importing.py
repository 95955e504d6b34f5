"""What is imported of perf.data ran: known of a hart that was stepped."""

import subprocess
import sys
from itertools import groupby, pairwise
from pathlib import Path

import pytest

from rvtrace_gdb.console.main import main
from rvtrace_gdb.decode.coresight.formatter import FrameFormatter
from rvtrace_gdb.decode.history.history import GAP, History
from rvtrace_gdb.session.capture import file as capture_file
from rvtrace_gdb.session.capture.model import CapturedSink
from rvtrace_gdb.session.session import Session
from tests.decode.ntrace.messages import message
from tests.helpers.reference_streams import from_source
from tests.reports.coverage import traced
from tests.session.exports.perf.test_exports import transfers
from tests.session.perf_data.recorded import (
    ARCH,
    COLLISION,
    PARTIAL,
    TRUNCATED,
    code_segment,
    started,
    with_samples,
    with_trace,
)
from tests.session.perf_data.writer import Writer, attr

SRC_BITS = 12
BUILD_ID = bytes(range(1, 21))
FORMATS = {
    "--ntrace": ("--sync-mode", "messages", "--sync-max", "0"),
    "--etrace": ("--sync-mode", "packets", "--sync-max", "0"),
}


NAMES = {"--ntrace": "", "--etrace": "of-no-process"}
"""The file that the process had mapped. E-Trace says that this code ran in M mode, where no process is."""


@pytest.fixture(scope="module")
def elf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return traced.program(tmp_path_factory.mktemp("program"))


@pytest.fixture(scope="module")
def ran(elf: Path) -> list[int]:
    return traced.retired(elf)


def trace_of(elf: Path, ran: list[int], file: Path, form: str) -> tuple[bytes, Path]:
    """The bytes of a trace that synchronizes often, and a capture with its settings."""
    settings = traced.trace(elf, ran, file, form, *FORMATS[form])
    [sink] = capture_file.load(settings).sinks
    return sink.data, settings


def imported(data: bytes, file: Path, *words: str) -> tuple[Session, list[str]]:
    """What is in a perf.data, as it is saved and opened again; and the notes about it."""
    file.write_bytes(data)
    out = file.with_suffix(".rvt")
    assert main(["import", str(file), "-o", str(out), "--quiet", *words]) == 0
    session = Session()
    session.open(out, None)
    return session, list(session.capture().notes)


def stretches(session: Session) -> list[list[int]]:
    """What ran between gaps."""
    [history] = session.harts().harts.histories.values()
    return [list(part) for gap, part in groupby(history.pcs(), lambda pc: pc == GAP) if not gap]


@pytest.mark.parametrize("form", FORMATS)
def test_the_trace_of_a_cpu_is_what_ran(form: str, elf: Path, ran: list[int], tmp_path: Path) -> None:
    data, settings = trace_of(elf, ran, tmp_path / "it.rvt", form)
    middle = len(data) // 3
    perf = with_trace(elf, [(data[:middle], 0), (data[middle:], 0)], cpu=3, name=NAMES[form])
    session, notes = imported(perf, tmp_path / "perf.data", "--settings", str(settings), "--elf", str(elf))
    assert stretches(session) == [ran] and notes == []
    assert list(session.harts().harts.histories) == [3]
    assert "Linux 6.18.0, recorded by perf" in session.capture().target


@pytest.mark.parametrize("form", FORMATS)
def test_what_the_kernel_lost_is_a_gap(form: str, elf: Path, ran: list[int], tmp_path: Path) -> None:
    """Wherever the trace is cut, also in the middle of a message: what is on both sides ran, and nothing else did."""
    data, settings = trace_of(elf, ran, tmp_path / "it.rvt", form)
    middle = len(data) // 2
    for flag, begin, end in ((TRUNCATED, 400, 500), (PARTIAL, 333, 701), (COLLISION, middle, middle + 1)):
        perf = with_trace(elf, [(data[:begin], 0), (data[end:], flag)], name=NAMES[form])
        session, notes = imported(perf, tmp_path / "perf.data", "--settings", str(settings), "--elf", str(elf))
        before, behind = stretches(session)
        assert ran[: len(before)] == before and ran[len(ran) - len(behind) :] == behind
        assert len(ran) / 20 < len(before) and len(before) + len(behind) < len(ran)
        [note] = notes
        assert "trace is missing, 1 time: " in note
        [sink] = session.capture().sinks
        assert isinstance(sink, CapturedSink)
        assert [one.offset for one in sink.breaks] == [begin]
        accounting = session.harts().harts.accounting
        assert accounting.total == len(data) - (end - begin) == sum(accounting[1:])


@pytest.mark.parametrize("form", FORMATS)
def test_what_the_kernel_lost_at_the_begin_is_shown(
    form: str, elf: Path, ran: list[int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, settings = trace_of(elf, ran, tmp_path / "it.rvt", form)
    perf = with_trace(elf, [(data[333:], TRUNCATED)], name=NAMES[form])
    session, notes = imported(perf, tmp_path / "perf.data", "--settings", str(settings), "--elf", str(elf))
    assert "trace is missing, 1 time: " in notes[0]
    [found] = stretches(session)
    assert found == ran[len(ran) - len(found) :] and len(found) > len(ran) / 3
    why = "the kernel had no room for it in the AUX buffer (PERF_AUX_FLAG_TRUNCATED)"
    for words, said in (
        (["gaps"], why),
        (["events"], why),
        (["perf-script", "--itrace=e"], " instruction trace error type 1 time "),
    ):
        capsys.readouterr()
        assert main([words[0], str(tmp_path / "perf.rvt"), *words[1:], "--quiet"]) == 0
        first = capsys.readouterr().out.splitlines()[0]
        assert said in first and "trace byte 0x0" in first, words


def test_branch_stacks_are_records(elf: Path, ran: list[int], tmp_path: Path) -> None:
    """What ran in each sample, from its oldest branch to where it was taken."""
    taken = transfers(elf, ran)
    stacks, expected = [], []
    for last in range(60, len(taken) - 1, 90):
        numbers = taken[last - 31 : last + 1]
        end = numbers[-1] + 3
        stacks.append((ran[end], [(ran[number], ran[number + 1]) for number in reversed(numbers)]))
        expected.append(ran[numbers[0] : end])
    session, _ = imported(with_samples(elf, stacks, cpu=1), tmp_path / "perf.data", "--elf", str(elf))
    assert len(stacks) > 10
    assert stretches(session) == expected
    [records] = session.capture().records
    assert (records.hart, records.samples) == (1, len(stacks))


def of_two_processes(elf: Path, data: bytes, other: Path, behind: bytes) -> bytes:
    """A perf.data of a CPU on which first process 100 ran, then 200, then 100 again. Each piece is a whole trace."""
    writer = Writer()
    started(writer, elf, 100)
    started(writer, other, 200)
    for number, (pid, piece) in enumerate(((100, data), (200, behind), (100, data))):
        offset = (0, len(data), len(data) + len(behind))[number]
        writer.aux(offset, len(piece), pid=pid, tid=pid, time=10 + number)
    writer.auxtrace_info([9])
    writer.auxtrace(data + behind + data)
    return writer.file([(attr(), [1])], ARCH)


def test_processes_of_a_cpu_are_contexts(elf: Path, ran: list[int], tmp_path: Path) -> None:
    """Each AUX record says whose trace it is. The processes have other code at the same addresses."""
    other = traced.program(tmp_path / "other", traced.SOURCES, "-O2")
    own = traced.retired(other)
    data, settings = trace_of(elf, ran, tmp_path / "it.rvt", "--ntrace")
    behind, _ = trace_of(other, own, tmp_path / "other.rvt", "--ntrace")
    renamed = tmp_path / "other.elf"
    renamed.write_bytes(other.read_bytes())
    words = "--settings", str(settings), "--elf", str(elf), "--elf", str(renamed)
    session, notes = imported(of_two_processes(elf, data, renamed, behind), tmp_path / "perf.data", *words)
    [history] = session.harts().harts.histories.values()
    found = [list(history.pcs(begin, end)) for begin, end in runs_of_threads(history)]
    assert [[pc for pc in part if pc != GAP] for part in found] == [ran, own, ran]
    assert [context.scontext for _, context in history.contexts] == [100, 200, 100]
    assert [(it.id, it.process, it.name) for it in session.capture().threads] == [
        (100, 100, elf.stem), (200, 200, renamed.stem),
    ]  # fmt: skip
    assert notes == []


def runs_of_threads(history: History) -> list[tuple[int, int]]:
    """Where each context begins and ends."""
    begins = [position for position, _ in history.contexts]
    return list(pairwise([*begins, len(history)]))


def test_a_process_is_chosen(elf: Path, ran: list[int], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is left out is counted, and a gap. The next piece begins with a message, which is not lost."""
    data, settings = trace_of(elf, ran, tmp_path / "it.rvt", "--ntrace")
    perf = of_two_processes(elf, data, elf, data)
    words = "--settings", str(settings), "--elf", str(elf)
    session, notes = imported(perf, tmp_path / "perf.data", *words, "--pid", "100")
    assert stretches(session) == [ran, ran]
    assert notes == [f"cpu0: {len(data)} bytes of process 200 are left out (--pid 100)"]
    [history] = session.harts().harts.histories.values()
    [loss] = [event for event in history.events if event.is_loss]
    assert f"{len(data)} bytes of other processes are left out" in loss.text and loss.position == len(ran)
    session, notes = imported(perf, tmp_path / "perf.data", *words, "--pid", "200")
    assert stretches(session) == [ran]
    assert notes == [f"cpu0: {2 * len(data)} bytes of process 100 are left out (--pid 200)"]
    capsys.readouterr()
    out = tmp_path / "none.rvt"
    assert main(["import", str(tmp_path / "perf.data"), "-o", str(out), *words, "--pid", "7"]) == 1
    assert "process 7 has no trace; those that have: 100" in capsys.readouterr().err
    assert not out.exists()


def test_another_build_is_refused(elf: Path, ran: list[int], tmp_path: Path) -> None:
    data, settings = trace_of(elf, ran, tmp_path / "it.rvt", "--ntrace")
    writer = Writer()
    started(writer, elf, build_id=bytes(range(20)))
    writer.aux(0, len(data))
    writer.auxtrace_info([9])
    writer.auxtrace(data)
    other = traced.program(tmp_path / "other", traced.SOURCES, "-O0", "-Wl,--build-id=0x1234567812345678")
    renamed = tmp_path / elf.name
    renamed.write_bytes(other.read_bytes())
    session, notes = imported(
        writer.file([(attr(), [1])], ARCH), tmp_path / "perf.data", "--settings", str(settings), "--elf", str(renamed)
    )
    assert stretches(session) == []
    assert any("has build-id 1234567812345678" in note for note in notes)


def in_context(data: bytes, cpu: int, tid: int) -> bytes:
    """The messages of a CPU as its SRC, and behind the first of them a change of context to a thread in U mode."""
    messages = from_source(data, SRC_BITS, cpu)
    process = 2 | tid << 5
    return b"".join([messages[0], message("Ownership", (SRC_BITS, cpu), process=process), *messages[1:]])


def test_frames_of_two_cpus_with_contexts(elf: Path, ran: list[int], tmp_path: Path) -> None:
    """Two processes have other code at the same addresses. The funnel switches in the middle of messages; the ATB IDs
    are those that Linux gave, by the order in which it found the bridges.
    """
    other = traced.program(tmp_path / "other", traced.SOURCES, "-O2")
    programs = {100: (elf, ran), 200: (other, traced.retired(other))}
    writer, formatter, streams = Writer(), FrameFormatter(), {}
    for cpu, (pid, (program, pcs)) in enumerate(programs.items()):
        started(writer, program, pid, name=f"p{pid}")
        data, _ = trace_of(program, pcs, tmp_path / f"{pid}.rvt", "--ntrace")
        streams[5 - 2 * cpu] = in_context(data, cpu, pid)
        (tmp_path / f"p{pid}").write_bytes(program.read_bytes())
    frames = b""
    for at in range(0, max(map(len, streams.values())), 7):
        frames += b"".join(formatter.put(atb_id, data[at : at + 7]) for atb_id, data in streams.items())
    frames += formatter.flush()
    half = len(frames) // 32 * 16
    writer.aux(0, half, cpu=0, time=10)
    writer.aux(half, len(frames) - half, cpu=0, time=11)
    writer.auxtrace_info([9 << 32 | 2, *(word for cpu in (0, 1) for word in (cpu, 5, 1, 1, 0, SRC_BITS, cpu))])
    writer.auxtrace(frames)
    perf = writer.file([(attr(), [1])], ARCH)
    words = [word for pid in programs for word in ("--elf", str(tmp_path / f"p{pid}"))]
    session, notes = imported(perf, tmp_path / "perf.data", *words)
    assert notes == []
    histories = session.harts().harts.histories
    for cpu, (_, pcs) in enumerate(programs.values()):
        assert list(histories[cpu].pcs()) == pcs
    assert sorted(histories) == [0, 1]


def test_files_come_from_perfs_cache_and_the_kernel_from_kcore(
    elf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The program by its build-id; the kernel, for which another program stands here, from kcore."""
    program = traced.program(tmp_path / "known", traced.SOURCES, "-O0", f"-Wl,--build-id=0x{BUILD_ID.hex()}")
    folder = tmp_path / "cache" / ".build-id" / BUILD_ID.hex()[:2] / BUILD_ID.hex()[2:]
    folder.mkdir(parents=True)
    (folder / "elf").write_bytes(program.read_bytes())
    monkeypatch.setenv("PERF_BUILDID_DIR", str(tmp_path / "cache"))
    ran = traced.retired(program)
    data, settings = trace_of(program, ran, tmp_path / "it.rvt", "--ntrace")
    perf = tmp_path / "perf"
    (perf / "kcore_dir").mkdir(parents=True)
    writer = Writer()
    started(writer, program, build_id=BUILD_ID)
    writer.aux(0, len(data))
    writer.auxtrace_info([9])
    writer.auxtrace(data)
    (perf / "data").write_bytes(writer.file([(attr(), [1])], ARCH))
    (perf / "kcore_dir" / "kcore").write_bytes(elf.read_bytes())
    out = tmp_path / "it.rvt2"
    assert main(["import", str(perf), "-o", str(out), "--quiet", "--settings", str(settings)]) == 0
    session = Session()
    session.open(out, None)
    assert stretches(session) == [ran]
    [image] = session.capture().images
    assert [placed.identity.path for placed in image.elfs] == [str(folder / "elf")]
    assert session.capture().code[0][1][:4] == code_segment(elf).data[:4]


def test_a_pipe_is_read_forward(elf: Path, ran: list[int], tmp_path: Path) -> None:
    data, settings = trace_of(elf, ran, tmp_path / "it.rvt", "--ntrace")
    writer = Writer()
    started(writer, elf)
    writer.aux(0, len(data))
    writer.auxtrace_info([9])
    writer.auxtrace(data)
    out = tmp_path / "out.rvt"
    command = [sys.executable, "-m", "rvtrace_gdb.console.main", "import", "-", "--perf", "-o", str(out)]
    words = ["--settings", str(settings), "--elf", str(elf)]
    perf = writer.pipe([(attr(), [1])], ARCH)
    said = subprocess.run([*command, *words], input=perf, check=True, capture_output=True).stdout
    assert f"{len(ran)} instructions, 0 gaps" in said.decode()
