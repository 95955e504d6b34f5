"""A profile as pprof reads it: `profile.proto`, compressed with gzip.

A sample is a call stack, with the instructions that ran in its innermost function and how often that was called; its
label is the hart. A location is a function: the stacks say which function ran, not which of its instructions. Gaps are
in the comments (`go tool pprof -comments`): they have no known length. Of a trace without a flow, PC samples are
counted instead of instructions.

The messages are made by protobuf, from the table of their fields. Source: google/pprof, proto/profile.proto.
"""

import gzip
from collections.abc import Iterator
from typing import Any, BinaryIO

from rvtrace_gdb.decode.calls.stacks.frame import UNKNOWN
from rvtrace_gdb.session.exports.export import ExportedTrace, Written
from rvtrace_gdb.session.exports.extra_library import library
from rvtrace_gdb.session.exports.missing import missing
from rvtrace_gdb.session.exports.profiles.stacks import ProfileNames, StackFrame, call_stacks
from rvtrace_gdb.support.errors import Progress
from rvtrace_gdb.support.text import counted

MESSAGES = {
    "ValueType": "type:i unit:i",
    "Label": "key:i str:i num:i num_unit:i",
    "Sample": "location_id:u* value:i* label:Label*",
    "Mapping": "id:u memory_start:u memory_limit:u file_offset:u filename:i build_id:i has_functions:b has_filenames:b"
    " has_line_numbers:b has_inline_frames:b",
    "Line": "function_id:u line:i column:i",
    "Location": "id:u mapping_id:u address:u line:Line* is_folded:b",
    "Function": "id:u name:i system_name:i filename:i start_line:i",
    "Profile": "sample_type:ValueType* sample:Sample* mapping:Mapping* location:Location* function:Function*"
    " string_table:s* drop_frames:i keep_frames:i time_nanos:i duration_nanos:i period_type:ValueType period:i"
    " comment:i* default_sample_type:i doc_url:i",
}
"""The messages: fields by name and type, in the order of their numbers. i: int64, u: uint64, b: bool, s: string, else a
message; *: repeated.
"""
_TYPES = {"i": 3, "u": 4, "b": 8, "s": 9}  # FieldDescriptorProto.Type
_MESSAGE, _OPTIONAL, _REPEATED = 11, 1, 3
_AT_ONCE = 1 << 12
"""Samples in each piece: a message is the same in pieces, which protobuf puts together again."""


def write(trace: ExportedTrace, file: BinaryIO, progress: Progress) -> Written:
    """Write the stacks of all harts. Raises LibraryMissing."""
    profile = _PprofProfile(_message_class(), trace.unit)
    with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as packed:
        for hart in trace.harts:
            profile.begin(hart, progress)
            for number, stack in enumerate(call_stacks(hart, progress), 1):
                profile.add(stack.frames, (stack.own, stack.calls))
                if number % _AT_ONCE == 0:
                    packed.write(profile.piece())
            packed.write(profile.piece())
    return Written()


def _message_class() -> Any:
    """Return the class of the message Profile. Raises LibraryMissing."""
    descriptors = library("google.protobuf.descriptor_pb2", "protobuf", "pprof")
    pools = library("google.protobuf.descriptor_pool", "protobuf", "pprof")
    factory = library("google.protobuf.message_factory", "protobuf", "pprof")
    file = descriptors.FileDescriptorProto(name="profile.proto", package="perftools.profiles", syntax="proto3")
    for name, fields in MESSAGES.items():
        message = file.message_type.add(name=name)
        for number, field in enumerate(fields.split(), 1):
            name, _, kind = field.partition(":")
            label = _REPEATED if kind.endswith("*") else _OPTIONAL
            kind = kind.removesuffix("*")
            made = message.field.add(name=name, number=number, label=label, type=_TYPES.get(kind, _MESSAGE))
            if kind not in _TYPES:
                made.type_name = f".perftools.profiles.{kind}"
    pool = pools.DescriptorPool()
    pool.Add(file)
    return factory.GetMessageClass(pool.FindMessageTypeByName("perftools.profiles.Profile"))


class _PprofProfile:
    """The message under construction, in pieces. Strings, functions and locations are numbered once."""

    def __init__(self, message_class: Any, unit: str) -> None:
        self._class, self._now = message_class, message_class()
        self._strings: dict[str, int] = {}
        self._locations: dict[tuple[str, int], int] = {}
        for name in ("", unit, "count", "calls"):
            self._string(name)
        for kind in (unit, "calls"):
            self._now.sample_type.add(type=self._string(kind), unit=self._string("count"))
        self._now.period_type.type, self._now.period_type.unit = self._string(unit), self._string("count")
        self._now.period, self._now.default_sample_type = 1, self._string(unit)

    def begin(self, trace: ExportedTrace, progress: Progress) -> None:
        """Go on with another hart: its samples follow."""
        self._names, self._hart, self._numbers = ProfileNames(trace, progress), trace.hart, dict[StackFrame, int]()
        self._now.comment.extend(map(self._string, _comments(trace)))

    def add(self, frames: tuple[StackFrame, ...], values: tuple[int, int]) -> None:
        """Add the sample of a stack, if it has any value."""
        if any(values):
            sample = self._now.sample.add(location_id=map(self._location, reversed(frames)), value=values)
            sample.label.add(key=self._string("hart"), num=self._hart)

    def piece(self) -> bytes:
        """Return what was added since the last piece."""
        made: bytes = self._now.SerializeToString(deterministic=True)
        self._now = self._class()
        return made

    def _string(self, text: str) -> int:
        number = self._strings.get(text)
        if number is None:
            number = self._strings[text] = len(self._strings)
            self._now.string_table.append(text)
        return number

    def _location(self, frame: StackFrame) -> int:
        number = self._numbers.get(frame)
        if number is None:
            number = self._numbers[frame] = self._new_location(frame)
        return number

    def _new_location(self, frame: StackFrame) -> int:
        """Return the location of a function that this hart had not before; another hart may have had it."""
        name, address = self._names.name(frame), 0 if frame.function == UNKNOWN else frame.function
        known = self._locations.get((name, address))
        if known is not None:
            return known
        number = self._locations[name, address] = len(self._locations) + 1
        row, text = self._names.source_row(frame), self._string(name)
        path, line = (self._string(row.path), row.line) if row else (0, 0)
        self._now.function.add(id=number, name=text, system_name=text, filename=path, start_line=line)
        self._now.location.add(id=number, address=address).line.add(function_id=number, line=line)
        return number


def _comments(trace: ExportedTrace) -> Iterator[str]:
    for what, times in sorted(missing(trace.history, trace.part).items()):
        yield f"hart {trace.hart}: {what}, {counted(times, 'time')}"
