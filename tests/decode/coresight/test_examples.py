"""Frames byte by byte: each example was worked out by hand and taken apart alike by OpenCSD's packet lister."""

import pytest

from rvtrace_gdb.decode.coresight.deformatter import Deformatter, SourceBytes
from rvtrace_gdb.decode.coresight.frames import FrameForm, NoId
from rvtrace_gdb.decode.coresight.synchronization import Skipped
from tests.decode.coresight.k3 import FRAMES, MESSAGES

ONE = "2140404242444446464848 4a4a4c4cfe"
DATA = "404142434445464748494a4b4c4d"
CARRIED = "808182838485868788898a8b8c8d8e81"
BARRIER = "ffffff7f" * 4

CASES: dict[str, tuple[FrameForm, str, dict[int, str]]] = {
    "one ID": (FrameForm.MEMORY, ONE, {0x10: DATA}),
    "changes, one delayed": (
        FrameForm.MEMORY, "2101020323aa21ab04ff010000000008", {0x10: "01020304ff", 0x11: "aaab", 0: "00000000"},
    ),
    "an ID in byte 14, for the next frame": (
        FrameForm.MEMORY, "2111203142536475 8697a8b9cadb2300" + CARRIED,
        {0x10: "112031425364758697a8b9cadb", 0x11: "818182838485868788898a8b8c8d8f"},
    ),
    "padding behind a lone byte": (
        FrameForm.MEMORY, "21deac00 01000000 00000000 00000002", {0x10: "dead00", 0: "00" * 10},
    ),
    "unknown ID, barrier, unknown ID": (
        FrameForm.MEMORY, CARRIED + BARRIER + CARRIED + ONE,
        {NoId.UNKNOWN: "818182838485868788898a8b8c8d8f" * 2, 0x10: DATA},
    ),
    "pins": (FrameForm.PINS, "ffffff7f" + ONE + "ffffff7f" + ONE, {0x10: DATA * 2}),
    "pins, an FSYNC before a frame of the same ID": (
        FrameForm.PINS, "ffffff7f 2111203142536475 8697a8b9cadb2300 ffffff7f" + CARRIED,
        {0x10: "112031425364758697a8b9cadb", 0x11: "818182838485868788898a8b8c8d8f"},
    ),
    "pins, with HSYNC": (
        FrameForm.PINS, "ffffff7f 2140404242 44 ff7f 44464648484a4a4c ff7f ff7f 4cfe", {0x10: DATA},
    ),
    "pins, before the first FSYNC": (FrameForm.PINS, ONE + "ff ffffff7f" + ONE, {0x10: DATA}),
    "a trigger": (FrameForm.MEMORY, "2140fb00 21410100 00000000 00000000", {0x10: "4041", 0x7D: "00", 0: "00" * 8}),
    "the SpacemiT K3's messages": (FrameForm.MEMORY, FRAMES, {0x10: "".join(MESSAGES), 0: "00" * 12}),
}  # fmt: skip


def taken_apart(form: FrameForm, frames: bytes) -> tuple[dict[int, bytes], list[Skipped]]:
    """Return the bytes of each ID, and what was skipped."""
    deformatter = Deformatter(form)
    found = [*deformatter.feed(frames), *deformatter.finish()]
    streams: dict[int, bytes] = {}
    for piece in found:
        if isinstance(piece, SourceBytes):
            streams[piece.atb_id] = streams.get(piece.atb_id, b"") + piece.data
    return streams, [it for it in found if isinstance(it, Skipped)]


@pytest.mark.parametrize("case", CASES)
def test_examples(case: str) -> None:
    form, frames, streams = CASES[case]
    assert taken_apart(form, bytes.fromhex(frames))[0] == {it: bytes.fromhex(data) for it, data in streams.items()}


@pytest.mark.parametrize("case", CASES)
def test_examples_cut_anywhere(case: str) -> None:
    form, frames, streams = CASES[case]
    data = bytes.fromhex(frames)
    for at in range(len(data)):
        deformatter, found = Deformatter(form), dict[int, bytes]()
        pieces = [*deformatter.feed(data[:at]), *deformatter.feed(data[at:]), *deformatter.finish()]
        for piece in pieces:
            if isinstance(piece, SourceBytes):
                found[piece.atb_id] = found.get(piece.atb_id, b"") + piece.data
        assert {it: bytes.fromhex(data) for it, data in streams.items()} == found


SKIPPED: dict[str, tuple[FrameForm, str, list[Skipped]]] = {
    "a barrier": (FrameForm.MEMORY, ONE + BARRIER + ONE, [Skipped(NoId.BARRIER, 16, 16)]),
    "part of a barrier": (
        FrameForm.MEMORY, ONE + "ffffff7f" * 3 + "00000000" + CARRIED, [Skipped(NoId.DAMAGED, 16, 16)],
    ),
    "the beginning of a frame": (FrameForm.MEMORY, ONE + "214040", [Skipped(NoId.INCOMPLETE, 16, 3)]),
    "no FSYNC": (FrameForm.PINS, ONE, [Skipped(NoId.UNSYNCHRONIZED, 0, 16)]),
    "a frame cut by an FSYNC": (
        FrameForm.PINS, "ffffff7f 2140" + "ffffff7f" + ONE,
        [Skipped(NoId.SYNC, 0, 4), Skipped(NoId.DAMAGED, 4, 2), Skipped(NoId.SYNC, 6, 4)],
    ),
    "a byte lost before an FSYNC": (
        FrameForm.PINS, "ffffff7f" + ONE[2:] + "ffffff7f" + ONE,
        [Skipped(NoId.SYNC, 0, 4), Skipped(NoId.SYNC, 20, 3)],
    ),
    "what no source sends": (
        FrameForm.PINS, "ffffff7f 2140 ff00 0000 ffffff7f",
        [Skipped(NoId.SYNC, 0, 4), Skipped(NoId.DAMAGED, 4, 2), Skipped(NoId.UNSYNCHRONIZED, 6, 4),
         Skipped(NoId.SYNC, 10, 4)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", SKIPPED)
def test_what_is_skipped(case: str) -> None:
    form, frames, skipped = SKIPPED[case]
    found: list[Skipped] = []
    for it in taken_apart(form, bytes.fromhex(frames))[1]:
        if found and (found[-1].cause, found[-1].offset + found[-1].size) == (it.cause, it.offset):
            found[-1] = found[-1]._replace(size=found[-1].size + it.size)
        else:
            found.append(it)
    assert found == skipped
