"""The streams of the N-Trace reference encoder: decoded exactly, and encoded again byte for byte."""

import csv
import gzip
import hashlib
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from rvtrace_gdb.decode.executed.encoder_ingress import Block, IngressTrap, blocks_from_pcs
from rvtrace_gdb.decode.history.events import EventKind
from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.decode.ntrace.decoder import decode
from rvtrace_gdb.decode.ntrace.encoder.encoder import Encoder
from rvtrace_gdb.decode.ntrace.messages import Evcode, Sync
from rvtrace_gdb.decode.ntrace.options import EncoderOptions, ImplicitReturn, Options
from rvtrace_gdb.decode.program.image import Image
from tests.decode import assembler as asm
from tests.decode.ntrace.messages import difference

REFERENCE = Path(__file__).parents[2] / "data" / "ntrace-reference"
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
def executed(program: str) -> list[Block | IngressTrap]:
    """What the hart retired, from the stream of mode 1; that its addresses are right is `test_decodes_exactly`'s."""
    return list(blocks_from_pcs(decoded(program, "1").pcs(), image(program)))


def encoded(items: list[Block | IngressTrap], mode: str) -> bytes:
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


# What the C reference encoder (tg-nexus-trace e0f02c6, -cs 8 -rpt 2) made of executions of LONG. Only a jump or the end
# sends its I-CNT, of 23 and 23 bits, 25 and 24, 26 and 17. Its own decoder reads them back.
LONG = Image(32)
LONG.add_code(
    0x1000, asm.NOP * 100 + asm.c_beqz(4) + asm.C_NOP + asm.jal(0x2000 - 0x1194, 1) + asm.beq(0x1000 - 0x1198)
)
LONG.add_code(0x119C, asm.c_jr(6))
LONG.add_code(0x2000, asm.NOP + asm.c_jr(1))
LONG.add_code(0x3000, asm.NOP * 100 + asm.beq(-400) + asm.C_NOP * 2)
LONG_RUNS = {
    "240500836cc8fcfcfcfcfd285370108078fd000005f87f6cc8fcfcfcfcfd1833844008987c49f807": (20_000, 24_000),
    "240500836cc8fcfcfcfcfdb86807701040a47411000005f8fc1f6cc8fcfcfcfcfd488f84408824f0d51b": (90_000, 70_000),
    "240500836cc8fcfcfcfcfd9c240f701000c4e825000005f80f6cc8fcfcfcfcfd2b8440984441f8fcfc1f": (200_000, 330),
}


@pytest.mark.parametrize("stream", LONG_RUNS)
def test_an_instruction_count_beyond_the_chapters_maximum(stream: str) -> None:
    """So many rounds of a loop with a call, a jump, so many of another loop, and two instructions."""
    first, second = LONG_RUNS[stream]
    history = decode(bytes.fromhex(stream), LONG, Options(implicit_return=ImplicitReturn.FULL_STACK))
    one = [*range(0x1000, 0x1190, 4), 0x1190, 0x1194, 0x2000, 0x2004, 0x1198]
    other = [*range(0x3000, 0x3194, 4)]
    assert history.instructions == len(history) == len(one) * first + 1 + len(other) * second + 2
    rounds = len(one) * (first - 2)
    assert list(history.pcs(rounds, rounds + 2 * len(one) + 1 + len(other))) == [*one, *one, 0x119C, *other]
    assert list(history.pcs(len(history) - len(other) - 2)) == [*other, 0x3194, 0x3196]
    assert [event.kind for event in history.events] == [EventKind.SYNC, EventKind.TRACE_OFF]


def test_a_repetition_count_no_encoder_sends() -> None:
    """A stream of ours with one byte changed: HREPEAT of 26 bits. 5,995 instructions stand before it, and no more."""
    data = bytes.fromhex(
        "24150000000000076cc4fcfcfc7cdb6cc4fcfcfcfcff6cc4fcfc7cfcff6cc8fcfcfcfcfd836cc4fc7cf8fcff6cc8fcfcfcfc"
        "fd8450f878091f"
    )
    history = decode(data, image("qsort"), Options(implicit_return=ImplicitReturn.FULL_STACK))
    before = decode(data[:0x2C], image("qsort"), Options(implicit_return=ImplicitReturn.FULL_STACK))
    assert history.instructions == before.instructions
    assert not difference(history.pcs(0, len(before)), before.pcs())
    assert (history.events[-1].kind, history.events[-1].offset) == (EventKind.LOSS, 0x2C)
