"""`rvtrace sim --target`, --devices, --stream, --filters and the side door: what is built, written and refused."""

import re
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from rvtrace_gdb.console.commands.sim import target
from rvtrace_gdb.console.commands.sim.target import Streams
from rvtrace_gdb.console.main import main
from rvtrace_gdb.decode.ntrace.options import SIFIVE
from rvtrace_gdb.decode.reconstruction.facts import MemoryKind, MemoryRange
from rvtrace_gdb.session.description.file import load, parse
from rvtrace_gdb.session.description.library.shipped import shipped, targets
from rvtrace_gdb.session.description.model import Description, OpenOcdDescription
from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.transport.simulated.machine import build
from rvtrace_gdb.transport.simulated.server import Backdoor, listen_unix
from rvtrace_gdb.transport.simulated.wiring import EncoderPart, Wiring
from tests.helpers.cross_compiler import HOME
from tests.transport.simulated.chips import SMALL, Chip, encoder, smem
from tests.transport.simulated.devices.test_component import ACTIVE, CONTROL, OVERFLOW
from tests.transport.simulated.harts import compiled
from tests.transport.simulated.nexus import ERROR, messages
from tests.transport.simulated.sim_command.test_command import arguments, refused, started, until

EXAMPLES = HOME / "examples" / "targets"
CLUSTERS, P550 = EXAMPLES / "two-clusters.toml", shipped("hifive-premier-p550").path
DESCRIBED = [CLUSTERS, *(target.path for target in targets())]
BOARD = """
[[component]]
name = "encoder0"
type = "encoder"
base = 0x20000000
to = ["pib0", "ram0"]

[[component]]
name = "pib0"
type = "pib_sink"
base = 0x20001000

[[component]]
name = "ram0"
type = "ram_sink"
base = 0x20002000
mode = "SMEM"
start = 0x30000000
size = 0x20000
"""
PARALLEL_4 = 10 << 4  # trPibMode


@pytest.fixture(scope="module")
def elf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("target"))


@pytest.fixture
def cleanup() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def wired(cleanup: ExitStack, *words: str) -> Wiring:
    """What the command line has built."""
    request = arguments(*words)
    described = target.loaded(request.components)
    harts = target.harts(request.harts.count, described)
    return target.wiring(request.components, harts, described, SMALL, Streams(cleanup))


def bare(description: Description) -> Description:
    """Without what `rvtrace sim` adds to it."""
    encoders = tuple(replace(encoder, etrace={}) for encoder in description.encoders)
    return replace(description, encoders=encoders, openocd=OpenOcdDescription(), file="", memory=(), usb=None)


@pytest.mark.parametrize("path", DESCRIBED, ids=lambda path: path.parent.name)
def test_the_examples_are_built_as_they_are_described(elf: Path, cleanup: ExitStack, path: Path) -> None:
    """And the description that is written says so, with the port."""
    wiring = wired(cleanup, "--target", str(path))
    described = load(path)
    machine = build(elf, memory_map=SMALL, harts=len(described.encoders) or 1, wiring=wiring)
    written = parse(target.target_description(machine, "x", 7777, described), "")
    assert bare(written) == bare(described)
    assert written.openocd == OpenOcdDescription(tcl_port=7777)
    assert all(encoder.etrace["iaddress_width"] == 64 for encoder in written.encoders if encoder.version)
    for component in described.components:
        if component.kind in ("encoder", "funnel"):
            machine.bus.write(component.base, 4, 1)
            assert machine.bus.read(component.base + 4, 4) & 15 == getattr(component, "version", 1)


def test_a_tracer_takes_the_place_of_a_tandem_port(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    elf = compiled(tmp_path, march="rv32imac_zicsr")
    words = ["--elf", str(elf), "--target", "neorv32", "--unix", str(tmp_path / "s")]
    said = refused(capsys, *words, "--tandem", str(tmp_path / "t"))
    assert "--tandem: the simulated harts have either a TRACER or a tandem port: leave out --tandem" in said
    assert "tracer0: traces one of 2 harts, and the target has 3: give it fewer harts" in refused(
        capsys, *words, "--harts", "3"
    )


@pytest.mark.parametrize("answers", [None, 0x8000_1040])
def test_the_memory_is_described(elf: Path, answers: int | None) -> None:
    """docs/simulated-target.md: the memory map. A host that answers writes anywhere."""
    machine = build(elf, memory_map=SMALL)
    assert machine.hart.htif is not None
    tohost, machine.hart.htif.fromhost = machine.hart.htif.tohost, answers
    written = parse(target.target_description(machine, "x"), "").memory
    assert written[0] == MemoryRange(SMALL.ram, SMALL.ram_size, MemoryKind.RAM, (), answers is not None, "main memory")
    assert [(it.address, it.kind) for it in written[1:]] == [
        (address, MemoryKind.VOLATILE)
        for address in (0x0200_0000, 0x1000_0000, tohost, *(() if answers is None else (answers,)))
    ]
    first = parse(target.target_description(machine, "x"), "")
    assert parse(target.target_description(machine, "x", described=first), "").memory == written


def test_two_clusters_start(tmp_path: Path, elf: Path) -> None:
    target = tmp_path / "rvtrace.toml"
    words = (
        "--target",
        str(CLUSTERS),
        "--port",
        "0",
        "--write-target",
        str(target),
        "--stream",
        f"pib0={tmp_path}/pins",
    )
    with started("--elf", str(elf), *words) as process:
        printed = until(process, "listening on")
        process.terminate()
        process.communicate(timeout=60)
    assert "7 harts RV64IMAFDC: " in printed and f"the trace of pib0 goes to {tmp_path}/pins\n" in printed
    assert "target create sim.cpu6 riscv" in printed
    assert [len(load(target).encoders), len(load(target).funnels)] == [7, 3]
    assert (tmp_path / "pins").read_bytes() == b""


def test_what_a_description_says_of_etrace_is_built(elf: Path, cleanup: ExitStack, tmp_path: Path) -> None:
    board = tmp_path / "board.toml"
    board.write_text(BOARD.replace('"ram0"]\n', '"ram0"]\netrace = {bpred_size = 3, support = "reference"}\n', 1))
    wiring = wired(cleanup, "--target", str(board), "--etrace-option", "cache-size=2")
    machine = build(elf, memory_map=SMALL, wiring=wiring)
    etrace = parse(target.target_description(machine, "x", 1, load(board)), "").encoders[0].etrace
    assert (etrace["bpred_size"], etrace["cache_size"], etrace.get("support", "reference")) == (3, 2, "reference")


def test_pins_to_a_file(elf: Path, cleanup: ExitStack, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Which `rvtrace import` takes."""
    board = tmp_path / "board.toml"
    board.write_text(BOARD)
    words = ("--target", str(board), "--formats", "ntrace", "--stream", f"pib0={tmp_path / 'pins'}")
    chip = Chip(elf, wired(cleanup, *words), harts=1)
    chip.start_smem("ram0")
    chip["pib0"].activate()
    chip["pib0"][CONTROL] = ACTIVE | PARALLEL_4
    chip["pib0"][CONTROL] = ACTIVE | PARALLEL_4 | 2
    chip.start_encoders([0])
    chip.machine.run_slice(2000)
    chip.stop("encoder0", "pib0", "ram0")
    data = chip.in_memory("ram0")
    chip.check(data, [0])
    assert messages((tmp_path / "pins").read_bytes(), 4) == messages(data, 4)
    capture = tmp_path / "pins.rvt"
    assert main(["import", str(tmp_path / "pins"), "--elf", str(elf), "--src-bits", "4", "-o", str(capture)]) == 0
    assert main(["decode", str(capture), "--elf", str(elf)]) == 0
    listed = re.findall(r"^\d+\t +0x([0-9a-f]+)", capsys.readouterr().out, re.MULTILINE)
    assert [int(pc, 16) for pc in listed] == chip.logs[0]


def test_version_0_as_the_p550_has_it(elf: Path, cleanup: ExitStack) -> None:
    """Registers and bits from the P550's tables: teControl, tfControl, teImpl, tfSinkBase and those after it."""
    chip = Chip(elf, wired(cleanup, "--target", str(P550)), harts=4)
    funnel, start = chip["funnel0"], 0x1_0000_0000
    funnel[0] = 1
    funnel[0x10], funnel[0x14], funnel[0x18], funnel[0x1C] = 0, 1, 0x10_0000 - 8, 0
    funnel[0] = 7 << 28 | 3
    for hart in range(4):
        te = chip[f"encoder{hart}"]
        te[0] = 1
        assert te[4] >> 20 & 15 == hart and te[4] >> 24 & 7 == 2, "srcID, nSrcBits"
        te[0] = 8 << 28 | 1 << 24 | 10 << 20 | 11 << 16 | 6 << 4 | 3
        te[0] = 8 << 28 | 1 << 24 | 10 << 20 | 11 << 16 | 6 << 4 | 7
    chip.machine.run_slice(12_000)
    for name in ("encoder0", "encoder1", "encoder2", "encoder3", "funnel0"):
        chip[name][0] = chip[name][0] & ~0b110
        chip[name].poll(0b1010, 0b1000)
    size = funnel[0x1C]
    assert not size & 1
    chip.check(chip.machine.bus.read_bytes(start, size), range(4), src_bits=2, dialect=SIFIVE)


# -- filters


@pytest.mark.parametrize(
    ("words", "counts"),
    [((), (0, 0)), (("--filters", "3"), (3, 3)), (("--filters", "16"), (16, 8)),
     (("--filters", "4", "--comparators", "0"), (4, 0))],
)  # fmt: skip
def test_filters_and_comparators(
    elf: Path, cleanup: ExitStack, words: tuple[str, ...], counts: tuple[int, int]
) -> None:
    """What can be selected in trTeInstFilters, and which comparators hold an address."""
    te = Chip(elf, wired(cleanup, *words), harts=1)["encoder0"]
    te.activate()
    te[0x0C] = 0xFFFF
    found = te[0x0C].bit_count()
    for n in range(8):
        te[0x610 + 0x20 * n] = 0x8000_0000
    assert (found, sum(te[0x610 + 0x20 * n] == 0x8000_0000 for n in range(8))) == counts


# -- what is refused


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--target", str(CLUSTERS), "--harts", "6"), "encoder6: traces hart 6, and the last of the target is hart 5"),
        (("--target", str(CLUSTERS), "--trace-size", "4096"), "--trace-size: the sinks are those of --target"),
        (("--target", "missing.toml"), "missing.toml: cannot be read: No such file"),
        (("--target", str(CLUSTERS), "--stream", "ram0=x"), "--stream ram0=x: give NAME=WHERE; pin interfaces "
         "and bridges to name: pib0"),
        (("--stream", "pib0=x"), "pin interfaces and bridges to name: none in this target"),
        (("--target", str(CLUSTERS), "--stream", "pib0"), "--stream pib0: give NAME=WHERE"),
        (("--target", str(CLUSTERS), "--stream", "pib0=/missing/x"), "cannot write /missing/x: No such file"),
        (("--target", str(CLUSTERS), "--stream", "pib0=tcp:x"), "pib0: tcp:x: give a port, or 0 for a free one"),
        (("--target", str(CLUSTERS), "--stream", "pib0=unix:/missing/x"), "pib0: cannot listen on /missing/x: "),
        (("--filters", "17"), "--filters 17: give 0 to 16"),
        (("--filters", "1", "--comparators", "9"), "--comparators 9: give 0 to 8"),
        (("--comparators", "1"), "--comparators 1: only filters use them: give --filters as well"),
        (("--devices", "missing.toml"), "missing.toml: cannot be read: No such file"),
    ],
)  # fmt: skip
def test_what_cannot_be(elf: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], said: str) -> None:
    assert said in refused(capsys, "--elf", str(elf), "--port", "0", *words)


def test_a_program_of_another_width(tmp_path: Path, elf: Path, capsys: pytest.CaptureFixture[str]) -> None:
    board = tmp_path / "board.toml"
    board.write_text("[target]\nxlen = 32\n" + BOARD)
    said = refused(capsys, "--elf", str(elf), "--port", "0", "--target", str(board))
    assert f"{board}: [target]: xlen: is 32, and {elf} is for RV64" in said


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("to =", "hart = 32\nto =", "encoder0 traces hart 32, and the simulated target has 32 harts at most"),
        ('mode = "SMEM"', 'mode = "SRAM"', "ram0: an SRAM of the simulated target has 0x10000000 bytes at most"),
        ("0x20001000", "0x80000000", "pib0: its registers are at 0x80000000, where the main memory is"),
    ],
)
def test_descriptions_that_cannot_be(
    tmp_path: Path, elf: Path, capsys: pytest.CaptureFixture[str], before: str, after: str, said: str
) -> None:
    board = tmp_path / "board.toml"
    board.write_text(BOARD.replace(before, after))
    assert said in refused(capsys, "--elf", str(elf), "--port", "0", "--target", str(board))


def test_streams_that_cannot_be(tmp_path: Path, cleanup: ExitStack) -> None:
    streams = Streams(cleanup)
    streams.open("pib0", "pins", tmp_path)
    with pytest.raises(RvtraceError, match=r"atb0: .*pins is where another component's trace goes"):
        streams.open("atb0", "pins", tmp_path)
    devices = tmp_path / "devices.toml"
    devices.write_text('[pib0]\nstream = "missing/x"')
    with pytest.raises(RvtraceError, match=r"devices.toml: \[pib0\]: stream: cannot write .*missing/x: No such"):
        wired(cleanup, "--target", str(CLUSTERS), "--devices", str(devices))
    devices.write_text('[pib0]\nstream = "unix:here"')
    with pytest.raises(RvtraceError, match=r"--stream pib0=there: pib0 goes to unix:.*here already"):
        wired(cleanup, "--target", str(CLUSTERS), "--devices", str(devices), "--stream", "pib0=there")
    assert (tmp_path / "here").is_socket()
    cleanup.close()
    assert not (tmp_path / "here").exists()


# -- the side door


class TestSideDoor:
    @pytest.fixture
    def chip(self, elf: Path) -> Chip:
        parts: list[EncoderPart] = [encoder(0, "smem", trigger_inputs=2), encoder(1, "smem")]
        return Chip(elf, Wiring((*parts, smem())), harts=2)

    @pytest.fixture
    def door(self, chip: Chip, tmp_path: Path) -> Iterator[Backdoor]:
        with listen_unix(tmp_path / "door") as listener:
            yield Backdoor(chip.machine.bus, listener, chip.machine.components)

    def test_trace_is_lost_on_demand(self, chip: Chip, door: Backdoor) -> None:
        chip.start_smem("smem")
        chip.start_encoders(range(2))
        chip.machine.run_slice(4000)
        assert door.answer(b"OVERFLOW encoder1") == b"OK 0\n"
        assert [chip[f"encoder{n}"][CONTROL] & OVERFLOW for n in range(2)] == [0, OVERFLOW]
        chip.machine.run_slice(4000)
        chip.stop("encoder0", "encoder1", "smem")
        found = messages(chip.in_memory("smem"), 4)
        assert [message.src for message in found if message.tcode == ERROR] == [1]

    def test_an_encoder_that_is_off_loses_nothing(self, chip: Chip, door: Backdoor) -> None:
        assert door.answer(b"OVERFLOW encoder0") == b"OK 0\n"
        assert chip["encoder0"][CONTROL] & ~8 == 0

    def test_a_sink_is_jammed_and_let_go(self, chip: Chip, door: Backdoor) -> None:
        chip.start_smem("smem")
        chip.start_encoders([0])
        chip.machine.run_slice(4000)
        assert door.answer(b"JAM smem") == b"OK 0\n"
        before = chip["smem"][0x20]
        chip.machine.run_slice(4000)
        assert chip["smem"][0x20] == before and chip["encoder0"][CONTROL] & OVERFLOW
        assert door.answer(b"UNJAM smem") == b"OK 0\n"
        chip.machine.run_slice(4000)
        assert chip["smem"][0x20] > before

    def test_a_trigger_from_outside(self, chip: Chip, door: Backdoor) -> None:
        chip.start_smem("smem")
        te = chip["encoder0"]
        te.activate()
        te[0x54] = 2 << 4  # input 1 starts tracing
        te[CONTROL] = 0b11 | 6 << 4 | 1 << 11
        assert te[CONTROL] & 4 == 0
        assert door.answer(b"TRIGGER encoder0 0") == b"OK 0\n"
        assert te[CONTROL] & 4 == 0
        assert door.answer(b"TRIGGER encoder0 1") == b"OK 0\n"
        assert te[CONTROL] & 4

    @pytest.mark.parametrize(
        ("line", "said"),
        [
            ("OVERFLOW", "ERROR name one encoder: encoder0, encoder1\n"),
            ("OVERFLOW smem", "ERROR name one encoder: encoder0, encoder1\n"),
            ("OVERFLOW encoder0 1", "ERROR say OVERFLOW <encoder>, or TRIGGER <encoder> <input>; encoder0 has 2 "),
            ("TRIGGER encoder0 2", "encoder0 has 2 trigger inputs\n"),
            ("TRIGGER encoder1 0", "encoder1 has 0 trigger inputs\n"),
            ("TRIGGER encoder0 x", "encoder0 has 2 trigger inputs\n"),
            ("JAM encoder0", "ERROR name one sink, bridge or funnel: smem\n"),
            ("UNJAM", "ERROR name one sink, bridge or funnel: smem\n"),
        ],
    )
    def test_what_cannot_be(self, door: Backdoor, line: str, said: str) -> None:
        reply = door.answer(line.encode()).decode()
        assert said in reply and reply.startswith("ERROR ") and reply.count("\n") == 1


def test_a_target_whose_firmware_traces(tmp_path: Path) -> None:
    """docs/targets.md: of ESP32 chips only the firmware knows the encoder. All others have components."""
    program = compiled(tmp_path, march="rv32imac_zicsr")
    silent = []
    for name in (it.name for it in targets()):
        components = arguments("--target", name).components
        silent += [] if target.without_components(components, target.loaded(components)) else [name]
    assert sorted([*silent, "esp32"]) == sorted(it.name for it in targets())
    with started("--target", "esp32", "--elf", str(program), "--port", "0", "--json") as process:
        assert '"event": "note", "text": "the firmware of esp32 sets up its trace' in until(process, '"note"')
