"""What gem5's E-Trace probe writes of a run, an instruction at a time, with the real protobuf library.

Written from the published source alone (gem5/gem5, pull request 3264: src/cpu/o3/probe/etrace.cc and
src/proto/etrace.proto at 3d85162).
"""

import gzip
from collections.abc import Iterator
from typing import Any, NamedTuple

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.internal.encoder import _VarintBytes

from rvtrace_gdb.decode.executed.encoder_ingress import Block, IngressTrap
from rvtrace_gdb.decode.program.instructions import IType

_TYPE = descriptor_pb2.FieldDescriptorProto
_HEADER = {"obj_id": (1, _TYPE.TYPE_STRING), "ver": (2, _TYPE.TYPE_UINT32), "tick_freq": (3, _TYPE.TYPE_UINT64),
           "arch_width": (4, _TYPE.TYPE_UINT32)}  # fmt: skip
_PACKET = {
    "tick": (1, _TYPE.TYPE_UINT64), "format": (2, _TYPE.TYPE_UINT32), "subformat": (3, _TYPE.TYPE_UINT32),
    "address": (4, _TYPE.TYPE_UINT64), "branch_map": (5, _TYPE.TYPE_UINT32), "branch_count": (6, _TYPE.TYPE_UINT32),
    "priv": (7, _TYPE.TYPE_UINT32), "cause": (8, _TYPE.TYPE_UINT64), "tval": (9, _TYPE.TYPE_UINT64),
    "interrupt": (10, _TYPE.TYPE_BOOL), "qual_status": (14, _TYPE.TYPE_UINT32), "ioptions": (15, _TYPE.TYPE_UINT32),
    "context": (22, _TYPE.TYPE_UINT32), "jtc_index": (23, _TYPE.TYPE_UINT32), "thaddr": (24, _TYPE.TYPE_BOOL),
    "saddress": (25, _TYPE.TYPE_SINT64), "branch_pred_count": (26, _TYPE.TYPE_UINT32),
}  # fmt: skip


def _messages() -> dict[str, Any]:
    file = descriptor_pb2.FileDescriptorProto(name="etrace.proto", package="ProtoMessage", syntax="proto2")
    for name, fields in (("ETraceHeader", _HEADER), ("ETracePacket", _PACKET)):
        message = file.message_type.add(name=name)
        for field, (number, kind) in fields.items():
            message.field.add(name=field, number=number, type=kind, label=_TYPE.LABEL_OPTIONAL)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    names = ("ETraceHeader", "ETracePacket")
    return {n: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"ProtoMessage.{n}")) for n in names}


MESSAGES = _messages()


def written(name: str, **fields: int | str | bool) -> bytes:
    """A message behind its length."""
    content: bytes = MESSAGES[name](**fields).SerializeToString()
    return _VarintBytes(len(content)) + content  # type: ignore[no-any-return]


def header(**fields: int) -> bytes:
    """The beginning of a file."""
    return b"gem5" + written("ETraceHeader", obj_id="system.cpu.probe", tick_freq=10**12, arch_width=64, **fields)


class Commit(NamedTuple):
    """An instruction that gem5 commits. *trap*: it is the first of a handler."""

    pc: int
    npc: int
    length: int
    itype: IType
    priv: int
    trap: IngressTrap | None


def commits_of(items: list[Block | IngressTrap], *, modes: bool) -> Iterator[Commit]:
    """The instructions of a run; what traps is not committed. *modes*: handlers run in M mode, the rest in U mode."""
    flat = list[tuple[int, int, IType, int, IngressTrap | None]]()
    trap, priv = None, 0 if modes else 3
    for item in items:
        if isinstance(item, IngressTrap):
            trap, priv = item, 3
            continue
        pc = item.pc
        for place, halfwords in enumerate(item.lengths):
            itype = item.itype if place == len(item.lengths) - 1 else IType.NONE
            flat.append((pc, 2 * halfwords, itype, priv, trap))
            pc, trap = pc + 2 * halfwords, None
            if itype is IType.TRAP_RETURN and modes:
                priv = 0
    for at, (pc, length, itype, mode, trap) in enumerate(flat):
        after = flat[at + 1] if at + 1 < len(flat) else None
        npc = pc + length
        if after is not None:
            npc = after[4].epc if after[4] is not None else after[0]
        yield Commit(pc, npc, length, itype, mode, trap)


class Probe:
    """The probe. *early*: in its first form, which sends differences as addresses and no Support packets. *untold*:
    how many traps came in straight code, without the address where.
    """

    def __init__(self, *, period: int = 10_000, early: bool = False, implicit: bool = False) -> None:
        self.period, self.early, self.implicit = period, early, implicit
        self.out, self.branches = header(), list[bool]()
        self.reported = self.since = self.tick = self.calls = self.untold = 0
        self.last = self.expected = self.priv = -1
        self.first = True

    def send(self, form: int, **fields: int) -> None:
        self.out += written("ETracePacket", tick=self.tick, format=form, **fields)

    def map(self, address: int | None = None) -> None:
        sent = {"branch_map": sum((not taken) << place for place, taken in enumerate(self.branches))}
        if address is not None:
            delta = address - self.reported
            sent |= {"address": delta % 2**64} if self.early else {"saddress": delta, "address": address}
            self.reported = address
        self.send(int(address is not None), **sent, branch_count=len(self.branches))
        self.branches = []

    def support(self, status: int) -> None:
        if not self.early:
            self.send(3, subformat=3, qual_status=status, ioptions=int(self.implicit))

    def start(self, one: Commit, taken: bool) -> None:
        self.send(3, subformat=0, address=one.pc, priv=one.priv, branch_map=int(not taken), branch_count=1)
        self.reported, self.branches, self.since, self.calls = one.pc, [], 0, 0

    def commit(self, one: Commit) -> None:
        self.tick += 500
        taken = one.itype is IType.NOT_TAKEN and one.npc != one.pc + one.length
        if self.last >= 0 and one.pc != self.expected:
            assert one.trap is not None
            if self.branches:
                self.map(self.last)
            else:
                self.untold += 1
            told = {"cause": one.trap.cause, "tval": one.trap.tval, "interrupt": one.trap.interrupt}
            self.send(3, subformat=1, priv=one.priv, thaddr=True, address=one.pc, **told)
            self.reported, self.first, self.since = one.pc, False, 0
        if self.first:
            self.support(1)
            self.start(one, taken)
            self.first = False
        if one.priv != self.priv:
            if self.branches:
                self.map(one.pc)
            self.start(one, taken)
        self.priv = one.priv
        self.since += 1
        self.classify(one, taken)
        self.expected, self.last = one.npc, one.pc
        if self.since >= self.period:
            if self.branches:
                self.map(one.pc)
            self.start(one, taken)

    def classify(self, one: Commit, taken: bool) -> None:
        kind = one.itype
        if kind is IType.NOT_TAKEN:
            self.branches.append(taken)
            if len(self.branches) == 31:
                self.map()
        elif kind in (IType.INFERABLE_CALL, IType.INFERABLE_TAIL_CALL, IType.OTHER_INFERABLE):
            self.calls += kind is IType.INFERABLE_CALL
            self.map()
        elif kind is IType.RETURN and self.implicit and self.calls:
            self.calls -= 1
            self.map()
        elif kind not in (IType.NONE, IType.EXCEPTION):
            self.calls += kind is IType.UNINFERABLE_CALL
            self.map(one.npc)

    def end(self) -> bytes:
        if self.branches:
            self.map(self.last)
        self.support(2)
        return self.out


def compressed(data: bytes) -> bytes:
    """The same as gem5 writes it by default."""
    return gzip.compress(data)
