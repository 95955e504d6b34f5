"""What damage does to a trace: how often wrong instructions are listed, how often nothing says that some are missing.

Run: python -m benchmarks.damage [--count N] [--seed S] [--kind KIND ...] [FORMAT ...]

Traces of programs whose instructions are known are damaged in one place each: one byte is lost, one byte comes twice,
one bit is flipped, or one whole packet is dropped. Of each kind and format N are decoded (default 450), and this is how
many of them have

  same      exactly what ran, whatever is reported
  silent    a list that differs from what ran, and nothing that says so: no gap, no event
  late      instructions that did not run before the first gap
  after     instructions that did not run after a gap: what is listed from one gap to the next must have run in one
            piece, and the pieces in this order
  trap      a trap that nobody took
  rows      the share of what ran that is listed, and right

The programs are those of the reference encoder of N-Trace. What they executed is what its streams say, if the SHA-256
of the list is the one that encoder was published with; our own encoders, with a synchronization every 16 packets, make
the traces of it. Tandem traces are those of real cores, what they say undamaged is held against Spike by the tests.
The E-Trace vectors are traces with traps, contexts and every mode, made by another encoder; they stand beside the
repository (or in RVTRACE_VECTORS), and the line says so where they are missing.
"""

import argparse
import csv
import gzip
import hashlib
import json
import os
import random
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import rvtrace_gdb
from rvtrace_gdb.decode.etrace.decoder import decode as decode_etrace
from rvtrace_gdb.decode.etrace.encapsulation import Encapsulation
from rvtrace_gdb.decode.etrace.encoder.encoder import Encoder as EtraceEncoder
from rvtrace_gdb.decode.etrace.encoder.options import EncoderOptions as EtraceEncoding
from rvtrace_gdb.decode.etrace.encoder.options import SyncMode as EtraceSync
from rvtrace_gdb.decode.etrace.options import Modes, Options, Parameters, SupportLayout
from rvtrace_gdb.decode.executed.encoder_ingress import blocks_from_pcs
from rvtrace_gdb.decode.history.events import EventKind
from rvtrace_gdb.decode.history.history import GAP, Event, History
from rvtrace_gdb.decode.ntrace.decoder import decode as decode_ntrace
from rvtrace_gdb.decode.ntrace.encoder.encoder import Encoder as NtraceEncoder
from rvtrace_gdb.decode.ntrace.messages import Evcode, Sync
from rvtrace_gdb.decode.ntrace.options import EncoderOptions as NtraceEncoding
from rvtrace_gdb.decode.ntrace.options import Options as NtraceOptions
from rvtrace_gdb.decode.ntrace.options import SyncMode as NtraceSync
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.tandem.decoder import decode as decode_tandem
from rvtrace_gdb.decode.tandem.protocol import FLUTE, PICCOLO
from rvtrace_gdb.decode.tandem.protocol import Parameters as TandemParameters

REFERENCE = Path(rvtrace_gdb.__file__).parent.parent / "tests" / "data" / "ntrace-reference"
CORES = REFERENCE.parent / "tandem"
PROGRAMS = ("dhrystone", "median", "mt-matmul", "multiply", "qsort", "rsort", "towers", "vvadd")
OPTIONS = ("o01", "o02", "o06", "o09", "o10", "o12", "o14", "o15")
INSTRUCTIONS = 4000
"""What is traced of a program: so many from its first one on, and so many in the middle."""

_LONGEST_PERIOD = 1 << 19  # packets; more is what the vectors have for none
_MORE = 4096  # rows looked at beyond those that ran
_LOSSES = (EventKind.LOSS, EventKind.OVERFLOW, EventKind.MISMATCH)

Frames = Sequence[tuple[int, int]]


class Stream(NamedTuple):
    """An undamaged trace. *frames*: where its packets are (first byte, byte after); *truth*: what ran."""

    name: str
    data: bytes
    frames: Frames
    truth: list[int]
    decode: Callable[[bytes], History]


# -- damages


def one_byte_lost(rng: random.Random, stream: Stream) -> bytes:
    at = rng.randrange(len(stream.data))
    return stream.data[:at] + stream.data[at + 1 :]


def one_byte_doubled(rng: random.Random, stream: Stream) -> bytes:
    at = rng.randrange(len(stream.data))
    return stream.data[: at + 1] + stream.data[at:]


def one_bit_flipped(rng: random.Random, stream: Stream) -> bytes:
    at = rng.randrange(len(stream.data))
    return stream.data[:at] + bytes((stream.data[at] ^ 1 << rng.randrange(8),)) + stream.data[at + 1 :]


def one_packet_dropped(rng: random.Random, stream: Stream) -> bytes:
    """Not the last: a trace without it is one that ends earlier."""
    start, end = rng.choice(stream.frames[:-1])
    return stream.data[:start] + stream.data[end:]


KINDS: dict[str, Callable[[random.Random, Stream], bytes]] = {
    "lost": one_byte_lost,
    "doubled": one_byte_doubled,
    "flipped": one_bit_flipped,
    "dropped": one_packet_dropped,
}


# -- what came of one


class Outcome(NamedTuple):
    same: bool
    silent: bool
    late: bool
    after: bool
    trap: bool
    right: float


class Looker:
    """Compares histories of one damaged stream with what ran."""

    def __init__(self, stream: Stream) -> None:
        self._truth = stream.truth
        self._bytes = array("Q", stream.truth).tobytes()
        clean = stream.decode(stream.data)
        if list(clean.pcs()) != stream.truth:
            raise SystemExit(f"{stream.name}: the undamaged trace is not decoded to what ran")
        self._clean: dict[tuple[object, ...], list[Event]] = {}
        for event in clean.events:
            self._clean.setdefault((event.kind, event.text), []).append(event)

    def outcome(self, history: History) -> Outcome:
        rows = list(history.pcs(0, len(self._truth) + _MORE))
        events = [event for event in history.events if not self._is_clean(event)]
        said = [event.position for event in events if event.kind in (*_LOSSES, EventKind.NOTE)]
        noticed = bool(said) or history.gaps > 0
        trap = any(event.kind is EventKind.TRAP for event in events)
        if rows == self._truth:
            return Outcome(True, False, False, False, trap, 1)
        first, pieces = self._pieces(rows, said)
        common = self._common(first)
        wrong, right = self._aligned(pieces)
        late = noticed and common < len(first)
        return Outcome(False, not noticed, late, noticed and wrong, trap, min(1, (common + right) / len(self._truth)))

    def _is_clean(self, event: Event) -> bool:
        """Whether the undamaged trace has it, too: its addresses may be unknown here, its place another."""
        addresses = {event.last_pc, event.next_pc} - {None}
        return any(addresses <= {one.last_pc, one.next_pc} for one in self._clean.get((event.kind, event.text), ()))

    def _pieces(self, rows: list[int], said: list[int]) -> tuple[list[int], list[list[int]]]:
        """What is listed before the first gap, and from each to the next. A gap at the start takes no row."""
        pieces: list[list[int]] = [[]]
        for pc in rows:
            if pc == GAP:
                pieces.append([])
            else:
                pieces[-1].append(pc)
        if said and said[0] == 0:
            return [], pieces
        return pieces[0], pieces[1:]

    def _common(self, rows: list[int]) -> int:
        """How many rows are those that ran first."""
        if rows == self._truth[: len(rows)]:
            return len(rows)
        return next(i for i, pc in enumerate(rows) if i >= len(self._truth) or pc != self._truth[i])

    def _aligned(self, pieces: list[list[int]]) -> tuple[bool, int]:
        """Whether one of *pieces* did not run in one piece after the one before it, and how many rows did.

        Each is taken where it fits first: if there is any way to place all of them in order, this is one. Where the
        first gap is does not count: what is listed before it may be a loop that went on for too long or ended early.
        """
        wrong, right, at = False, 0, 0
        for piece in pieces:
            length, found = len(piece), self._find(piece, at)
            if found < 0:
                wrong = True
                right += self._longest(piece, at)
                continue
            right += length
            at = found + length
        return wrong, right

    def _longest(self, piece: list[int], at: int) -> int:
        """How many of the first rows of *piece* ran one after the other at *at* or later."""
        low, high = 0, len(piece)
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self._find(piece[:middle], at) >= 0 else (low, middle - 1)
        return low

    def _find(self, piece: list[int], at: int) -> int:
        """Where *piece* is in what ran, at *at* or later; -1 for nowhere."""
        wanted, start = array("Q", piece).tobytes(), at * 8
        while (found := self._bytes.find(wanted, start)) % 8 and found >= 0:
            start = found + 1
        return found // 8 if found >= 0 else -1


# -- streams


class Executed(NamedTuple):
    """A part of what a program executed. *next_pc*: where it went on."""

    name: str
    image: Image
    pcs: list[int]
    next_pc: int


def executed() -> Iterator[Executed]:
    """The programs of the reference encoder, in two parts each.

    What they executed must have the SHA-256 that was published with them.
    """
    with open(REFERENCE / "golden.tsv", encoding="ascii") as file:
        golden = {row[0]: row[5] for row in csv.reader(file, delimiter="\t")}
    for program in PROGRAMS:
        image = Image.from_elf(REFERENCE / f"{program}.elf")
        pcs = list(decode_ntrace((REFERENCE / f"{program}.1.nex").read_bytes(), image, NtraceOptions()).pcs())
        if hashlib.sha256("".join(f"0x{pc:X}\n" for pc in pcs).encode()).hexdigest() != golden[program]:
            raise SystemExit(f"{program}: the reference stream is not decoded to what was published with it")
        for name, first in ((program, 0), (f"{program} middle", len(pcs) // 2)):
            last = first + INSTRUCTIONS
            yield Executed(name, image, pcs[first:last], pcs[last])


def of_etrace() -> Iterable[Stream]:
    encoding = EtraceEncoding(Parameters(iaddress_width=64), sync_mode=EtraceSync.PACKETS)
    options = replace(encoding.decoder, sync_packets=encoding.period)
    for program in executed():
        packets: list[bytes] = []
        encoder = EtraceEncoder(encoding, packets.append)
        encoder.start()
        encoder.retire(list(blocks_from_pcs(program.pcs, program.image)))
        encoder.stop(program.next_pc)
        framed = [bytes((len(packet),)) + packet for packet in packets]
        yield _etrace(program.name, framed, program.pcs, program.image, options)


def _etrace(name: str, packets: list[bytes], pcs: list[int], image: Image, options: Options) -> Stream:
    def decoded(data: bytes) -> History:
        return decode_etrace(data, image, options, Encapsulation())

    return Stream(name, b"".join(packets), _frames(packets), pcs, decoded)


def of_etrace_vectors() -> Iterable[Stream]:
    beside = Path(rvtrace_gdb.__file__).parent.parent.parent / "shared" / "vectors"
    root = Path(os.environ.get("RVTRACE_VECTORS") or beside) / "etrace"
    for program in ("br_j_asm", "pmp", "torture64", "towers"):
        for option in OPTIONS:
            for path in root.glob(f"{program}/{option}_*.json"):
                yield _vector(path)


def _vector(path: Path) -> Stream:
    what = json.loads(path.read_text())
    given = {name.removesuffix("_p"): value for name, value in what["params"].items()}
    given["context_width"] *= not given["nocontext"]
    given["time_width"] *= not given["notime"]
    known = {name: given[name] for name in given.keys() & vars(Parameters()).keys()}
    modes = what["options"]
    known |= {"iret_ext": bool(modes["ir_ext"]), "ecall_retires": bool(modes["ecall_retires"])}
    switched = {name: bool(modes[name]) for name in ("full_address", "sijump", "implicit_return")}
    switched |= {"branch_prediction": bool(modes["branch_pred"]), "jump_target_cache": bool(modes["jtc"])}
    layout = {"ref": SupportLayout.REFERENCE, "std08": SupportLayout.STANDARD}[modes["support"]]
    folder = path.parent
    elf = folder / what["elf"][0]
    image = Image.from_elf(elf if elf.exists() else folder.parent / "reference" / "common" / what["elf"][0])
    image.add_code(0x1000, bytes.fromhex(what["bootrom"].rpartition(" = ")[2]))
    pcs = [int(line, 16) for line in gzip.decompress((folder / what["pcs_file"]).read_bytes()).split()]
    packets, raw, at = [], path.with_suffix(".te_inst_raw").read_bytes(), 0
    while at < len(raw):
        size = raw[at] & 31
        packets.append(bytes((size,)) + raw[at + 1 : at + 1 + size])
        at += 1 + size
    period = modes["resync"] if modes["resync"] <= _LONGEST_PERIOD else 0
    options = Options(Parameters(**known), Modes(**switched), support=layout, sync_packets=period)
    return _etrace(path.stem, packets, pcs, image, options)


def of_ntrace(*, btm: bool) -> Iterable[Stream]:
    for program in executed():
        messages: list[bytes] = []
        encoder = NtraceEncoder(NtraceEncoding(btm=btm, sync_mode=NtraceSync.MESSAGES), messages.append)
        encoder.start(Sync.EXIT_FROM_DEBUG)
        encoder.retire(list(blocks_from_pcs(program.pcs, program.image)))
        encoder.stop(Evcode.DEBUG_MODE, program.next_pc)
        decoded = partial(decode_ntrace, program=program.image, options=NtraceOptions(btm=btm, sync_period=16))
        yield Stream(program.name, b"".join(messages), _frames(messages), program.pcs, decoded)


def of_tandem() -> Iterable[Stream]:
    for path in sorted(CORES.glob("*.tvt")):
        core, _, elf = path.stem.partition("_")
        if path.stat().st_size > 20_000 or "truncated" in elf:
            continue
        parameters = (
            TandemParameters(64, 64, dialect=FLUTE) if core == "flute" else TandemParameters(32, 64, dialect=PICCOLO)
        )
        yield _tandem(path, Image.from_elf(CORES.parent / "riscv-tests" / elf), parameters)


def _tandem(path: Path, image: Image, parameters: TandemParameters) -> Stream:
    def decoded(data: bytes) -> History:
        return decode_tandem(data, image, parameters).history

    data = path.read_bytes()
    whole = decode_tandem(data, image, parameters)
    frames = [(group.offset, group.offset + group.size) for group in whole.trace.groups()]
    return Stream(path.stem, data, frames, list(whole.history.pcs()), decoded)


def _frames(packets: Iterable[bytes]) -> Frames:
    found, at = [], 0
    for packet in packets:
        found.append((at, at + len(packet)))
        at += len(packet)
    return found


FORMATS: dict[str, Callable[[], Iterable[Stream]]] = {
    "etrace": of_etrace,
    "etrace-vectors": of_etrace_vectors,
    "htm": partial(of_ntrace, btm=False),
    "btm": partial(of_ntrace, btm=True),
    "tandem": of_tandem,
}


# -- figures


def main() -> None:
    asked = argparse.ArgumentParser(description="What damage does to a trace.")
    asked.add_argument("formats", nargs="*", metavar="FORMAT", help=f"of {', '.join(FORMATS)}; all without any")
    asked.add_argument("--count", type=int, default=450, help="damages of each kind (default 450)")
    asked.add_argument("--seed", type=int, default=1)
    asked.add_argument("--kind", action="append", choices=KINDS, help="of damage; all without any")
    asked.add_argument("--show", action="store_true", help="name each trace with wrong instructions after a gap")
    given = asked.parse_args()
    if unknown := [name for name in given.formats if name not in FORMATS]:
        asked.error(f"there is no format {unknown[0]}: there are {', '.join(FORMATS)}")
    print(f"{given.count} damages each, seed {given.seed}")
    print(f"{'format':16}{'damage':9}{'same':>7}{'silent':>8}{'late':>7}{'after':>7}{'trap':>7}{'rows right':>12}")
    for name in given.formats or FORMATS:
        streams = list(FORMATS[name]())
        if not streams:
            print(f"{name:16}not measured: the vectors are missing beside the repository (or set RVTRACE_VECTORS)")
            continue
        lookers = [Looker(stream) for stream in streams]
        for kind in given.kind or KINDS:
            measure(name, kind, streams, lookers, given.count, given.seed, show=given.show)


def measure(
    name: str, kind: str, streams: list[Stream], lookers: list[Looker], count: int, seed: int, *, show: bool
) -> None:
    """Prints a line: each kind and format has damages of its own, whatever else is asked for."""
    rng = random.Random(f"{seed} {name} {kind}")
    found = []
    for number in range(count):
        stream, looker = streams[number % len(streams)], lookers[number % len(streams)]
        data = KINDS[kind](rng, stream)
        outcome = looker.outcome(stream.decode(data))
        found.append(outcome)
        if show and outcome.after:
            place = next((i for i, (a, b) in enumerate(zip(data, stream.data, strict=False)) if a != b), len(data))
            print(f"    {stream.name}, {kind} at byte {place:#x} of {len(data):#x}")
    sums = [sum(column) for column in zip(*found, strict=True)]
    cells = "".join(f"{number:{width}}" for number, width in zip(sums, (7, 8, 7, 7, 7), strict=False))
    print(f"{name:16}{kind:9}{cells}{sums[-1] / count:12.2%}", flush=True)


if __name__ == "__main__":
    main()
