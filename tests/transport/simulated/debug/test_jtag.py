"""The TAP controller and the DTM, against IEEE 1149.1 and the tables of Debug Specification 1.0, chapter 6.1."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rvtrace_gdb.transport.simulated.debug.jtag import DtmRegisters, Tap, TapPins
from tests.transport.simulated.debug.dmi import JtagProbe


class Registers:
    """A DMI with nothing behind it but memory."""

    def __init__(self) -> None:
        self.values: dict[int, int] = {}
        self.log: list[tuple[str, int]] = []

    def read(self, address: int) -> int:
        self.log.append(("read", address))
        return self.values.get(address, 0)

    def write(self, address: int, value: int) -> None:
        self.log.append(("write", address))
        self.values[address] = value


def probe(registers: Registers | None = None, *, fast: bool = True, has_errinfo: bool = True) -> JtagProbe:
    return JtagProbe(TapPins(Tap(DtmRegisters(registers or Registers(), has_errinfo=has_errinfo)), fast=fast))


@pytest.mark.parametrize("ir", [0x00, 0x02, 0x12, 0x1F])
def test_bypass_is_one_bit_that_captures_zero(ir: int) -> None:
    p = probe()
    p.reset()
    p.ir(ir)
    assert p.dr(0b1011, 4) == 0b0110


@pytest.mark.parametrize(("has_errinfo", "errinfo"), [(True, 4), (False, 0)])
def test_dtmcs_fields(has_errinfo: bool, errinfo: int) -> None:
    p = probe(has_errinfo=has_errinfo)
    p.reset()
    p.ir(0x10)
    dtmcs = p.dr(0, 32)
    assert dtmcs & 0xF == 1, "version"
    assert dtmcs >> 4 & 0x3F == 7, "abits"
    assert dtmcs >> 10 & 3 == 0, "dmistat"
    assert dtmcs >> 18 & 7 == errinfo


def test_dmi_nop_does_nothing_and_keeps_the_result() -> None:
    registers = Registers()
    registers.values[5] = 0x1234
    p = probe(registers)
    p.reset()
    p.ir(0x11)
    p.dr(5 << 34 | 1, 41)
    first, second = p.dr(0, 41), p.dr(0, 41)
    assert first == second == 5 << 34 | 0x1234 << 2
    assert registers.log == [("read", 5)]


def test_srst_is_reported_once_per_change() -> None:
    levels: list[bool] = []
    pins = TapPins(Tap(DtmRegisters(Registers())), levels.append)
    pins.feed(b"rssur")
    assert levels == [True, False]


def test_characters_after_quit_are_not_looked_at() -> None:
    pins = TapPins(Tap(DtmRegisters(Registers())))
    assert pins.feed(b"RQRRR") == b"0"
    assert pins.quit


def transcript(seed: int) -> bytes:
    """Characters of many scans, with pauses, unsampled scans and instruction scans in between, and noise."""
    rng = random.Random(seed)
    p = probe()
    p.reset()
    for _ in range(12):
        match rng.randrange(6):
            case 0:
                p.ir(rng.choice((0x01, 0x10, 0x11, 0x1F)))
            case 1:
                p.dr(rng.getrandbits(41) & ~3 | rng.randrange(3), 41)
            case 2:
                p.dr(rng.getrandbits(70), rng.randrange(1, 70))
            case 3:  # a scan whose TDO nobody samples, left through Pause and entered again
                p.tms("100")
                p.send(b"".join(rng.choice((b"04", b"15")) for _ in range(rng.randrange(1, 50))))
                p.tms("1010")
                p.scan(rng.getrandbits(8), 8)
            case 4:
                p.tms("".join(rng.choice("01") for _ in range(rng.randrange(1, 12))) + "111110")
            case 5:
                p.send(bytes(rng.choice(b"01234567RBbrx") for _ in range(rng.randrange(1, 30))))
    return p.sent


@given(st.integers(0, 2**32), st.lists(st.integers(1, 200), min_size=1, max_size=20))
def test_any_chunking_gives_the_same_replies_and_accesses(seed: int, sizes: list[int]) -> None:
    characters = transcript(seed)
    plain, whole, chunked = Registers(), Registers(), Registers()
    expected = TapPins(Tap(DtmRegisters(plain)), fast=False).feed(characters)
    assert TapPins(Tap(DtmRegisters(whole))).feed(characters) == expected
    pins = TapPins(Tap(DtmRegisters(chunked)))
    replies, at, turn = b"", 0, 0
    while at < len(characters):
        size = sizes[turn % len(sizes)]
        replies += pins.feed(characters[at : at + size])
        at, turn = at + size, turn + 1
    assert replies == expected
    assert plain.log == whole.log == chunked.log
    assert plain.values == whole.values == chunked.values


@given(st.binary(max_size=400))
def test_any_bytes_are_read_alike_by_both_paths(data: bytes) -> None:
    slow, fast = Registers(), Registers()
    characters = data.translate(bytes(b"0123456704152637R"[n % 17] if n < 250 else n for n in range(256)))
    assert TapPins(Tap(DtmRegisters(slow)), fast=False).feed(characters) == TapPins(Tap(DtmRegisters(fast))).feed(
        characters
    )
    assert slow.log == fast.log
