"""The E-Trace vectors through the decoder: every option of 8 programs, the official encoder model's streams, every
transport, Espressif's rings, and captures of real RTL. What ran comes from Spike; for the last, from other decoders.
"""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from rvtrace_gdb.decode.etrace.decoder import decode
from rvtrace_gdb.decode.etrace.dialects import DEFAULTS
from rvtrace_gdb.decode.etrace.encapsulation import Encapsulation
from rvtrace_gdb.decode.etrace.options import Dialect, Modes, Options, Parameters, SupportLayout
from rvtrace_gdb.decode.history.events import GAP_KINDS, EventKind
from rvtrace_gdb.decode.history.history import GAP, History
from rvtrace_gdb.decode.program.image import Image
from tests.decode.etrace.encapsulation.test_vectors import TRANSPORTS
from tests.decode.etrace.encoder_vectors import BOOT, packets
from tests.decode.etrace.naive_decoder import NaiveDecoder
from tests.decode.etrace.vectors import (
    OPTIONS,
    PROGRAMS,
    ROOT,
    expected,
    fingerprint,
    framed,
    image,
    listed,
    official,
    options,
    parameters_in,
    vector,
)
from tests.helpers.amounts import crossed

TROUBLES = GAP_KINDS - {EventKind.TRACE_OFF}
AMBIGUOUS = ("torture64", "o05")
"""The document's decoder, which takes the first return that fits irdepth, goes wrong here (issue 254); see
`test_etrace_examples_modes` for what is not decided at all.
"""
BOOT_ROM = bytes.fromhex("9702000093850202732540f183b2820167800200")


def check_exact(history: History, count: int, sha256: str, size: int) -> None:
    """All of it, and nothing to complain about."""
    assert history.instructions == len(history) == count
    assert fingerprint(history.pcs()) == sha256
    assert history.accounting == (size, size, 0, 0)
    assert not [event for event in history.events if event.kind in TROUBLES]


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_decodes_exactly(program: str, option: str) -> None:
    found = vector(program, option)
    data = framed(found.packets)
    history = decode(data, image(program), options(found), Encapsulation())
    check_exact(history, found.what["instructions"], found.what["pcs_sha256"], len(data))


@pytest.mark.parametrize(("program", "option"), sorted({*crossed(PROGRAMS, OPTIONS), AMBIGUOUS}))
def test_the_naive_decoder_agrees(program: str, option: str) -> None:
    """It is held against the decoder on what no simulator ran (`test_etrace_properties`), so it must be right here."""
    found = vector(program, option)
    pcs = NaiveDecoder(image(program), options(found)).decode(found.packets)
    assert (pcs == expected(program, option)) is ((program, option) != AMBIGUOUS)


@pytest.mark.parametrize("option", ["o01", "o06", "o10"])
@pytest.mark.parametrize("program", ["br_j_asm", "torture64"])
def test_traps(program: str, option: str) -> None:
    """Each at its place, with cause, handler, and where it hit, which a jump to nowhere makes an address without code.

    Where an interrupt hit is undefined after a jump whose target only the trace has, although these streams have it.
    ecall and ebreak are retired in these streams: the path to their trap ends at them.
    """
    found, code = vector(program, option), image(program)
    history = decode(framed(found.packets), code, options(found), Encapsulation())
    rows = [line.split(",") for line in (ROOT / program / "events.csv").read_text().splitlines()[1:]]
    traps = [event for event in history.events if event.kind is EventKind.TRAP]
    extra, places = 0, []
    for row in rows:  # which count without ecall and ebreak
        extra += row[1] == "exception" and row[3] in ("3", "8", "9", "11")
        places.append(int(row[0]) + extra)
    assert [event.position for event in traps] == places
    for event, (_, kind, epc, cause, _, _, handler) in zip(traps, rows, strict=True):
        assert event.text.startswith(f"{kind} {cause}"), event
        assert event.next_pc == int(handler, 16)
        jumped = code.instruction(history.pc(event.position - 1)).is_uninferable
        assert event.last_pc == int(epc, 16) or (event.last_pc is None and kind == "interrupt" and jumped)


@pytest.mark.parametrize("folder", official(), ids=lambda folder: f"{folder.parent.name}-{folder.name}")
def test_the_official_model(folder: Path) -> None:
    """Streams of encoder_model.py; itype3_debug has full addresses. The boot ROM is the simulator's."""
    program = Image.from_elf(ROOT / "reference" / "common" / f"{folder.name}.riscv")
    program.add_code(BOOT, BOOT_ROM)
    modes = Modes(full_address="debug" in folder.parent.name)
    told = Options(parameters_in(folder / "hw.scf"), modes)
    data = (folder / f"{folder.name}.te_inst_raw").read_bytes()
    history = decode(data, program, told, Encapsulation("smi"))
    count, sha256 = (folder / "pcs.count").read_text(), (folder / "pcs.sha256").read_text()
    check_exact(history, int(count), sha256.strip(), len(data))


@pytest.mark.parametrize("name", TRANSPORTS)
def test_every_transport(name: str) -> None:
    """br_j_asm with option o01. In some, null bytes and padding stand between the packets."""
    found = vector("br_j_asm", "o01")
    data = (ROOT / "encap" / f"br_j_asm.{name}.bin").read_bytes()
    history = decode(data, image("br_j_asm"), options(found), TRANSPORTS[name][0])
    assert list(history.pcs()) == expected("br_j_asm", "o01")
    total, decoded, idle, skipped = history.accounting
    assert (total, decoded + idle, skipped) == (len(data), total, 0)


ESP32 = {"pt10": Dialect.PT10, "et20": Dialect.STANDARD}
"""The rings of "et20" hold packets as in the document; what else is known of that generation, `Dialect.ET20` has."""


def esp32(program: str, kind: str) -> History:
    dialect, folder = ESP32[kind], ROOT / "esp32_synth"
    told = {name: value for name, value in DEFAULTS[dialect].items() if name in vars(Parameters())}
    parameters = Parameters(**told) if told else parameters_in(folder / "et20.scf")  # type: ignore[arg-type]
    modes = Modes(full_address=dialect is Dialect.PT10)
    support = SupportLayout.PT10 if dialect is Dialect.PT10 else SupportLayout.REFERENCE
    code = Image.from_elf(folder / f"embench-{program}.riscv")
    code.add_code(BOOT, BOOT_ROM)
    data = (folder / f"embench-{program}.{kind}.bin").read_bytes()
    return decode(data, code, Options(parameters, modes, support=support, dialect=dialect), Encapsulation("esp32"))


@pytest.mark.parametrize("kind", ESP32)
@pytest.mark.parametrize("program", ["crc32", "wikisort"])
def test_esp32_rings(program: str, kind: str) -> None:
    """All 20 000 instructions of the synthetic rings of both generations."""
    history = esp32(program, kind)
    assert list(history.pcs()) == listed(ROOT / "esp32_synth" / f"embench-{program}.pcs")
    assert history.gaps == 0


RTL = {"hello_culsans": "hello_culsans.riscv", "l1_test": "l1.riscv"}


def pieces(history: History) -> Iterator[list[int]]:
    """What ran between the gaps."""
    gaps = [-1, *(i for i, pc in enumerate(history.pcs()) if pc == GAP), len(history)]
    for before, after in pairwise(gaps):
        yield list(history.pcs(before + 1, after))


@pytest.mark.parametrize("capture", RTL)
def test_captures_of_real_rtl(capture: str) -> None:
    """rv_tracer's packets, which deviate from the document in many ways: what the project's own decoder found in them.

    At the end the hart loops in one instruction, which synchronizations report again and again: whether it ran or was
    just told again each time, nobody knows.
    """
    folder = ROOT / "rv_tracer" / capture
    told = {name: value for name, value in DEFAULTS[Dialect.PULP].items() if name in vars(Parameters())}
    parameters = Parameters(**told)  # type: ignore[arg-type]
    told_options = Options(parameters, support=SupportLayout.PULP, dialect=Dialect.PULP)
    code = Image.from_elf(folder / RTL[capture])
    found = decode((folder / "packets.bin").read_bytes(), code, told_options, Encapsulation("pulp"))
    known = listed(folder / "pulp_py.pcs")
    pcs = [pc for piece in pieces(found) for pc in piece]
    assert pcs[: len(known)] == known
    assert {*pcs[len(known) :]} <= {known[-1]}
    encapsulated = Encapsulation(timestamp_bytes=8)
    same = decode((folder / "encap.bin").read_bytes(), code, told_options, encapsulated)
    assert list(same.pcs()) == list(found.pcs())
    rewritten = framed(packets((folder / "normalised.smi").read_bytes()))
    standard = decode(rewritten, code, Options(parameters), Encapsulation())
    assert list(standard.pcs()) == listed(folder / "my.pcs")  # where a synchronization is an execution
