"""Writes perf.data from what the format's documentation says: independent of the reader.

Sources: Linux, tools/perf/Documentation/perf.data-file-format.txt; include/uapi/linux/perf_event.h;
tools/lib/perf/include/perf/event.h.
"""

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

ATTR_BYTES = 128
IP, TID, TIME, CPU, PERIOD, BRANCH_STACK, IDENTIFIER = 1, 2, 4, 128, 256, 2048, 65536
SAMPLE_ID_ALL = 1 << 18


def attr(
    *, kind: int = 0, config: int = 0, sample_type: int = TID | TIME | CPU | IDENTIFIER, flags: int = SAMPLE_ID_ALL,
    branch_type: int = 0, period: int = 4000, order: str = "<",
) -> bytes:  # fmt: skip
    """A perf_event_attr of 128 bytes."""
    head = struct.pack(order + "2I5Q", kind, ATTR_BYTES, config, period, sample_type, 0, flags)
    return (head + struct.pack(order + "2I3Q", 0, 0, 0, 0, branch_type)).ljust(ATTR_BYTES, b"\0")


def text(value: str, order: str = "<") -> bytes:
    """A string of a feature: its length, and it, filled to 64 bytes."""
    content = value.encode() + b"\0"
    content = content.ljust((len(content) + 63) // 64 * 64, b"\0")
    return struct.pack(order + "I", len(content)) + content


def name(value: str) -> bytes:
    """A name in a record, filled to 8 bytes."""
    content = value.encode() + b"\0"
    return content.ljust((len(content) + 7) // 8 * 8, b"\0")


@dataclass
class Writer:
    """The records of a file. Each method adds one. The sample ID has TID, TIME, CPU, IDENTIFIER."""

    order: str = "<"
    sample_ids: bool = True
    records: list[bytes] = field(default_factory=list)

    def pack(self, form: str, *values: int) -> bytes:
        return struct.pack(self.order + form, *values)

    def record(self, kind: int, body: bytes, misc: int = 0, behind: bytes = b"") -> None:
        self.records.append(self.pack("IHH", kind, misc, 8 + len(body)) + body + behind)

    def kernel_record(
        self, kind: int, body: bytes, misc: int = 0, *, pid: int = 100, tid: int = 100, time: int = 0,
        cpu: int = 0, id: int = 1,
    ) -> None:  # fmt: skip
        """A record with the sample ID at its end."""
        end = self.pack("2IQ2IQ", pid, tid, time, cpu, 0, id) if self.sample_ids else b""
        self.record(kind, body + end, misc)

    def mmap2(
        self, pid: int, start: int, size: int, offset: int, path: str, *, build_id: bytes = b"", protection: int = 5,
        misc: int = 2, time: int = 0,
    ) -> None:  # fmt: skip
        identity = self.pack("2I2Q", 8, 1, 77, 0)
        if build_id:
            identity, misc = bytes([len(build_id), 0, 0, 0]) + build_id.ljust(20, b"\0"), misc | 1 << 14
        body = self.pack("2I3Q", pid, pid, start, size, offset) + identity + self.pack("2I", protection, 2) + name(path)
        self.kernel_record(10, body, misc, pid=pid, tid=pid, time=time)

    def comm(self, pid: int, tid: int, value: str, *, exec: bool = False, time: int = 0) -> None:
        self.kernel_record(
            3, self.pack("2I", pid, tid) + name(value), 1 << 13 if exec else 0, pid=pid, tid=tid, time=time
        )

    def fork(self, pid: int, parent: int, tid: int, parent_tid: int, *, time: int = 0) -> None:
        self.kernel_record(7, self.pack("4IQ", pid, parent, tid, parent_tid, time), pid=pid, tid=tid, time=time)

    def aux(self, offset: int, size: int, flags: int = 0, **origin: int) -> None:
        self.kernel_record(11, self.pack("3Q", offset, size, flags), **origin)

    def auxtrace_info(self, words: Sequence[int], kind: int = 8) -> None:
        self.record(70, self.pack(f"2I{len(words)}Q", kind, 0, *words))

    def auxtrace(self, data: bytes, offset: int = 0, *, index: int = 0, tid: int = -1, cpu: int = 0) -> None:
        self.record(71, self.pack("3QIiiI", len(data), offset, 0, index, tid, cpu, 0), behind=data)

    def sample(
        self, ip: int, branches: Iterable[tuple[int, int, int]], *, pid: int = 100, tid: int = 100, time: int = 0,
        cpu: int = 0, period: int = 1, id: int = 1,
    ) -> None:  # fmt: skip
        """IDENTIFIER, IP, TID, TIME, CPU, PERIOD, BRANCH_STACK."""
        rows = list(branches)
        body = self.pack("2Q2IQ2I2Q", id, ip, pid, tid, time, cpu, 0, period, len(rows))
        self.record(9, body + b"".join(self.pack("3Q", *row) for row in rows), 2)

    def finished_round(self) -> None:
        self.record(68, b"")

    def file(self, attrs: Sequence[tuple[bytes, Sequence[int]]], features: dict[int, bytes] | None = None) -> bytes:
        """The whole file: header, IDs, attributes, data, features."""
        features = features or {}
        at = 104
        ids, entries = b"", b""
        for content, numbers in attrs:
            entries += content + self.pack("2Q", at + len(ids), 8 * len(numbers))
            ids += self.pack(f"{len(numbers)}Q", *numbers)
        data = b"".join(self.records)
        attrs_at = at + len(ids)
        data_at = attrs_at + len(entries)
        table_at = data_at + len(data)
        content_at = table_at + 16 * len(features)
        table, contents = b"", b""
        for number in sorted(features):
            table += self.pack("2Q", content_at + len(contents), len(features[number]))
            contents += features[number]
        bits = sum(1 << number for number in features)
        magic = b"PERFILE2" if self.order == "<" else b"2ELIFREP"
        header = magic + self.pack("8Q", 104, ATTR_BYTES + 16, attrs_at, len(entries), data_at, len(data), 0, 0)
        header += self.pack("4Q", *(bits >> 64 * word & (1 << 64) - 1 for word in range(4)))
        return header + ids + entries + data + table + contents

    def pipe(self, attrs: Sequence[tuple[bytes, Sequence[int]]], features: dict[int, bytes] | None = None) -> bytes:
        """What `perf record -o -` writes: attributes and features are records."""
        records, self.records = self.records, []
        for content, numbers in attrs:
            self.record(64, content + self.pack(f"{len(numbers)}Q", *numbers))
        for number, content in (features or {}).items():
            self.record(80, self.pack("Q", number) + content)
        self.records += records
        magic = b"PERFILE2" if self.order == "<" else b"2ELIFREP"
        return magic + self.pack("Q", 16) + b"".join(self.records)
