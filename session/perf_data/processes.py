"""Which files were where in the memory of which process, from the records that perf writes about it.

A process begins with the memory of its parent (FORK), and with none when it executes a program (COMM, with the bit
exec). A mapping that is made over another one replaces what it covers. Where that changes code, or a process ends and
another one gets its number, what was there before is another memory of the process, which ends there. Records of
several CPUs are in the order of the file, not of time: they are sorted by their times, if they have some.

Source: Linux, include/uapi/linux/perf_event.h (MMAP, MMAP2, COMM, FORK); kernel mappings have the process -1.
"""

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import NamedTuple

from rvtrace_gdb.session.perf_data.file import BadPerfData
from rvtrace_gdb.session.perf_data.layout import KERNEL_MODE, MiscBit, RecordType
from rvtrace_gdb.session.perf_data.records import PerfRecord, RecordReader

KERNEL = (1 << 32) - 1
"""The process of mappings of the kernel and its modules."""
_EXECUTE = 4  # of `prot`
_BUILD_ID_BYTES = 20


class FileMapping(NamedTuple):
    """A part of a file in memory. *end* is the first address behind it; *offset*: of *start* in the file.

    *name*: as the kernel has it, "[vdso]" and what begins with "[kernel." are no files. *build_id*: "" where perf has
    none.
    """

    start: int
    end: int
    offset: int
    name: str
    build_id: str = ""
    executable: bool = True

    def has_other_code(self, old: "FileMapping") -> bool:
        """Return whether it has other code where an older mapping had some."""
        apart = old.end <= self.start or self.end <= old.start
        same = (old.name, old.start - old.offset) == (self.name, self.start - self.offset)
        return not apart and not same and old.executable and self.executable

    def outside(self, start: int, end: int) -> "Iterable[FileMapping]":
        """Return what is left of it when other memory is mapped from *start* to *end*."""
        if start >= self.end or end <= self.start:
            return (self,)
        before = self._replace(end=start) if self.start < start else None
        behind = self._replace(start=end, offset=self.offset + end - self.start) if end < self.end else None
        return tuple(part for part in (before, behind) if part is not None)


class ProcessMemory(NamedTuple):
    """What a process had mapped from a time on, in nanoseconds, until the time of its next memory, in rising order.
    *name*: of the process meanwhile.
    """

    time: int
    mappings: tuple[FileMapping, ...] = ()
    name: str = ""


@dataclass(frozen=True)
class PerfProcess:
    """A process. *name*: the last one it had. *threads*: by their IDs, with their names.

    *memories*: one after the other, at least one. *executed*: how many programs it ran one after the other.
    """

    pid: int
    name: str = ""
    threads: dict[int, str] = field(default_factory=dict)
    memories: tuple[ProcessMemory, ...] = (ProcessMemory(0),)
    executed: int = 0
    exited: bool = False

    @property
    def mappings(self) -> tuple[FileMapping, ...]:
        """What it had mapped at the end."""
        return self.memories[-1].mappings

    def memories_between(self, begin: int, end: int) -> tuple[int, int]:
        """Return the numbers of the memories that it had between two times: the first, and the last."""
        first = bisect_right(self.memories, begin, key=itemgetter(0)) - 1
        return max(first, 0), max(bisect_right(self.memories, end, key=itemgetter(0)) - 1, first, 0)

    def with_memory(self, time: int, mappings: tuple[FileMapping, ...], *, anew: bool) -> "PerfProcess":
        """Return it with other mappings from a time on. *anew*: they are another memory."""
        last = self.memories[-1]
        if anew and last.mappings:
            return replace(self, memories=(*self.memories, ProcessMemory(time, mappings, self.name)))
        begin = time if anew else last.time
        return replace(self, memories=(*self.memories[:-1], ProcessMemory(begin, mappings, self.name)))


class ProcessRecords:
    """All processes of a file, and the kernel. Records are added in any order, and applied when they are asked for."""

    def __init__(self) -> None:
        self._records: list[tuple[int, int, PerfRecord]] = []
        self._found: dict[int, PerfProcess] = {}
        self._build_ids: dict[str, str] = {}

    def add(self, record: PerfRecord) -> None:
        """Take a record about processes; others are ignored."""
        if record.type in _HANDLERS:
            self._records.append((record.origin.time or 0, len(self._records), record))

    def add_build_id(self, record: PerfRecord, reader: RecordReader) -> None:
        """Take notice of a file's build-id, from a record of its own (HEADER_BUILD_ID)."""
        size = record.body[24] or _BUILD_ID_BYTES if len(record.body) > 24 else _BUILD_ID_BYTES
        self._build_ids[_mapping_name(record.body[28:])] = record.body[4 : 4 + min(size, _BUILD_ID_BYTES)].hex()

    def add_build_ids(self, content: bytes, order: str) -> None:
        """Take notice of the build-ids of the feature BUILD_ID: a header of 8 bytes before each, as a record has it."""
        at = 0
        while at + 36 <= len(content):
            size = int.from_bytes(content[at + 6 : at + 8], "little" if order == "<" else "big")
            if size < 36:
                return
            self.add_build_id(PerfRecord(at, RecordType.HEADER_BUILD_ID, 0, content[at + 8 : at + size]), None)  # type: ignore[arg-type]
            at += size

    def processes(self, reader: RecordReader) -> dict[int, PerfProcess]:
        """Return the processes by their numbers; `KERNEL` has the kernel's mappings. Raises BadPerfData."""
        for _, _, record in sorted(self._records, key=lambda one: one[:2]):
            _HANDLERS[RecordType(record.type)](self, record, reader)
        self._records = []
        return self._found

    def _process(self, pid: int) -> PerfProcess:
        return self._found.setdefault(pid, PerfProcess(pid))

    def _add_mmap(self, record: PerfRecord, reader: RecordReader) -> None:
        self._map(record, reader, "", 32, True)

    def _add_mmap2(self, record: PerfRecord, reader: RecordReader) -> None:
        build_id = ""
        if record.misc & MiscBit.BUILD_ID_SIZE and len(record.body) > 52:
            build_id = record.body[36 : 36 + min(record.body[32], _BUILD_ID_BYTES)].hex()
        self._map(record, reader, build_id, 64, bool(reader.number(record, 56, "I") & _EXECUTE))

    def _map(self, record: PerfRecord, reader: RecordReader, build_id: str, name_at: int, executable: bool) -> None:
        pid = KERNEL if record.misc & MiscBit.MODE == KERNEL_MODE else reader.number(record, 0, "I")
        start, size, offset = (reader.number(record, at, "Q") for at in (8, 16, 24))
        if start + size > 1 << 64:
            raise BadPerfData(reader.file.path, record.offset, f"{size} bytes at 0x{start:x} are more than memory has")
        name = _mapping_name(record.body[name_at:])
        mapping = FileMapping(start, start + size, offset, name, build_id or self._build_ids.get(name, ""), executable)
        process = self._process(pid)
        kept = [part for old in process.mappings for part in old.outside(mapping.start, mapping.end)]
        changed = any(map(mapping.has_other_code, process.mappings))
        mappings = tuple(sorted([*kept, mapping]))
        self._found[pid] = process.with_memory(record.origin.time or 0, mappings, anew=changed)

    def _add_comm(self, record: PerfRecord, reader: RecordReader) -> None:
        pid, tid, name = reader.number(record, 0, "I"), reader.number(record, 4, "I"), _mapping_name(record.body[8:])
        process = self._process(pid)
        threads = {**process.threads, tid: name}
        process = replace(process, threads=threads, name=name if tid == pid or not process.name else process.name)
        if record.misc & MiscBit.COMM_EXEC:
            process = process.with_memory(record.origin.time or 0, (), anew=True)
            process = replace(process, executed=process.executed + 1)
        last = process.memories[-1]._replace(name=process.name)
        self._found[pid] = replace(process, memories=(*process.memories[:-1], last))

    def _add_fork(self, record: PerfRecord, reader: RecordReader) -> None:
        pid, parent, tid, _ = (reader.number(record, at, "I") for at in (0, 4, 8, 12))
        process = self._process(pid)
        origin = self._found.get(parent)
        if pid != parent and origin is not None and (process.exited or not process.mappings):
            process = replace(process, name=origin.name, exited=False)
            process = process.with_memory(record.origin.time or 0, origin.mappings, anew=True)
        self._found[pid] = replace(process, threads={**process.threads, tid: process.threads.get(tid, process.name)})

    def _add_exit(self, record: PerfRecord, reader: RecordReader) -> None:
        pid, tid = reader.number(record, 0, "I"), reader.number(record, 8, "I")
        if pid == tid and pid in self._found:
            self._found[pid] = replace(self._found[pid], exited=True)


_HANDLERS = {
    RecordType.MMAP: ProcessRecords._add_mmap,
    RecordType.MMAP2: ProcessRecords._add_mmap2,
    RecordType.COMM: ProcessRecords._add_comm,
    RecordType.FORK: ProcessRecords._add_fork,
    RecordType.EXIT: ProcessRecords._add_exit,
}


def _mapping_name(content: bytes) -> str:
    """Return a name that is filled with zeros: names of files may hold any other byte."""
    return content.split(b"\0")[0].decode("utf-8", "surrogateescape")
