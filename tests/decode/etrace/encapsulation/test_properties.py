"""Any packets in any transport come back; any bytes are accounted for, in whatever pieces they come."""

import random
import tracemalloc
from collections import defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rvtrace_gdb.decode.etrace.encapsulation import (
    NAMES,
    ContentKind,
    EncapsulatedItem,
    Encapsulation,
    LostBytes,
    SourcePackets,
)
from tests.decode.etrace.encapsulation.transports import Told, bits_of, items_of, normal, read, write
from tests.helpers.amounts import LONG, some_of

examples = settings(derandomize=True, max_examples=some_of(80), deadline=None)
seeds = st.integers(0, 1 << 32)
cuts = st.lists(st.integers(0, 1 << 20), max_size=8)

fields = st.fixed_dictionaries(
    {
        "name": st.sampled_from(["encap", "smi"]),
        "src_bits": st.integers(0, 16),
        "timestamp_bytes": st.integers(0, 8),
        "type_bits": st.integers(0, 4),
    }
)
any_encapsulation = st.one_of(
    st.builds(Encapsulation, st.sampled_from(NAMES)),
    st.builds(lambda values: Encapsulation(**values), fields),
    st.builds(lambda values, size: Encapsulation(**values, block_size=size), fields, st.integers(48, 300)),
    st.builds(lambda width, start: Encapsulation("atb", atb_bytes=width, block_start=start), st.integers(1, 16), seeds),
    st.builds(lambda name, end: Encapsulation(name, block_start=end), st.sampled_from(["esp32", "qemu"]), seeds),
)


def _packets(rng: random.Random, encapsulation: Encapsulation, sources: list[int], count: int) -> list[Told]:
    """Packets as a trace of this kind may have."""
    kinds = [ContentKind.INSTRUCTION]
    if encapsulation.type_bits or (encapsulation.name == "smi" and not encapsulation.src_bits):
        kinds.append(ContentKind.DATA)
    if encapsulation.timestamp_bytes and not encapsulation.type_bits:
        kinds = kinds[:1]
    width = 8 * encapsulation.timestamp_bytes
    return [
        (
            0,
            rng.choice(sources),
            rng.choice(kinds),
            rng.randbytes(rng.randrange(1, 24)),
            rng.getrandbits(width) if width and rng.random() < 0.5 else None,
        )
        for _ in range(count)
    ]


def _by_source(packets: list[Told]) -> dict[int, list[tuple[object, ...]]]:
    told: dict[int, list[tuple[object, ...]]] = defaultdict(list)
    for _, source, *rest in packets:
        told[source].append(tuple(rest))
    return told


@examples
@given(seeds, fields, cuts)
def test_framer_and_deframer_agree_with_the_document(seed: int, values: dict[str, int], where: list[int]) -> None:
    """Bytes as the document's tables say, of several sources and kinds, with filling in between."""
    rng = random.Random(seed)
    encapsulation = Encapsulation(**{**values, "name": "encap"})  # type: ignore[arg-type]
    sources = [rng.getrandbits(encapsulation.src_bits) for _ in range(3)] if encapsulation.src_bits else [0]
    types = {1: (0, 1)}.get(encapsulation.type_bits, (2, 3))
    framer, data, expected = encapsulation.framer(), b"", []
    for _, source, kind, payload, time in _packets(rng, encapsulation, sources, 30):
        stamp = None if time is None else (time, 8 * encapsulation.timestamp_bytes)
        bits = bits_of(int.from_bytes(payload, "little"), 8 * len(payload))
        type_ = (types[kind], encapsulation.type_bits)
        packet = normal(bits, source=(source, encapsulation.src_bits), time=stamp, type_=type_)
        assert framer.packet(payload, kind, source, time) == packet
        expected.append((len(data), source, kind, payload, time))
        data += packet + framer.idle(rng.randrange(3))
    content = read(encapsulation, data, cuts=where)
    assert content.packets == expected
    assert not content.losses


@pytest.mark.parametrize("name", NAMES)
@examples
@given(seeds, cuts, st.booleans())
def test_every_transport_comes_back(name: str, seed: int, where: list[int], anchored: bool) -> None:
    rng = random.Random(seed)
    encapsulation = Encapsulation(name)
    packets = _packets(rng, encapsulation, [1, 0x6F, 7] if name == "atb" else [0], 40)
    framer, data, anchor = encapsulation.framer(), b"", 0
    for i, (_, source, kind, payload, time) in enumerate(packets):
        if anchored and i == 20:
            anchor = len(data)
            data += framer.synchronization()
        data += framer.packet(payload, kind, source, time) + framer.idle(rng.choice((0, 0, 5)))
    content = read(encapsulation, data, cuts=where)
    assert _by_source(content.packets) == _by_source(packets)
    assert not content.losses
    if anchored and name != "pulp":  # of which the trace is whole records in any case
        ring = read(encapsulation, data[anchor:], wrapped=True, cuts=where)
        assert _by_source(ring.packets) == _by_source(packets[20:])


@examples
@given(any_encapsulation, st.binary(max_size=400), seeds, cuts, st.booleans())
def test_no_bytes_raise_or_are_miscounted(
    encapsulation: Encapsulation, noise: bytes, seed: int, where: list[int], wrapped: bool
) -> None:
    """Noise alone and around packets. However it is cut: the same packets, losses and filling, in order."""
    rng = random.Random(seed)
    source = 1 if encapsulation.name == "atb" else 0
    trace = write(encapsulation, _packets(rng, encapsulation, [source], 10))
    for data in (noise, trace + noise, noise + trace, trace[: len(trace) // 2] + noise + trace * 2, noise * 30):
        items = items_of(encapsulation.deframer(wrapped=wrapped), data, where)
        _check_order(items, lanes=encapsulation.name == "atb")
        content = read(encapsulation, data, wrapped=wrapped, cuts=where)
        assert content == read(encapsulation, data, wrapped=wrapped)
        assert all(packet[3] for packet in content.packets if packet[2] is not ContentKind.OTHER)


def _check_order(items: list[EncapsulatedItem], *, lanes: bool) -> None:
    """Each source's packets come in order, and all that was before a loss before it."""
    last: dict[int, int] = {}
    loss = -1
    for item in items:
        if isinstance(item, LostBytes):
            assert item.length >= 0
            assert lanes or all(offset < item.offset for offset in last.values())
            loss = item.offset
        elif isinstance(item, SourcePackets):
            assert list(item.offsets) == sorted(item.offsets)
            assert item.offsets[0] >= last.get(item.source, 0)
            assert lanes or item.offsets[0] >= loss
            last[item.source] = item.offsets[-1]


@examples
@given(seeds, fields, st.integers(1, 255))
def test_damage_ends_at_a_synchronization_sequence(seed: int, values: dict[str, int], flip: int) -> None:
    """One byte is wrong. What was before it is read, and what comes behind the next sequence."""
    rng = random.Random(seed)
    encapsulation = Encapsulation(**{**values, "name": "encap"})  # type: ignore[arg-type]
    before = write(encapsulation, _packets(rng, encapsulation, [0], 20))
    behind = write(encapsulation, _packets(rng, encapsulation, [0], 20))
    sequence = encapsulation.framer().synchronization()
    # a header made longer takes up to a whole packet of the sequence: two, so that one is undamaged
    data = bytearray(before + sequence * 2 + behind)
    where = rng.randrange(len(before))
    data[where] ^= flip
    start = len(data) - len(behind)
    content, linear = read(encapsulation, bytes(data)), read(encapsulation, before + sequence * 2 + behind)
    assert [packet for packet in content.packets if packet[0] >= start] == linear.packets[20:]
    whole = [packet for packet, nxt in zip(linear.packets, linear.packets[1:], strict=False) if nxt[0] <= where]
    assert content.packets[: len(whole)] == whole


def test_missing_packets_of_an_esp32_are_counted() -> None:
    """Of 300 packets some are taken out: as many are told to be missing."""
    rng = random.Random(0)
    framer = Encapsulation("esp32").framer()
    packets = [framer.packet(rng.randbytes(rng.randrange(1, 20))) for _ in range(300)]
    kept = [0, *sorted(rng.sample(range(1, 299), 200)), 299]
    content = read(Encapsulation("esp32"), b"".join(packets[i] for i in kept))
    assert [packet[3] for packet in content.packets] == [packets[i][3:] for i in kept]
    assert sum(int(lost.why.split()[0]) for lost in content.losses) == 300 - len(kept)


@pytest.mark.parametrize(
    ("encapsulation", "trace"),
    [
        (Encapsulation(), b"\x1f"),
        (Encapsulation(timestamp_bytes=8), b"\x9f"),
        (Encapsulation(timestamp_bytes=2), bytes(range(1, 32)) * 2),
        (Encapsulation(block_size=1 << 20), b"\x9f"),
        (Encapsulation("esp32"), b"\x04"),
        (Encapsulation("atb"), b"\x01\x03\x1f\x1f\x1f\x1f"),
        (Encapsulation("atb"), bytes([1, 3, 9, 8, 7, 6, 2, 3, 5, 4, 3, 2])),
        (Encapsulation("pulp"), bytes(39) + b"\x01"),
        (Encapsulation("qemu"), b"\x1f"),
    ],
)
def test_nothing_grows(encapsulation: Encapsulation, trace: bytes) -> None:
    """Very many bytes, also such in which no packet can be found, leave no more behind than a few packets."""
    size = 10_000 if LONG else 2_000
    piece, times, most = trace * (size // len(trace)), 25 if LONG else 40, 15 * size if LONG else 24 * size
    for wrapped in (False, True):
        deframer = encapsulation.deframer(wrapped=wrapped)
        for _ in deframer.feed(piece * 2):
            pass
        tracemalloc.start()
        for _ in range(times):
            for _ in deframer.feed(piece):
                pass
        left, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert left < most, (wrapped, left)
