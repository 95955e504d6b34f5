"""The kernel's records about threads and code: Debian's perf prints them as they were written, and they are read so."""

import io
import re
import subprocess
from pathlib import Path

from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.session.perf_data.clocks import TimeConversion
from rvtrace_gdb.session.perf_data.code_epochs import mixed_image
from rvtrace_gdb.session.perf_data.file import PerfFile
from rvtrace_gdb.session.perf_data.kernel_changes import PokesApplied
from rvtrace_gdb.session.perf_data.processes import ProcessRecords
from rvtrace_gdb.session.perf_data.recording import read_recording
from rvtrace_gdb.session.perf_data.records import RecordReader
from tests.session.perf_data.recorded import ARCH
from tests.session.perf_data.recorder import Recorder
from tests.session.perf_data.writer import attr

TEXT = 0xFFFFFFFF80001000
NOP, JUMP = b"\x13\0\0\0", b"\x6f\0\x80\0"
_PRINTED = re.compile(r"^-?\d* ?(\d+) 0x[0-9a-f]+ \[0x[0-9a-f]+\]: PERF_RECORD_(.*?) *$", re.MULTILINE)


def recorded() -> Recorder:
    writer = Recorder()
    writer.id_index((1, 0, 0, -1), (2, 1, 1, 77))
    writer.record(79, writer.pack("5Q", 8, 512, 1000, 0, 0) + bytes((1, 0, 0, 0, 0, 0, 0, 0)))
    writer.kernel_record(21, writer.pack("Q", 4), cpu=0, time=3)
    writer.kernel_record(12, writer.pack("2I", 100, 105), cpu=0, time=4)
    writer.switch(105, time=10, other=0)
    writer.switch(105, time=20, other=200, out=True)
    writer.switch(300, time=30)
    writer.switch(300, time=31, out=True)
    writer.poke(TEXT, NOP, JUMP, time=40)
    writer.fork(101, 100, 101, 100, time=50)
    writer.kernel_record(4, writer.pack("4IQ", 101, 100, 101, 100, 60), time=60)
    writer.piece(b"", pid=100, time=70)
    return writer


def test_debians_perf_prints_what_is_written(tmp_path: Path) -> None:
    file = tmp_path / "perf.data"
    file.write_bytes(recorded().file([(attr(), [1, 2])], ARCH))
    printed = subprocess.run(["perf", "report", "-D", "-i", str(file)], check=True, capture_output=True, text=True)
    rows = [(int(time), " ".join(text.split())) for time, text in _PRINTED.findall(printed.stdout)]
    assert rows == [
        (0, "ID_INDEX nr: 2"),
        (0, "TIME_CONV"),
        (3, "AUX_OUTPUT_HW_ID hw_id: 0x4"),
        (4, "ITRACE_START pid: 100 tid: 105"),
        (10, "SWITCH_CPU_WIDE IN prev pid/tid: 0/0"),
        (20, "SWITCH_CPU_WIDE OUT next pid/tid: 200/200"),
        (30, "SWITCH IN"),
        (31, "SWITCH OUT"),
        (40, f"TEXT_POKE {TEXT:x} old len 4 new len 4"),
        (50, "FORK(101:101):(100:100)"),
        (60, "EXIT(101:101):(100:100)"),
        (70, "AUX offset: 0 size: 0 flags: 0 []"),
    ]
    assert "id: 2  idx: 1  cpu: 1  tid: 77" in printed.stdout


def test_what_is_written_is_read(tmp_path: Path) -> None:
    file = tmp_path / "perf.data"
    file.write_bytes(recorded().file([(attr(), [1, 2])], ARCH))
    found = read_recording(str(file))
    assert found.harts == {0: 4} and found.conversion == TimeConversion(8, 512, 1000)
    spans = ((4, 9), (5, 15), (11, 20), (30, 31))
    assert [found.scheduling.threads(0, *span) for span in spans] == [{105}, {105}, {105, 200}, {300}]
    assert found.scheduling.run_begin(0, 105, 19) == 10 and found.scheduling.run_begin(0, 7, 19) == 0
    assert [found.changes.applied(*span) for span in ((0, 39), (39, 40), (40, 50))] == [
        PokesApplied(0, 0), PokesApplied(0, 1), PokesApplied(1, 1),
    ]  # fmt: skip
    before, after = (found.changes.changed_code(PokesApplied(done, done), 64) for done in (0, 1))
    assert (before.read(TEXT, 4), after.read(TEXT, 4)) == (NOP, JUMP)


def test_a_number_is_given_to_another_process() -> None:
    """A child has its parent's memory; the next process of that number has that of its own parent."""
    writer = Recorder()
    for pid, name in ((100, "one"), (200, "two")):
        writer.comm(pid, pid, name, exec=True, time=1)
        writer.mmap2(pid, 0x10000, 0x1000, 0, f"/bin/{name}", time=2)
    writer.fork(300, 100, 300, 100, time=10)
    writer.kernel_record(4, writer.pack("4IQ", 300, 100, 300, 100, 20), time=20)
    writer.fork(300, 200, 300, 200, time=30)
    reader = RecordReader(PerfFile(io.BytesIO(writer.file([(attr(), [1])], ARCH)), "perf.data"))
    processes = ProcessRecords()
    for record in reader:
        processes.add(record)
    again = processes.processes(reader)[300]
    assert [(it.time, [one.name for one in it.mappings], it.name) for it in again.memories] == [
        (10, ["/bin/one"], "one"), (30, ["/bin/two"], "two"),
    ]  # fmt: skip
    assert [again.memories_between(*span) for span in ((0, 5), (11, 15), (15, 40), (31, 40))] == [
        (0, 0), (0, 0), (0, 1), (1, 1),
    ]  # fmt: skip


def test_nearly_all_of_memory_is_absent_in_two_programs() -> None:
    images = [Image(64), Image(64)]
    for number, image in enumerate(images):
        image.add_absent(0, (1 << 64) - 1, "a mapping")
        image.add_code(0x1000, bytes((number, 0, 1, 0)))
    found = mixed_image(images, 64)
    assert [it.addresses.stop for it in found.absent] == [0x1004, (1 << 64) - 1]
    assert not found.knows(0x1000)
