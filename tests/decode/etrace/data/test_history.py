"""Data packets among te_inst packets: accesses in the history of the whole trace, in the places Spike says.

What ran and what was accessed are Spike's (tests/data/etrace-data and the vectors), the packets ours.
"""

from collections.abc import Callable
from functools import cache

import pytest

from rvtrace_gdb.decode.etrace.data.codec import DataEncoder
from rvtrace_gdb.decode.etrace.decoder import StreamDecoder, decode
from rvtrace_gdb.decode.etrace.encapsulation import ContentKind, Encapsulation
from rvtrace_gdb.decode.etrace.encoder.encoder import Encoder
from rvtrace_gdb.decode.etrace.encoder.options import EncoderOptions, ResyncMode
from rvtrace_gdb.decode.etrace.options import Modes, Parameters
from rvtrace_gdb.decode.executed.encoder_ingress import Block
from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.decode.program.instructions import AccessNote, MemoryAccess
from tests.decode.etrace.data.test_differences import reference_accesses
from tests.decode.etrace.encoder_vectors import image, items
from tests.decode.etrace.vectors import expected

PARAMETERS = Parameters(iaddress_width=64)
TYPED = Encapsulation("encap", type_bits=1)
SYNCHRONIZE = {0x3, 0x7}  # format 3 (bits 1:0) of subformat 0 or 1 (bits 3:2)


@cache
def accessed() -> list[MemoryAccess]:
    """The accesses of the first 30000 instructions, with their positions.

    Which ones access something, by the opcode alone: 03 and 23, and in the compressed code of this program (no
    floating point) funct3 2, 3, 6 and 7 of the quadrants 0 and 2 (ISA manual volume I, "RVC Instruction Set Listings").
    """
    code = image("qsort")
    found = []
    accesses = iter(reference_accesses())
    for position, pc in enumerate(expected("qsort", "o01")):
        half = int.from_bytes(code.read(pc, 2), "little")
        is_access = half & 0x7F in (0x03, 0x23) if half & 3 == 3 else half & 3 != 1 and half >> 13 in (2, 3, 6, 7)
        if is_access:
            found.append(next(accesses)._replace(position=position))
    return found


def all_of_them(number: int) -> bool:
    return True


@cache
def trace(
    modes: Modes,
    encapsulation: Encapsulation = TYPED,
    keep: Callable[[int], bool] = all_of_them,
    *,
    boot: bool = True,
) -> bytes:
    """The trace of qsort, synchronized every 16 packets, without the data packets that *keep* does not want.

    *boot*: with what ran in the boot ROM, before the program.
    """
    framer = encapsulation.framer()
    stream = bytearray()
    count = 0

    def instruction(payload: bytes) -> None:
        stream.extend(framer.packet(payload))
        if payload[0] & 15 in SYNCHRONIZE:
            data.synchronize()

    def access(payload: bytes) -> None:
        nonlocal count
        if keep(count):
            stream.extend(framer.packet(payload, ContentKind.DATA))
        count += 1

    data = DataEncoder(PARAMETERS, modes, access)
    encoder = Encoder(EncoderOptions(PARAMETERS, modes, sync_mode=ResyncMode.PACKETS, sync_max=0), instruction)
    encoder.start()
    done, told = 0, 0
    accesses = accessed()
    for item in items("qsort"):
        if isinstance(item, Block) and item.pc < 0x8000_0000 and not boot:
            done += item.instructions
            told = sum((access.position or 0) < done for access in accesses)
            continue
        encoder.retire([item])
        done += item.instructions if isinstance(item, Block) else 0
        while told < len(accesses) and (accesses[told].position or 0) < done:
            data.access(accesses[told])
            told += 1
    encoder.stop()
    return bytes(stream)


@cache
def decoded(stream: bytes, modes: Modes, encapsulation: Encapsulation = TYPED) -> History:
    options = EncoderOptions(PARAMETERS, modes).decoder
    return decode(stream, image("qsort"), options, encapsulation)


def facts(accesses: list[MemoryAccess]) -> list[tuple[int | None, str, int, int | None, int | None]]:
    return [(a.position, a.kind, a.size, a.address, a.value) for a in accesses]


@pytest.mark.parametrize(
    "modes",
    [
        Modes(),
        Modes(data_no_address=True),
        Modes(data_no_data=True),
        Modes(data_full_address=True, data_full_data=True),
        Modes(data_full_data=True, full_address=True),
    ],
    ids=["both", "values", "addresses", "full", "full data"],
)
def test_each_access_is_in_its_place(modes: Modes) -> None:
    history = decoded(trace(modes), modes)
    assert history.instructions == 30000 and history.gaps == 0
    want = [
        access._replace(
            address=None if modes.data_no_address else access.address,
            value=None if modes.data_no_data else access.value,
        )
        for access in accessed()
    ]
    assert facts(list(history.accesses)) == facts(want)
    assert not any(access.notes for access in history.accesses)


def test_as_smi() -> None:
    smi = Encapsulation("smi")
    history = decoded(trace(Modes(), smi), Modes(), smi)
    assert facts(list(history.accesses)) == facts(accessed())


def test_an_access_names_the_byte_of_its_packet() -> None:
    """Whose payload alone, behind its header, gives the same access where it is told in full."""
    modes = Modes(data_full_address=True, data_full_data=True)
    stream = trace(modes)
    for access in decoded(stream, modes).accesses[::997]:
        sent: list[bytes] = []
        DataEncoder(PARAMETERS, modes, sent.append).access(access)
        framed = TYPED.framer().packet(sent[0], ContentKind.DATA)
        assert stream[access.offset : access.offset + len(framed)] == framed


def test_packets_that_are_missing_without_a_word() -> None:
    """One in 2000 data packets is lost and nothing says so: no access gets another's place, and most keep theirs."""
    modes = Modes(data_full_address=True, data_full_data=True)
    history = decoded(trace(modes, keep=lambda number: number % 2000 != 1999), modes)
    right = [access for number, access in enumerate(accessed()) if number % 2000 != 1999]
    got = list(history.accesses)
    assert [(a.kind, a.size, a.address, a.value) for a in got] == [(a.kind, a.size, a.address, a.value) for a in right]
    assert {a.position for a in got} > {None}
    assert all(a.position in (None, b.position) for a, b in zip(got, right, strict=True))
    assert sum(a.position is not None for a in got) > len(right) // 2
    assert all(bool(a.notes) == (a.position is None) for a in got)


def test_a_damaged_data_packet_stops_the_counting_until_the_next_synchronization() -> None:
    """Format 4, the data of a split load, does not exist where loads are unified."""
    modes = Modes(data_full_address=True, data_full_data=True)
    stream = trace(modes)
    clean = decoded(stream, modes).accesses
    where = clean[4000].offset
    damaged = stream[:where] + TYPED.framer().packet(b"\x04", ContentKind.DATA) + stream[where:]
    history = decoded(damaged, modes)
    assert len(history.accesses) == len(clean) and history.instructions == 30000
    unknown = [number for number in range(4000, len(clean)) if clean[number].sync == clean[4000].sync]
    for number, access in enumerate(history.accesses):
        assert access.position == (None if number in unknown else clean[number].position)
    assert history.accesses[3999].notes == (AccessNote.LOST_AFTER,)
    assert {history.accesses[number].notes for number in unknown} == {(AccessNote.NOT_IN_SYNC,)} and unknown
    assert any("te_data" in event.text and event.offset == where for event in history.events)


def test_the_trace_begins_in_the_middle() -> None:
    """Without its first 20000 bytes: from the first synchronization on all is as before."""
    modes = Modes()
    stream = trace(modes)
    clean = decoded(stream, modes).accesses
    options = EncoderOptions(PARAMETERS, modes).decoder
    start = clean[3000].offset
    history = decode(stream[start:], image("qsort"), options, TYPED)
    first = next(number for number in range(3000, len(clean)) if clean[number].sync > clean[3000].sync)
    assert clean[first].position is not None
    skipped = 30000 - history.instructions
    assert clean[first].sync == skipped
    for number, access in enumerate(history.accesses, 3000):
        was = clean[number].position
        assert access.position == (was - skipped if number >= first and was is not None else None)
    tail = [(access.address, access.value) for access in history.accesses[first - 3000 :]]
    assert tail == [(access.address, access.value) for access in clean[first:]]


@pytest.mark.parametrize("piece", [1, 7, 4096])
def test_the_same_bytes_in_pieces(piece: int) -> None:
    modes = Modes()
    stream = trace(modes)[:60000]
    decoder = StreamDecoder(image("qsort"), EncoderOptions(PARAMETERS, modes).decoder, TYPED, split=False)
    for at in range(0, len(stream), piece):
        decoder.feed(stream[at : at + piece])
    whole = list(decoded(stream, modes).accesses)
    assert list(decoder.finish_one().accesses) == whole
    assert len(whole) > 5000
