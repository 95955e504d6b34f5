"""The encoder makes the packets of the vectors, byte by byte; where it does not, the document decides, and is named."""

import gzip
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from rvtrace_gdb.decode.etrace.encoder.encoder import Encoder
from rvtrace_gdb.decode.etrace.encoder.options import ContextType, EncoderOptions, ResyncMode
from rvtrace_gdb.decode.etrace.options import Dialect, Modes, Options, Parameters, SupportLayout
from rvtrace_gdb.decode.executed.encoder_ingress import Block, IngressTrap, blocks_from_pcs
from rvtrace_gdb.decode.program.csrs import ProgramContext
from rvtrace_gdb.decode.program.image import Image
from tests.decode.etrace import encoder_vectors as vectors
from tests.decode.etrace.encoder_vectors import PROGRAMS, ROOT, Item, Vector
from tests.decode.etrace.packets import read

OPTIONS = [f"o{number:02}" for number in range(1, 16)]
_ENDS_TAKEN = ("pmp",)
"""Programs whose list of addresses was cut behind a taken branch: only the stream tells its outcome."""
_ECALLS = (3, 8, 9, 11)


def encoded(options: EncoderOptions, items: Sequence[Item], next_pc: int | None = None) -> list[bytes]:
    packets: list[bytes] = []
    encoder = Encoder(options, packets.append)
    encoder.context(ProgramContext(vectors.MACHINE))
    encoder.start()
    encoder.retire(items)
    encoder.stop(next_pc)
    return packets


def clocked(options: EncoderOptions, items: Sequence[Item]) -> list[bytes]:
    """Option o12: with times, and changes of context every 5000 rows, every other one of them imprecise."""
    packets: list[bytes] = []
    encoder = Encoder(options, packets.append)
    number = 0
    for now, item in vectors.rows(items):
        encoder.time(now)
        if isinstance(item, ProgramContext):
            moved = (item.scontext or 0) % 256 != number
            number = (item.scontext or 0) % 256
            encoder.context(item, ContextType.IMPRECISE if moved and number % 2 else ContextType.PRECISE)
            if now == 0:
                encoder.start()
        else:
            encoder.retire([item])
    encoder.stop()
    return packets


def options_of(vector: Vector) -> EncoderOptions:
    period = vector.resync
    return EncoderOptions(
        vector.options.parameters,
        vector.options.modes,
        support=vector.options.support,
        sync_mode=ResyncMode.PACKETS if period else ResyncMode.OFF,
        sync_max=period.bit_length() - 5 if period else 0,
        compress=bool(vector.what["options"]["compress"]),
    )


def packets_of(program: str, option: str) -> tuple[Vector, list[bytes]]:
    vector = vectors.vector(program, option)
    items = vectors.items(program, vector.what["pcs_file"])
    if option == "o12":
        return vector, clocked(options_of(vector), items)
    return vector, encoded(options_of(vector), items[1:], 0 if program in _ENDS_TAKEN else None)


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("program", [name for name in PROGRAMS if name != "torture64"])
def test_streams_of_all_options(program: str, option: str) -> None:
    vector, packets = packets_of(program, option)
    if program in _ENDS_TAKEN and option == "o12":  # `clocked` does not tell the outcome of the last branch
        vector.packets[-2], packets[-2] = b"", b""
    assert packets == vector.packets


@pytest.mark.parametrize("option", OPTIONS)
def test_streams_with_many_traps(option: str) -> None:
    """Where an ecall or ebreak that retires is the target of an uninferable discontinuity, the stream has updiscon 0:
    the reference encoder looks for the exception in the next cycle only. "Format 1 packets", updiscon: 1 if the
    instruction "is also the instruction before an exception (i.e. it will be followed immediately by a format 3)".

    In o05 the stream has no irreport once where the depth is 0. "Format 2 irreport and irdepth": if the address is not
    of the instruction following a return, it "must report the current stack depth or call count unless" there was no
    return since the previous call or a branch since the return, whatever the depth is.
    """
    vector, packets = packets_of("torture64", option)
    found = [read(packet, vector.options.parameters, vector.options.modes) for packet in packets]
    wanted = [read(packet, vector.options.parameters, vector.options.modes) for packet in vector.packets]
    assert len(found) == len(wanted)
    differences = []
    for i, (own, other) in enumerate(zip(found, wanted, strict=True)):
        if packets[i] == vector.packets[i]:
            continue
        names = {name for name in own.keys() | other.keys() if own.get(name) != other.get(name)}
        if names == {"updiscon"}:
            follows = found[i + 1]
            assert own["updiscon"] and follows["thaddr"] and not follows["interrupt"] and follows["ecause"] in _ECALLS
        else:
            assert names == {"irreport", "irdepth"} and own["irdepth"] == 0
        differences.append(names)
    retires = vector.options.parameters.ecall_retires
    assert differences.count({"updiscon"}) == (9 if retires else 0)
    assert differences.count({"irreport", "irdepth"}) == (1 if option == "o05" else 0)


@pytest.mark.parametrize("option", ["o01", "o06", "o07", "o10", "o12"])
def test_batches_do_not_matter(option: str) -> None:
    """What is told item by item makes the same packets as what is told at once."""
    vector = vectors.vector("torture64", option)
    items = vectors.items("torture64")[1:6000]
    options, packets = options_of(vector), list[bytes]()
    encoder = Encoder(options, packets.append)
    encoder.context(ProgramContext(vectors.MACHINE))
    encoder.start()
    for item in items:
        encoder.retire([item])
    encoder.stop()
    assert packets == encoded(options, items)


# -- the official encoder model's


def reference(folder: Path) -> tuple[EncoderOptions, list[bytes]]:
    static, user = _settings(folder / "hw.scf"), _settings(folder / "enc.ucf")
    parameters = Parameters(
        iaddress_width=int(static["iaddress_width_p"]),
        iaddress_lsb=int(static["iaddress_lsb_p"]),
        privilege_width=2,
        ecause_width=int(static["ecause_width_p"]),
        context_width=int(static["context_width_p"]),
    )
    modes = Modes(full_address=user["full-address"] == "true")
    options = EncoderOptions(parameters, modes, sync_mode=ResyncMode.PACKETS, sync_max=int(user["resync-max"]))
    return options, vectors.packets(next(folder.glob("*.te_inst_raw")).read_bytes())


def _settings(path: Path) -> dict[str, str]:
    lines = (line.partition("=") for line in path.read_text().splitlines() if line[:1] not in (";", "#"))
    return {name.strip(): value.strip() for name, equals, value in lines if equals}


def ran(name: str) -> tuple[list[int], Image]:
    common = ROOT / "reference" / "common"
    image = Image.from_elf(common / f"{name}.riscv")
    what = json.loads(next((ROOT / "pmp").glob("o01_*.json")).read_text())
    image.add_code(vectors.BOOT, bytes.fromhex(what["bootrom"].rpartition(" = ")[2]))
    return [int(line, 16) for line in gzip.decompress((common / f"{name}.pcs.gz").read_bytes()).split()], image


STREAMS = ["basic/br_j_asm", "basic/dhrystone", "basic/median", "basic/pmp", "basic/qsort", "basic/towers",
           "basic/vvadd", "debug/dhrystone"]  # fmt: skip


@pytest.mark.parametrize("stream", STREAMS)
def test_streams_of_the_reference_encoder(stream: str) -> None:
    """All is in the list of addresses but causes and values of traps, which are taken from the stream, and the outcome
    of a last branch (dhrystone's was taken). br_j_asm has a trap at the target of an mret, which no list shows: its
    events are known.

    The stream's tvals have 8 bits, for a mistake in the step before that encoder (it reads them with %hhx), not in it.
    """
    name = stream.partition("/")[2]
    options, wanted = reference(ROOT / "reference" / f"itype3_{stream}")
    if name == "br_j_asm":
        items = [*vectors.items(name)[1:]]
    else:
        items = _completed(blocks_from_pcs(*ran(name)), map(_reader(options), wanted))
    assert encoded(options, items, 0 if name == "dhrystone" else None) == wanted


def _completed(items: Iterable[Block | IngressTrap], packets: Iterable[dict[str, Any]]) -> list[Item]:
    """The items, the traps with what the packets say of them, in order."""
    traps = [fields for fields in packets if "ecause" in fields]
    completed: list[Item] = []
    for item in items:
        if isinstance(item, IngressTrap):
            told = traps.pop(0)
            item = item._replace(interrupt=bool(told["interrupt"]), cause=told["ecause"], tval=told.get("tval", 0))
        completed.append(item)
    assert not traps
    return completed


def _reader(options: EncoderOptions) -> Any:
    return lambda packet: read(packet, options.parameters, options.modes)


# -- Espressif's


@pytest.mark.parametrize("name", ["embench-crc32", "embench-wikisort"])
def test_streams_of_a_processor_trace_1(name: str) -> None:
    """The synthetic rings of PT10: anchors of 14 zero bytes, packets with their length (prefix included) and an index
    before them.
    """
    folder = ROOT / "esp32_synth"
    ring, at, wanted = (folder / f"{name}.pt10.bin").read_bytes(), 0, []
    while at < len(ring):
        size = ring[at] & 31
        wanted += [ring[at + 3 : at + size]] if size else []
        at += size or 14
    image = Image.from_elf(folder / f"{name}.riscv")
    image.add_code(vectors.BOOT, bytes.fromhex("9702000093850202732540f183a2820167800200"))
    pcs = [int(line, 16) for line in (folder / f"{name}.pcs").read_text().split()]
    parameters = Parameters(iaddress_width=32, iaddress_lsb=1, privilege_width=1, ecause_width=5)
    options = EncoderOptions(
        parameters,
        Modes(full_address=True),
        dialect=Dialect.PT10,
        support=SupportLayout.PT10,
        sync_mode=ResyncMode.PACKETS,
        sync_max=3,
    )
    assert encoded(options, [*blocks_from_pcs(pcs, image)]) == wanted


def test_what_a_decoder_must_be_told() -> None:
    """`EncoderOptions.decoder` is what the vectors' descriptions say of their streams."""
    vector = vectors.vector("br_j_asm", "o10")
    assert options_of(vector).decoder == Options(
        vector.options.parameters, vector.options.modes, support=SupportLayout.STANDARD, dialect=Dialect.STANDARD
    )
    assert isinstance(vectors.items("br_j_asm")[1], Block)
