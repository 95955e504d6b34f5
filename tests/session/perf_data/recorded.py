"""perf.data of a program that ran: its trace, or the branch stacks of samples, for which another knows what ran."""

from pathlib import Path

from rvtrace_gdb.decode.program.elf import ElfSegment
from rvtrace_gdb.decode.program.image import read_elf
from tests.session.perf_data.writer import (
    BRANCH_STACK,
    CPU,
    IDENTIFIER,
    IP,
    PERIOD,
    TID,
    TIME,
    Writer,
    attr,
    text,
)

PAGE = 1 << 12
ARCH = {6: text("riscv64"), 4: text("6.18.0")}
SAMPLED = IP | TID | TIME | CPU | PERIOD | BRANCH_STACK | IDENTIFIER
TRUNCATED, PARTIAL, COLLISION = 1, 4, 8


def code_segment(elf: Path) -> ElfSegment:
    return next(it for it in read_elf(elf).segments if it.executable)


def started(writer: Writer, elf: Path, pid: int = 100, *, name: str = "", build_id: bytes = b"") -> None:
    """A process that executes the program. *name*: of its file, if that is another."""
    segment = code_segment(elf)
    begin = segment.vaddr & -PAGE
    size = segment.vaddr + len(segment.data) - begin + PAGE & -PAGE
    writer.comm(pid, pid, elf.stem, exec=True, time=1)
    writer.mmap2(pid, begin, size, segment.offset & -PAGE, f"/usr/bin/{name or elf.name}", build_id=build_id, time=2)


def with_trace(elf: Path, pieces: list[tuple[bytes, int]], *, cpu: int = 0, name: str = "") -> bytes:
    """A perf.data with the trace of a CPU, in pieces with flags. *name*: that of the program's file."""
    writer = Writer()
    started(writer, elf, name=name)
    offset = 0
    for number, (data, flags) in enumerate(pieces):
        writer.aux(offset, len(data), flags, cpu=cpu, time=10 + number)
        offset += len(data)
    writer.auxtrace_info([9])
    writer.auxtrace(b"".join(data for data, _ in pieces), cpu=cpu)
    return writer.file([(attr(), [1])], ARCH)


def with_samples(elf: Path, stacks: list[tuple[int, list[tuple[int, int]]]], *, cpu: int = 0, pid: int = 100) -> bytes:
    """A perf.data with samples: where each was taken, and the branches before, newest first."""
    writer = Writer()
    started(writer, elf, pid)
    for number, (ip, branches) in enumerate(stacks):
        rows = [(source, target, 1 << 1) for source, target in branches]
        writer.sample(ip, rows, pid=pid, tid=pid, time=10 + number, cpu=cpu)
    return writer.file([(attr(sample_type=SAMPLED, branch_type=9), [1])], ARCH)
