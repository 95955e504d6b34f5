"""The streams of the N-Trace reference encoder: decoded exactly, and encoded again byte for byte."""

import csv
import gzip
import hashlib
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from decode.history import EventKind, History
from decode.image import Image
from decode.ingress import Block, Trap, blocks_from_pcs
from decode.ntrace.decoder import Options, decode
from decode.ntrace.encoder import Encoder, EncoderOptions
from decode.ntrace.layout import Evcode, Sync
from decode.ntrace.options import ImplicitReturn

REFERENCE = Path(__file__).parent.parent / "data" / "ntrace-reference"
# How it is built: HIST of 31 branches, sent when it is full; I-CNT far beyond what these programs reach. No traps, no
# synchronization after the start, and CDF=0 for an empty HIST.
AS_REFERENCE = EncoderOptions(
    icnt_limit=1 << 21, hist_limit=32, indirect_without_hist=True, correlation_without_hist=True
)
WITH_CALLS = replace(AS_REFERENCE, implicit_return=ImplicitReturn.FULL_STACK, return_depth=8)
MODES = {
    "0": replace(AS_REFERENCE, btm=True),
    "1": AS_REFERENCE,
    "2": replace(AS_REFERENCE, repeated_history=True),
    "3": WITH_CALLS,
    "4": replace(WITH_CALLS, repeated_history=True),
}
# Of t1 only mode 4 is here; for the others, the project that published it gives the size of its own stream.
T1_SIZES = {"0": 12978, "1": 3393, "2": 2628, "3": 3374, "4": 2604}


def golden() -> list[dict[str, str]]:
    with open(REFERENCE / "golden.tsv", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def streams(*modes: str) -> list[dict[str, str]]:
    return [row for row in golden() if row["mode"] in modes]


@cache
def image(program: str) -> Image:
    return Image.from_elf(REFERENCE / f"{program}.elf")


def decoded(program: str, mode: str) -> History:
    data = (REFERENCE / f"{program}.{mode}.nex").read_bytes()
    return decode(data, image(program), Options(btm=mode == "0", implicit_return=MODES[mode].implicit_return))


@pytest.mark.parametrize("row", streams(*MODES), ids=lambda row: f"{row['program']}-{row['mode']}")
def test_decodes_exactly(row: dict[str, str]) -> None:
    """Modes 0 (BTM), 1 (HTM) and 2 (HTM with repeated history); 3 and 4 are 1 and 2 with implicit returns."""
    history = decoded(row["program"], row["mode"])
    assert history.instructions == len(history) == int(row["instr"])
    lines = b"".join(b"0x%X\n" % pc for pc in history.pcs())
    assert hashlib.sha256(lines).hexdigest() == row["sha256_pclist(NexRv 0x%lX lines)"]
    assert history.accounting == (int(row["bytes"]), int(row["bytes"]), 0, 0)
    assert [event.kind for event in history.events] == [EventKind.SYNC, EventKind.TRACE_OFF]


@cache
def executed(program: str) -> list[Block | Trap]:
    """What the hart retired, from the stream of mode 1; that its addresses are right is `test_decodes_exactly`'s."""
    return list(blocks_from_pcs(decoded(program, "1").pcs(), image(program)))


def encoded(items: list[Block | Trap], mode: str) -> bytes:
    stream = bytearray()
    encoder = Encoder(MODES[mode], stream.extend)
    encoder.start(Sync.EXIT_FROM_RESET)
    encoder.retire(items)
    encoder.stop(Evcode.DEBUG_MODE)
    return bytes(stream)


@pytest.mark.parametrize("row", streams(*MODES), ids=lambda row: f"{row['program']}-{row['mode']}")
def test_encodes_the_same_bytes(row: dict[str, str]) -> None:
    """Every stream, byte for byte."""
    stream = encoded(executed(row["program"]), row["mode"])
    assert len(stream) == int(row["bytes"])
    assert hashlib.sha256(stream).hexdigest() == row["sha256_nex"]


@cache
def t1_pcs() -> list[int]:
    with gzip.open(REFERENCE / "t1.pcs.gz", "rt") as file:
        return [int(line, 16) for line in file]


@pytest.mark.parametrize("mode", MODES)
def test_encodes_the_execution_another_simulator_logged(mode: str) -> None:
    """t1's list comes from the IAR simulator."""
    stream = encoded(list(blocks_from_pcs(t1_pcs(), image("t1"))), mode)
    assert len(stream) == T1_SIZES[mode]
    if mode == "4":
        assert stream == (REFERENCE / "t1.4.nex").read_bytes()


def test_the_instruction_list_of_another_simulator_survives() -> None:
    """t1 goes through our encoder and back."""
    stream = encoded(list(blocks_from_pcs(t1_pcs(), image("t1"))), "1")
    assert list(decode(stream, image("t1"), Options()).pcs()) == t1_pcs()
