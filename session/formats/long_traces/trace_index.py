"""The index of a trace that was decoded: where in its bytes decoding can go on, and with which numbers.

It is made while a long trace is decoded as a whole, and lies in the user's folder for caches, so that it need not be
asked whether a capture can be written (`kept_files`): one file for each trace, program, options and version of this
program, which its name is a hash of (`index_key`). So an index is never used for anything else; one that is damaged is
no index. It has at most `PLACES` places.

The first line is the head, as JSON: how long each history is, what became of the bytes, what may be wrong, and for each
place its byte, positions and times, and where its checkpoint is in the file (`decode.history.checkpoints`). So reading
an index costs what is looked at.
"""

import hashlib
import json
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from rvtrace_gdb.decode.history.builder import SourceHistories
from rvtrace_gdb.decode.history.checkpoints import (
    BadCheckpoint,
    Checkpoint,
    NoCheckpoint,
    StreamPlace,
    packed,
    unpacked,
)
from rvtrace_gdb.decode.history.events import Accounting, EventKind
from rvtrace_gdb.decode.history.history import Event
from rvtrace_gdb.session.formats.format import PlacedDecoder
from rvtrace_gdb.session.kept_files import DECODERS, folder_of_kept, sources_of, write_kept
from rvtrace_gdb.session.version import tool

PLACES = 512
"""The greatest number of places in an index."""
_FORMAT = 1
_APART = 1 << 16  # bytes between two places, at least
_CHECKPOINT_MOST = 1 << 16  # bytes of a checkpoint
_PROBLEMS_MOST = 256  # events of a source that say that something may be wrong
_LENGTH_MOST = 1 << 59  # only noise is longer


class SourceFacts(NamedTuple):
    """What is known of a source's history without decoding it."""

    length: int
    gaps: int
    accounting: Accounting
    problems: tuple[Event, ...]
    counts: Mapping[EventKind, int]


class IndexedPlace(NamedTuple):
    """A place where decoding can go on, see `StreamPlace`. *at*, *size*, *check*: of its checkpoint in the file."""

    offset: int
    positions: Mapping[int, int]
    times: Mapping[int, int]
    at: int
    size: int
    check: int


class TraceIndex(NamedTuple):
    """An index that was read from *file*."""

    file: Path
    sources: Mapping[int, SourceFacts]
    accounting: Accounting
    places: tuple[IndexedPlace, ...]

    def checkpoint(self, place: IndexedPlace) -> Checkpoint:
        """Return the checkpoint of a place. Raises BadCheckpoint."""
        try:
            with open(self.file, "rb") as file:
                file.seek(place.at)
                data = file.read(place.size)
        except OSError as error:
            raise BadCheckpoint(str(error)) from None
        if zlib.crc32(data) != place.check:
            raise BadCheckpoint("checksum")
        found: Checkpoint = json.loads(data)
        return found


def index_key(data: bytes, program: Iterable[bytes], options: str) -> str:
    """Return the name of the index of a trace. *program*: its code; *options*: all others that decide what it means."""
    found = hashlib.blake2b(digest_size=20)
    found.update(repr((_FORMAT, tool(), sources_of(*DECODERS), options, len(data))).encode())
    for part in program:
        found.update(len(part).to_bytes(8, "little"))
        found.update(part)
    found.update(data)
    return found.hexdigest()


def read_index(key: str) -> TraceIndex | None:
    """Return the index of this name, None if there is none that can be used."""
    folder = folder_of_kept()
    if folder is None:
        return None
    file = folder / f"{key}.index"
    try:
        with open(file, "rb") as opened:
            check, _, head = opened.readline().partition(b" ")
        if int(check, 16) != zlib.crc32(head):
            return None
        found = _from_head(json.loads(head), file, len(check) + 1 + len(head))
        os.utime(file)
        return found
    except (OSError, ValueError, KeyError, TypeError, BadCheckpoint):
        return None


def _from_head(head: dict[str, Any], file: Path, end: int) -> TraceIndex:
    sources = {
        source: SourceFacts(
            length, gaps, Accounting(*account), unpacked(problems), {EventKind[kind]: count for kind, count in counts}
        )
        for source, length, gaps, account, problems, counts in head["sources"]
    }
    places = tuple(
        IndexedPlace(offset, dict(positions), dict(times), end + at, size, check)
        for offset, positions, times, at, size, check in head["places"]
    )
    return TraceIndex(file, sources, Accounting(*head["accounting"]), places)


class IndexRecorder:
    """Notes places while a trace of *size* bytes is decoded, and writes its index, whose name is *key*."""

    def __init__(self, key: str, size: int) -> None:
        self._key = key
        self._apart = max(_APART, size // PLACES)
        self._next = self._apart
        self._places: list[tuple[StreamPlace, bytes]] = []

    def passed(self, offset: int, decoder: PlacedDecoder) -> None:
        """Note where *decoder* is, if it is time for a place. *offset*: the bytes it has decoded."""
        if offset < self._next:
            return
        try:
            place = decoder.place()
            checkpoint = json.dumps(place.checkpoint).encode()
        except (NoCheckpoint, ValueError):  # a number that JSON does not take is noise
            return
        if len(checkpoint) <= _CHECKPOINT_MOST:
            self._places.append((place, checkpoint))
            self._next = offset + self._apart

    def write(self, decoded: SourceHistories) -> None:
        """Write the index; nothing happens if that is not possible, or if there would be nothing in it."""
        if not self._places or folder_of_kept() is None:
            return
        try:
            head = json.dumps(self._head(decoded)).encode() + b"\n"
        except (NoCheckpoint, ValueError):
            return
        checkpoints = (checkpoint for _, checkpoint in self._places)
        write_kept(f"{self._key}.index", (b"%08x " % zlib.crc32(head) + head, *checkpoints))

    def _head(self, decoded: SourceHistories) -> dict[str, Any]:
        sources = []
        for source, history in decoded.histories.items():
            problems = history.doubtful_events
            if history.accesses or history.code_varies:
                raise NoCheckpoint("accesses")
            if len(problems) > _PROBLEMS_MOST or len(history) > _LENGTH_MOST:
                raise NoCheckpoint("problems")
            counts = [(kind.name, count) for kind, count in history.kind_counts.items()]
            sources.append([source, len(history), history.gaps, list(history.accounting), packed(problems), counts])
        return {"sources": sources, "accounting": list(decoded.accounting), "places": list(self._place_rows())}

    def _place_rows(self) -> Iterator[list[Any]]:
        at = 0
        for place, data in self._places:
            positions, times = list(place.positions.items()), list(place.times.items())
            yield [place.offset, positions, times, at, len(data), zlib.crc32(data)]
            at += len(data)
