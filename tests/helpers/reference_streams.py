"""The reference encoder's streams (tests/data/ntrace-reference), also as several harts would send them."""

import csv
import hashlib
from collections.abc import Iterable
from itertools import chain, zip_longest
from pathlib import Path

from tests.decode.ntrace.messages import message, read, split

FOLDER = Path(__file__).resolve().parent.parent / "data" / "ntrace-reference"


def golden(program: str) -> tuple[int, str]:
    """How many instructions a program runs, and the SHA-256 of their addresses as "0x%X" lines."""
    with open(FOLDER / "golden.tsv", encoding="ascii") as file:
        for row in csv.reader(file, delimiter="\t"):
            if row[0] == program:
                return int(row[4]), row[5]
    raise KeyError(program)


def fingerprint(pcs: Iterable[int]) -> str:
    """The SHA-256 of addresses, as in the golden file."""
    return hashlib.sha256("".join(f"0x{pc:X}\n" for pc in pcs).encode()).hexdigest()


def from_source(stream: bytes, bits: int, src: int, times: tuple[int, int] | None = None) -> list[bytes]:
    """The messages of a stream with SRC. *times*: with TSTAMP, (the first, ticks from each message to the next)."""
    messages: list[bytes] = []
    for raw in split(stream):
        fields = read(raw)
        name = str(fields.pop("name"))
        tstamp = None if times is None else times[1] if messages else times[0]
        messages.append(message(name, (bits, src), tstamp, **{key: int(value) for key, value in fields.items()}))
    return messages


def in_turn(*harts: list[bytes]) -> bytes:
    """One stream of the messages of several harts, each sending one after the other."""
    return b"".join(raw for raw in chain.from_iterable(zip_longest(*harts)) if raw is not None)
