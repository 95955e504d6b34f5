"""The streams of the N-Trace reference encoder: decoded exactly, and encoded again byte for byte."""

import csv
import gzip
import hashlib
from functools import cache
from pathlib import Path

import pytest

from decode.history import EventKind, History
from decode.image import Image
from decode.ingress import blocks_from_pcs
from decode.ntrace.decoder import Options, decode
from decode.ntrace.encoder import Encoder, EncoderOptions
from decode.ntrace.layout import Evcode, Sync

REFERENCE = Path(__file__).parent.parent / "data" / "ntrace-reference"
# Its limits: HIST of 32 bits, I-CNT far beyond what these programs reach; see also the notes in `EncoderOptions`.
AS_REFERENCE = EncoderOptions(
    icnt_limit=1 << 21,
    hist_limit=32,
    full_at_once=False,
    indirect_without_hist=True,
    correlation_without_hist=True,
)


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
    return decode(data, image(program), Options(btm=mode == "0"))


@pytest.mark.parametrize("row", streams("0", "1", "2"), ids=lambda row: f"{row['program']}-{row['mode']}")
def test_decodes_exactly(row: dict[str, str]) -> None:
    """Modes 0 (BTM), 1 (HTM) and 2 (HTM with repeated history); 3 and 4 use the implicit return, not decoded yet."""
    history = decoded(row["program"], row["mode"])
    assert history.instructions == len(history) == int(row["instr"])
    lines = b"".join(b"0x%X\n" % pc for pc in history.pcs())
    assert hashlib.sha256(lines).hexdigest() == row["sha256_pclist(NexRv 0x%lX lines)"]
    assert history.accounting == (int(row["bytes"]), int(row["bytes"]), 0, 0)
    assert [event.kind for event in history.events] == [EventKind.SYNC, EventKind.TRACE_OFF]


@pytest.mark.parametrize("row", streams("1"), ids=lambda row: row["program"])
def test_encodes_the_same_bytes(row: dict[str, str]) -> None:
    program = row["program"]
    stream = bytearray()
    encoder = Encoder(AS_REFERENCE, stream.extend)
    encoder.start(Sync.EXIT_FROM_RESET)
    encoder.retire(list(blocks_from_pcs(decoded(program, "1").pcs(), image(program))))
    encoder.stop(Evcode.DEBUG_MODE)
    assert hashlib.sha256(stream).hexdigest() == row["sha256_nex"]


def test_the_instruction_list_of_another_simulator_survives() -> None:
    """t1 has no stream in these modes: its list, made by the IAR simulator, goes through our encoder and back.

    The project that published it gives the size of its own stream in mode 1: 3393 bytes.
    """
    with gzip.open(REFERENCE / "t1.pcs.gz", "rt") as file:
        pcs = [int(line, 16) for line in file]
    stream = bytearray()
    encoder = Encoder(AS_REFERENCE, stream.extend)
    encoder.start(Sync.EXIT_FROM_RESET)
    encoder.retire(list(blocks_from_pcs(pcs, image("t1"))))
    encoder.stop(Evcode.DEBUG_MODE)
    history = decode(bytes(stream), image("t1"), Options())
    assert list(history.pcs()) == pcs
    assert len(stream) == 3393
