"""The undamaged traces: how they are decoded and checked, and what their encoder makes of a history.

The programs are those of the reference encoder of N-Trace. What they executed is what its streams say, if the SHA-256
of the list is the one that encoder was published with; our own encoders, with a synchronization every 16 packets, make
the traces of it. Tandem traces are those of real cores, what they say undamaged is held against Spike by the tests.
The E-Trace vectors are traces with traps, contexts and every mode, made by another encoder; they stand beside the
repository (or in RVTRACE_VECTORS).
"""

import csv
import gzip
import hashlib
import json
import os
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import rvtrace_gdb
from benchmarks.decoding.damaged import again
from rvtrace_gdb.decode.check.etrace import StreamChecker as EtraceChecker
from rvtrace_gdb.decode.check.ntrace import StreamChecker as NtraceChecker
from rvtrace_gdb.decode.check.verdict import Verdict
from rvtrace_gdb.decode.etrace.decoder import decode as decode_etrace
from rvtrace_gdb.decode.etrace.encapsulation import Encapsulation
from rvtrace_gdb.decode.etrace.encoder.options import EncoderOptions as EtraceEncoding
from rvtrace_gdb.decode.etrace.encoder.options import ResyncMode as EtraceSync
from rvtrace_gdb.decode.etrace.options import Modes, Options, Parameters, SupportLayout
from rvtrace_gdb.decode.executed.encoder_ingress import blocks_from_pcs
from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.decode.ntrace.decoder import decode as decode_ntrace
from rvtrace_gdb.decode.ntrace.options import EncoderOptions as NtraceEncoding
from rvtrace_gdb.decode.ntrace.options import InstSyncMode as NtraceSync
from rvtrace_gdb.decode.ntrace.options import Options as NtraceOptions
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.tandem.decoder import decode as decode_tandem
from rvtrace_gdb.decode.tandem.protocol import FLUTE, PICCOLO, TandemParameters

REFERENCE = Path(rvtrace_gdb.__file__).parent.parent / "tests" / "data" / "ntrace-reference"
CORES = REFERENCE.parent / "tandem"
PROGRAMS = ("dhrystone", "median", "mt-matmul", "multiply", "qsort", "rsort", "towers", "vvadd")
OPTIONS = ("o01", "o02", "o06", "o09", "o10", "o12", "o14", "o15")
INSTRUCTIONS = 4000
"""What is traced of a program: so many from its first one on, and so many in the middle."""

_LONGEST_PERIOD = 1 << 19  # packets; more is what the vectors have for none

Frames = Sequence[tuple[int, int]]
Extreme = Callable[[random.Random, bytes], bytes | None]


class Stream(NamedTuple):
    """An undamaged trace.

    frames  where its packets are (first byte, byte after)
    truth   what ran
    check   what the check says of a damaged trace, by source
    legal   whether an encoder sends these bytes for this history
    extreme a packet with one field at its extreme
    other   the packets of another trace of the same program
    """

    name: str
    data: bytes
    frames: Frames
    truth: list[int]
    decode: Callable[[bytes], History]
    check: Callable[[bytes], Mapping[int, Verdict]] | None = None
    legal: Callable[[bytes, History], bool] | None = None
    extreme: Extreme = lambda rng, packet: None
    other: Sequence[bytes] = ()

    @property
    def packets(self) -> list[bytes]:
        """The packets, with what the transport adds."""
        return [self.data[start:end] for start, end in self.frames]


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


def with_others(streams: Iterable[Stream]) -> list[Stream]:
    """The streams, each with the packets of the other one of its pair."""
    listed = list(streams)
    others = [i ^ 1 if i ^ 1 < len(listed) else i - 1 for i in range(len(listed))]
    return [stream._replace(other=listed[i].packets) for stream, i in zip(listed, others, strict=True)]


def of_etrace() -> Iterable[Stream]:
    encoding = EtraceEncoding(Parameters(iaddress_width=64), sync_mode=EtraceSync.PACKETS)
    options = replace(encoding.decoder, sync_packets=encoding.period)
    streams = []
    for program in executed():
        packets = again.etrace_packets(list(blocks_from_pcs(program.pcs, program.image)), encoding, program.next_pc)
        framed = [bytes((len(packet),)) + packet for packet in packets]
        streams.append(_etrace(program.name, framed, program.pcs, program.image, options, encoding))
    return with_others(streams)


def _etrace(
    name: str, packets: list[bytes], pcs: list[int], image: Image, options: Options, encoding: EtraceEncoding
) -> Stream:
    def decoded(data: bytes) -> History:
        return decode_etrace(data, image, options, Encapsulation())

    def checked(data: bytes) -> Mapping[int, Verdict]:
        checker = EtraceChecker(image, options, Encapsulation(), split=False)
        checker.feed(data)
        return checker.verdicts()

    return Stream(
        name, b"".join(packets), _frames(packets), pcs, decoded, checked,
        partial(again.is_legal_etrace, image=image, encoding=encoding), partial(again.extreme_etrace, options),
    )  # fmt: skip


def of_etrace_vectors() -> Iterable[Stream]:
    beside = Path(rvtrace_gdb.__file__).parent.parent.parent / "shared" / "vectors"
    root = Path(os.environ.get("RVTRACE_VECTORS") or beside) / "etrace"
    streams = [
        _vector(path)
        for program in ("br_j_asm", "pmp", "torture64", "towers")
        for option in OPTIONS
        for path in root.glob(f"{program}/{option}_*.json")
    ]
    return with_others(streams)


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
    encoding = EtraceEncoding(
        options.parameters, options.modes, support=layout, compress=bool(modes["compress"]),
        sync_mode=EtraceSync.PACKETS if period else EtraceSync.OFF, sync_max=period.bit_length() - 5 if period else 0,
    )  # fmt: skip
    return _etrace(path.stem, packets, pcs, image, options, encoding)


def of_ntrace(*, btm: bool) -> Iterable[Stream]:
    encoding = NtraceEncoding(btm=btm, sync_mode=NtraceSync.MESSAGES)
    options = NtraceOptions(btm=btm, sync_period=16)
    streams = []
    for program in executed():
        image = program.image

        def checked(data: bytes, image: Image = image) -> Mapping[int, Verdict]:
            checker = NtraceChecker(image, options)
            checker.feed(data)
            return checker.verdicts()

        messages = again.ntrace_messages(list(blocks_from_pcs(program.pcs, image)), encoding, program.next_pc)
        decoded = partial(decode_ntrace, program=image, options=options)
        legal = partial(again.is_legal_ntrace, image=image, encoding=encoding)
        streams.append(
            Stream(
                program.name, b"".join(messages), _frames(messages), program.pcs, decoded, checked, legal,
                partial(again.extreme_ntrace, encoding),
            )
        )  # fmt: skip
    return with_others(streams)


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
