"""Reads pprof's `profile.proto` without protobuf, by the numbers in its document (google/pprof, proto/profile.proto).

The bytes are those of the wire format: a key (field number * 8 + type), then a varint (type 0), or a length and so many
bytes (type 2): a message, a text, or varints in a row.
"""

from collections.abc import Iterator
from typing import NamedTuple

Fields = dict[int, list[int | bytes]]


class Sample(NamedTuple):
    """*functions*: innermost first; *values* by the name of their type; *labels*: numbers."""

    functions: list[str]
    values: dict[str, int]
    labels: dict[str, int]


class Profile(NamedTuple):
    samples: list[Sample]
    comments: list[str]


def profile_of(data: bytes) -> Profile:
    """Read a whole profile; what refers to something that is not there raises."""
    profile = fields(data)
    strings = [text.decode() for text in messages(profile, 6)]
    assert strings[0] == ""
    types = [strings[number(fields(kind), 1)] for kind in messages(profile, 1)]
    functions = {number(it, 1): strings[number(it, 2)] for it in map(fields, messages(profile, 5))}
    locations: dict[int, str] = {}
    for it in map(fields, messages(profile, 4)):
        (line,) = map(fields, messages(it, 4))
        assert number(it, 1) not in locations
        locations[number(it, 1)] = functions[number(line, 1)]
    samples = []
    for it in map(fields, messages(profile, 2)):
        labels = {strings[number(label, 1)]: number(label, 3) for label in map(fields, messages(it, 3))}
        values = dict(zip(types, packed(it, 2), strict=True))
        samples.append(Sample([locations[at] for at in packed(it, 1)], values, labels))
    return Profile(samples, [strings[at] for at in packed(profile, 13)])


def fields(data: bytes) -> Fields:
    found: Fields = {}
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        value: int | bytes
        if key & 7 == 0:
            value, at = varint(data, at)
        else:
            assert key & 7 == 2, f"wire type {key & 7}"
            size, at = varint(data, at)
            value, at = data[at : at + size], at + size
        found.setdefault(key >> 3, []).append(value)
    return found


def varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value, at, shift = value | (byte & 0x7F) << shift, at + 1, shift + 7
        if byte < 0x80:
            return value, at


def messages(found: Fields, field: int) -> Iterator[bytes]:
    for value in found.get(field, ()):
        assert isinstance(value, bytes)
        yield value


def number(found: Fields, field: int) -> int:
    """The last value of a field, 0 without one."""
    value = found.get(field, [0])[-1]
    assert isinstance(value, int)
    return value


def packed(found: Fields, field: int) -> list[int]:
    """The numbers of a field, which may come one by one or in a row."""
    values: list[int] = []
    for value in found.get(field, ()):
        if isinstance(value, int):
            values.append(value)
            continue
        at = 0
        while at < len(value):
            one, at = varint(value, at)
            values.append(one)
    return values
