"""perf.data: files and pipes of both drivers, and of samples, damaged anywhere."""

from __future__ import annotations

from pathlib import Path

from rvtrace_gdb.decode.ntrace.options import Options
from rvtrace_gdb.session.perf_data.importing import PerfPrograms, import_perf_data
from rvtrace_gdb.session.perf_data.recording import read_recording
from rvtrace_gdb.session.session import Session
from tests.decode.program import elves
from tests.fuzz.exercise import Input
from tests.fuzz.kinds.program_files import InFolder
from tests.fuzz.kinds.trace_checks import check_accounting
from tests.session.perf_data.recorded import ARCH, SAMPLED, started
from tests.session.perf_data.recorder import Recorder
from tests.session.perf_data.writer import Writer, attr

_CODE = """
    .globl main
main: addi a0, a0, -1
    bnez a0, main
    ret
"""
_BASE = 0x80000000
_MESSAGES = bytes.fromhex("2414001568f0c45800fcfcfcfcfcfdc0847cb0bc330c140041070c1400250384140010")


class PerfData(InFolder):
    """A variant is the process that is meant, or none."""

    def __init__(self) -> None:
        super().__init__()
        self.elf = elves.build(self.folder, _CODE, f"-Wl,-Ttext={_BASE:#x}")
        attrs, sampled = [(attr(), [1])], [(attr(sample_type=SAMPLED, branch_type=9), [1])]
        files = [
            self._writer([9]).file(attrs, ARCH),
            self._writer([9]).pipe(attrs, ARCH),
            self._writer([9 << 32 | 1, 0, 5, 1, 1, 0, 12, 0]).file(attrs, ARCH),
            self._sampled().file(sampled, ARCH),
            self._whole_cpus().file([(attr(), [1, 2])], ARCH),
            self._of_threads().pipe([(attr(), [1, 2])], ARCH),
        ]
        self.seeds = [Input(variant, data) for data in files for variant in ("", "100", "7")]

    def _writer(self, words: list[int]) -> Writer:
        writer = Writer()
        started(writer, self.elf)
        writer.fork(101, 100, 101, 100, time=3)
        writer.aux(0, 16, time=4)
        writer.aux(16, len(_MESSAGES) - 16, 1, time=5)
        writer.auxtrace_info(words)
        writer.auxtrace(_MESSAGES)
        return writer

    def _whole_cpus(self) -> Recorder:
        """Switches, another program of a process, changes of the kernel's code, losses."""
        writer = Recorder()
        writer.id_index((1, 0, 0, -1), (2, 1, 1, -1))
        started(writer, self.elf, 100)
        started(writer, self.elf, 200)
        writer.kernel_record(21, writer.pack("Q", 3), cpu=0, time=3)
        writer.switch(100, time=10, other=0)
        writer.piece(_MESSAGES, pid=1, time=20)
        writer.switch(100, time=21, other=200, out=True)
        writer.poke(_BASE, bytes(2), bytes(range(2)), time=22)
        writer.comm(200, 200, "other", exec=True, time=23)
        writer.mmap2(200, _BASE & -4096, 4096, 4096, "/bin/other", time=24)
        writer.piece(_MESSAGES, pid=1, time=30)
        writer.kernel_record(4, writer.pack("4IQ", 200, 1, 200, 1, 31), time=31)
        return self._with_trace(writer, 0)

    def _of_threads(self) -> Recorder:
        writer = Recorder()
        started(writer, self.elf, 100)
        for number in range(4):
            writer.piece(_MESSAGES, pid=100, tid=100 + number % 2, time=10 + number, cpu=number // 2, index=number % 2)
        return self._with_trace(writer, -1)

    @staticmethod
    def _with_trace(writer: Recorder, cpu: int) -> Recorder:
        writer.auxtrace_info([9])
        for index, data in writer.trace.items():
            writer.auxtrace(data, index=index, cpu=cpu, tid=-1 if cpu >= 0 else 100 + index)
        return writer

    def _sampled(self) -> Writer:
        writer = Writer()
        started(writer, self.elf)
        for number in range(3):
            writer.sample(_BASE + 4, [(_BASE + 4, _BASE, 1 << 1 | 5 << 4)] * 5, time=number)
        return writer

    def run(self, variant: str, data: bytes) -> None:
        path = str(self.written(data, "perf.data"))
        recording = read_recording(path)
        programs = PerfPrograms((str(self.elf),))
        capture = import_perf_data(recording, programs, Options(), int(variant) if variant else None)
        session = Session()
        session.open_capture(capture, Path(path).name, None)
        check_accounting(session.harts().harts.accounting, None)
