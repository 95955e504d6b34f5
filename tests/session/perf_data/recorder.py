"""Writes what perf records of a system: the pieces of trace of each CPU or thread, and what the kernel notes of them.

Source: Linux, include/uapi/linux/perf_event.h, tools/lib/perf/include/perf/event.h.
"""

from tests.session.perf_data.recorded import ARCH
from tests.session.perf_data.writer import Writer, attr

OUT = 1 << 13  # of SWITCH and SWITCH_CPU_WIDE


class Recorder(Writer):
    """What perf records of a CPU, with its trace, piece by piece."""

    def __init__(self) -> None:
        super().__init__()
        self.trace: dict[int, bytes] = {}

    def piece(
        self, data: bytes, *, pid: int, time: int, cpu: int = 0, index: int = 0, id: int = 1, tid: int = 0
    ) -> None:
        offset = len(self.trace.get(index, b""))
        self.trace[index] = self.trace.get(index, b"") + data
        self.aux(offset, len(data), pid=pid, tid=tid or pid, time=time, cpu=cpu, id=id)

    def id_index(self, *rows: tuple[int, int, int, int]) -> None:
        """(id, idx, cpu, tid) of each; -1: of all."""
        self.record(69, self.pack("Q", len(rows)) + b"".join(self.pack("2Q2q", *row) for row in rows))

    def switch(self, tid: int, *, time: int, other: int | None = None, out: bool = False, cpu: int = 0) -> None:
        body = b"" if other is None else self.pack("2I", other, other)
        self.kernel_record(14 if other is None else 15, body, OUT * out, pid=tid, tid=tid, time=time, cpu=cpu)

    def poke(self, address: int, before: bytes, after: bytes, *, time: int) -> None:
        body = self.pack("Q2H", address, len(before), len(after)) + before + after
        self.kernel_record(20, body + bytes(-len(body) % 8), 1, time=time)

    def written(
        self, cpus: dict[int, int] | None = None, tids: dict[int, int] | None = None,
        features: dict[int, bytes] | None = None,
    ) -> bytes:  # fmt: skip
        """The file. *cpus*, *tids*: of the buffers."""
        self.auxtrace_info([9])
        for index, data in self.trace.items():
            tid = (tids or {}).get(index)
            cpu = -1 if tid is not None else (cpus or {}).get(index, 0)
            self.auxtrace(data, index=index, cpu=cpu, tid=-1 if tid is None else tid)
        return self.file([(attr(), [1, 2])], ARCH | (features or {}))
