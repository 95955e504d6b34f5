"""N-Trace messages as the document spells them, and the shortest way to decode and encode a few of them in a test.

Packing and reading here follow the document alone (RISC-V N-Trace 1.0, chapter 3 and the table "Fields in Messages"),
not the product's tables, so that a mistake there cannot hide.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import Any

from rvtrace_gdb.decode.executed.encoder_ingress import Block, IngressTrap, blocks_from_pcs
from rvtrace_gdb.decode.history.events import EventKind
from rvtrace_gdb.decode.history.history import Event, History
from rvtrace_gdb.decode.ntrace.decoder import decode
from rvtrace_gdb.decode.ntrace.encoder.encoder import Encoder
from rvtrace_gdb.decode.ntrace.messages import Evcode, Sync
from rvtrace_gdb.decode.ntrace.options import EncoderOptions, Options
from rvtrace_gdb.decode.program.image import Image

# TCODE, and the fields after SRC: "name:bits" for fixed-length ones, the others are variable.
MESSAGES = {
    "Ownership": (2, "process"),
    "DirectBranch": (3, "icnt"),
    "IndirectBranch": (4, "b_type:2 icnt uaddr"),
    "Error": (8, "etype:4 ecode"),
    "ProgTraceSync": (9, "sync:4 icnt faddr"),
    "DirectBranchSync": (11, "sync:4 icnt faddr"),
    "IndirectBranchSync": (12, "sync:4 b_type:2 icnt faddr"),
    "ResourceFull": (27, "rcode:4 rdata hrepeat"),
    "IndirectBranchHist": (28, "b_type:2 icnt uaddr hist"),
    "IndirectBranchHistSync": (29, "sync:4 b_type:2 icnt faddr hist"),
    "RepeatBranch": (30, "bcnt"),
    "ProgTraceCorrelation": (33, "evcode:4 cdf:2 icnt hist"),
}
SYNCS = {tcode for tcode, fields in MESSAGES.values() if fields.startswith("sync")}
"""TCODEs of the synchronizing messages."""
_NAMES = {tcode: name for name, (tcode, _) in MESSAGES.items()}
_OPTIONAL = ("hrepeat", "hist")  # of ResourceFull and ProgTraceCorrelation; `message` sends them when they are given


def groups(*fields: tuple[int, int]) -> bytes:
    """The bytes of a message. *fields*: value and bits; 0 bits for a variable-length field, which ends a byte (3.1)."""
    out = bytearray()
    value = bits = 0
    for number, (field, width) in enumerate(fields, 1 - len(fields)):
        value |= field << bits
        bits += width or max(field.bit_length(), 1)
        if width and number:
            continue
        count = -(-bits // 6)
        out += bytes((value >> 6 * i & 0x3F) << 2 for i in range(count))
        out[-1] |= 0b01 if number else 0b11
        value = bits = 0
    return bytes(out)


def message(name: str, source: tuple[int, int] = (0, 0), tstamp: int | None = None, **values: int) -> bytes:
    """The shortest form of a message. *source*: width and value of SRC."""
    tcode, layout = MESSAGES[name]
    fields = [(tcode, 6)] + ([(source[1], source[0])] if source[0] else [])
    for field in layout.split():
        field_name, _, bits = field.partition(":")
        if field_name in values or field_name not in _OPTIONAL:
            fields.append((values.pop(field_name), int(bits or 0)))
    assert not values, f"{name} has no {', '.join(values)}"
    if tstamp is not None:
        fields.append((tstamp, 0))
    return groups(*fields)


def vendor(tcode: int, *values: int, source: tuple[int, int] = (0, 0)) -> bytes:
    """A message outside the table: variable-length fields after TCODE and SRC."""
    return groups((tcode, 6), *[(source[1], source[0])] * bool(source[0]), *[(value, 0) for value in values])


def read(raw: bytes, src_bits: int = 0, *, extend_addr_msb: bool = False) -> dict[str, int | str]:
    """The fields of a standard message by name, "name" itself, "src" with *src_bits*, "tstamp" when there is one.

    *extend_addr_msb*: an address whose highest bit sent is 1 is negative (9.4).
    """
    numbers, tops, value, bits = [], [], 0, 0
    for byte in raw:
        value |= byte >> 2 << bits
        bits += 6
        if byte & 3:
            numbers.append(value)
            tops.append(value >> bits - 1 << bits)
            value = bits = 0
    assert raw[-1] & 3 == 3, "a message ends with MSEO 11"
    name = _NAMES[numbers[0] & 63]
    found: dict[str, int | str] = {"name": name}
    numbers[0] >>= 6
    fields = [field.partition(":") for field in MESSAGES[name][1].split()]
    fixed = [("src", src_bits)] * bool(src_bits) + [(field, int(width)) for field, _, width in fields if width]
    for field, width in fixed:
        found[field] = numbers[0] & (1 << width) - 1
        numbers[0] >>= width
    absent = {"ResourceFull": found.get("rcode") != 2, "ProgTraceCorrelation": found.get("cdf") != 1}.get(name, False)
    variable = [field for field, _, width in fields if not width and not (absent and field in _OPTIONAL)]
    for field, number, top in zip([*variable, "tstamp"], numbers, tops, strict=False):
        found[field] = number - top if extend_addr_msb and field in ("faddr", "uaddr") else number
    return found


def located(stream: bytes) -> Iterator[tuple[int, bytes]]:
    """The messages of an undamaged stream, without idle bytes, and their offsets (3.1)."""
    start = 0
    for end, byte in enumerate(stream, 1):
        if byte & 3 == 3:
            if start < end - 1:  # a single byte with MSEO 11 is idle
                yield start, stream[start:end]
            start = end


def split(stream: bytes) -> list[bytes]:
    """The messages of an undamaged stream."""
    return [raw for _, raw in located(stream)]


def started(pc: int = 0x100, sync: int = Sync.EXIT_FROM_DEBUG, tstamp: int | None = None) -> bytes:
    """ProgTraceSync with I-CNT 0."""
    return message("ProgTraceSync", sync=sync, icnt=0, faddr=pc >> 1, tstamp=tstamp)


def stopped(icnt: int, hist: int | None = 1, evcode: int = 0) -> bytes:
    """ProgTraceCorrelation; *hist* None in BTM."""
    if hist is None:
        return message("ProgTraceCorrelation", evcode=evcode, cdf=0, icnt=icnt)
    return message("ProgTraceCorrelation", evcode=evcode, cdf=1, icnt=icnt, hist=hist)


def image_of(*pieces: tuple[int, Iterable[bytes]], xlen: int = 32) -> Image:
    """A program of instructions at addresses."""
    image = Image(xlen)
    for address, instructions in pieces:
        image.add_code(address, b"".join(instructions))
    return image


def decoded(image: Image, *messages: bytes, wrapped: bool = False, **options: Any) -> History:
    """The history of these messages; *options*: fields of `Options`."""
    return decode(b"".join(messages), image, Options(**options), wrapped=wrapped)


def encoded(
    image: Image, pcs: Sequence[int], next_pc: int | None = None, sync: Sync = Sync.EXIT_FROM_DEBUG, **options: Any
) -> list[bytes]:
    """The messages of an execution from exit from debug mode to entry into it; *options*: of `EncoderOptions`."""
    return encoded_items(list(blocks_from_pcs(pcs, image)), next_pc, sync, **options)


def encoded_items(
    items: Sequence[Block | IngressTrap], next_pc: int | None = None, sync: Sync = Sync.EXIT_FROM_DEBUG, **options: Any
) -> list[bytes]:
    """As `encoded`, from blocks and traps."""
    messages: list[bytes] = []
    encoder = Encoder(EncoderOptions(**options), messages.append)
    encoder.start(sync)
    encoder.retire(items)
    encoder.stop(Evcode.DEBUG_MODE, next_pc)
    return messages


def blocks(image: Image, pcs: Sequence[int]) -> list[Block | IngressTrap]:
    """These executed addresses as a hart reports them."""
    return list(blocks_from_pcs(pcs, image))


def difference(found: Iterable[object], expected: Iterable[object]) -> str:
    """Where two long rows differ first, "" if they do not. (pytest would compare them to the end, which takes ages.)"""
    for i, (one, other) in enumerate(zip_longest(found, expected, fillvalue="nothing")):
        if one != other:
            return f"at {i}: {one!r} in place of {other!r}"
    return ""


def of_kind(history: History, *kinds: EventKind) -> list[Event]:
    """The events of these kinds, in order."""
    return [event for event in history.events if event.kind in kinds]


class Recorder:
    """An encoder that was started, and what it sent. *options*: of `EncoderOptions`."""

    def __init__(self, sync: Sync = Sync.EXIT_FROM_DEBUG, **options: Any) -> None:
        self.raw: list[bytes] = []
        self.options = EncoderOptions(**options)
        self.encoder = Encoder(self.options, self.raw.append)
        self.encoder.start(sync)

    def retire(self, *items: Block | IngressTrap, next_pc: int | None = None) -> None:
        """As the encoder's."""
        self.encoder.retire(items, next_pc)

    def messages(self) -> list[dict[str, int | str]]:
        """What was sent, read."""
        return [read(raw, self.options.src_bits) for raw in self.raw]

    def addresses(self) -> list[int]:
        """F-ADDR and U-ADDR resolved, bit 0 left out, of all messages that have one (8.1)."""
        found, reference = [], 0
        for fields in self.messages():
            if "faddr" in fields or "uaddr" in fields:
                reference = int(fields["faddr"]) if "faddr" in fields else reference ^ int(fields["uaddr"])
                found.append(reference)
        return found
