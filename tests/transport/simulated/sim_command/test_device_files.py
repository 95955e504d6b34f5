"""The file of `rvtrace sim --devices`: what becomes of each key, and what is refused."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from rvtrace_gdb.console.commands.sim import devices
from rvtrace_gdb.console.commands.sim.component_table import BUILD_KEYS
from rvtrace_gdb.controlregs.trace_control.component_registers import PibMode, RamMode
from rvtrace_gdb.session.description.model import DescriptionError
from rvtrace_gdb.transport.simulated.devices.sinks import PinStream
from rvtrace_gdb.transport.simulated.wiring import (
    AtbBridgePart,
    EncoderPart,
    FunnelPart,
    MemoryMap,
    PibSinkPart,
    RamSinkPart,
    TracerPart,
    Wiring,
    standard,
)
from tests.helpers.cross_compiler import HOME
from tests.transport.simulated.chips import smem
from tests.transport.simulated.sim_command.device_files import Kept, board, built, part

DOCS = HOME / "docs" / "simulated-target.md"


def test_what_is_not_said_stays(tmp_path: Path) -> None:
    assert built(tmp_path, "") == board()
    assert built(tmp_path, "[ram0]\n[top]\n") == board()


def test_what_every_component_has(tmp_path: Path) -> None:
    found = part(built(tmp_path, """[encoder0]
        version = [1, 15]
        comp_type = 9
        vendor = 0x5f
        fixed = {trTeInstMode = 3, trTsMode = 0}
        allowed = {trTeInstSyncMax = [4, 8]}
        polls = 7
        flush_polls = 9
        stuck = {Active = 0, Enable = 1}
        faults = ["trTeDataControl", 0x50]
        powered_down = true
    """), "encoder0")  # fmt: skip
    build = found.build
    assert (build.version, build.comp_type, build.vendor) == ((1, 15), 9, 0x5F)
    assert (build.fixed, build.allowed) == ({"trTeInstMode": 3, "trTsMode": 0}, {"trTeInstSyncMax": (4, 8)})
    assert (build.polls, build.flush_polls, build.stuck) == (7, 9, {"Active": 0, "Enable": 1})
    assert (build.faults, build.powered_down) == ((0x10, 0x50), True)


def test_what_the_types_have(tmp_path: Path) -> None:
    wiring = built(tmp_path, """
        [encoder0]
        formats = ["etrace"]
        without = ["trTeContext"]
        filters = 12
        nesting_bits = 5
        data_filters = false
        trigger_inputs = 3
        trigger_outputs = 8
        overflow_after = 40
        [top]
        inputs = 16
        depth = 2
        clocks = ["external"]
        [ram0]
        modes = ["SMEM"]
        access_width = 16
        address_bits = 40
        window = true
        [pib0]
        modes = ["parallel_4", "swt_uart"]
        divider_bits = 8
        [atb0]
        width = 16
    """)  # fmt: skip
    te, top, ram, pib, atb = wiring.parts
    assert isinstance(te, EncoderPart) and isinstance(top, FunnelPart) and isinstance(ram, RamSinkPart)
    assert isinstance(pib, PibSinkPart) and isinstance(atb, AtbBridgePart)
    assert (te.formats, te.absent, te.overflow_after) == ((0,), ("trTeContext",), (40,))
    assert (te.filters.filters, te.filters.comparators) == (12, 8), "as many comparators as there can be"
    assert (te.filters.nesting_bits, te.filters.data) == (5, False)
    assert (te.trigger_inputs, te.trigger_outputs) == (3, 8)
    assert (top.input_count, top.depth, top.system_clock, top.external_clock) == (16, 2, False, True)
    assert (ram.modes, ram.access_bytes, ram.address_bits, ram.window) == ((RamMode.SMEM,), 16, 40, True)
    assert (pib.modes, pib.divider_bits, atb.width) == ((PibMode.PARALLEL_4, PibMode.SWT_UART), 8, 16)
    assert part(built(tmp_path, "[ram0]\nsram_size = 4096\n"), "ram0") == smem("ram0", sram_size=4096)
    several = part(built(tmp_path, "[encoder0]\noverflow_after = [3, 9]\nfilters = 3\ncomparators = 0"), "encoder0")
    assert isinstance(several, EncoderPart) and several.overflow_after == (3, 9)
    assert (several.filters.filters, several.filters.comparators) == (3, 0)


def test_streams(tmp_path: Path) -> None:
    kept = {"pib0": Kept(), "atb0": Kept()}
    asked = []

    def opened(name: str, where: str, folder: Path) -> PinStream:
        asked.append((name, where, folder))
        return kept[name]

    text = '[pib0]\nstream = "tcp:0"\n[atb0]\nwidth = 2\nstream = "x/atb.bin"'
    pib, atb = (part(built(tmp_path, text, opened), name) for name in kept)
    assert set(asked) == {("pib0", "tcp:0", tmp_path), ("atb0", "x/atb.bin", tmp_path)}
    assert isinstance(pib, PibSinkPart) and isinstance(atb, AtbBridgePart)
    pib.probe.write(b"123")
    atb.transfer(5, b"ab")
    assert (kept["pib0"].data, kept["atb0"].data) == (b"123", b"\x05\x01ab")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[ram1]", "[ram1]: there is no component of this name; there is encoder0, top, ram0, pib0, atb0"),
        ("ram0 = 1", "ram0: must be a table of a component"),
        ("[ram0", "is not a TOML file: "),
        ("[ram0]\nacces_width = 8", "[ram0]: acces_width: unknown; known here: modes, sram_size, access_width, "),
        ("[ram0]\nfilters = 8", "[ram0]: filters: unknown; known here: modes, "),
        ("[top]\nstream = 'x'", "[top]: stream: unknown; known here: inputs, depth, clocks, version, "),
        ("[encoder0]\nfixed = 3", "[encoder0]: fixed: must be a table of names and values, as in fixed = {name = 1}"),
        ("[encoder0]\nfixed = {trRamMode = 1}", "fixed.trRamMode: a component of type encoder has no field of this"),
        ("[encoder0]\nfixed = {trTeInstMode = 8}", "fixed.trTeInstMode: is 8, and the field has 3 bits"),
        ("[encoder0]\nfixed = {trTeContext = 2}", "fixed.trTeContext: is 2, and the field has 1 bit"),
        ("[encoder0]\nfixed = {trTeInstMode = 'x'}", "fixed.trTeInstMode: is 'x', must be a number"),
        ("[encoder0]\nfixed = {trTeContext = true}", "fixed.trTeContext: is True, must be a number"),
        ("[encoder0]\nfixed = {trTeFormat = 0}", "fixed.trTeFormat: say formats instead"),
        ("[pib0]\nfixed = {trPibMode = 0}", "fixed.trPibMode: say modes instead"),
        ("[ram0]\nallowed = {trRamMode = [0]}", "allowed.trRamMode: say modes instead"),
        ("[encoder0]\nfixed = {trTeEnable = 0}", "fixed.trTeEnable: say stuck instead"),
        ("[encoder0]\nfixed = {trTeVerMinor = 3}", "fixed.trTeVerMinor: say version instead"),
        ("[top]\nfixed = {trFunnelCompType = 3}", "fixed.trFunnelCompType: say comp_type instead"),
        ("[ram0]\nfixed = {trRamHasSRAM = 0}", "fixed.trRamHasSRAM: software cannot write this field"),
        ("[encoder0]\nallowed = {trTeInstMode = 3}", "allowed.trTeInstMode: must be a list of numbers"),
        ("[encoder0]\nallowed = {trTeInstMode = []}", "allowed.trTeInstMode: has no value"),
        ("[encoder0]\nfixed = {trTeInstMode = 3}\nallowed = {trTeInstMode = [3]}",
         "allowed.trTeInstMode: it is also fixed: give only one of them"),
        ("[encoder0]\nwithout = ['trTeContext']\nfixed = {trTeContext = 1}",
         "fixed.trTeContext: the encoder is without this field"),
        ("[encoder0]\nwithout = ['trTeContext']\nallowed = {trTeContext = [1]}",
         "allowed.trTeContext: the encoder is without this field"),
        ("[encoder0]\nwithout = ['trTeEnable']", '[encoder0]: without: "trTeEnable" is not one of '),
        ("[encoder0]\nfixed = {trTeSrcBits = 13}", "fixed.trTeSrcBits: is 13, and source IDs have up to 12 bits"),
        ("[encoder0]\nallowed = {trTeSrcBits = [2, 14]}", "allowed.trTeSrcBits: is 14, and source IDs have up to 12"),
        ("[encoder0]\nfixed = {trTeDataNoAddr = 1}",
         "fixed.trTeDataNoAddr: packets would be empty: fix trTeDataNoValue to 0"),
        ("[encoder0]\nversion = 1", "version: must be two numbers, as in version = [1, 0]"),
        ("[encoder0]\nversion = [1, 16]", "version: the two numbers are from 0 to 15"),
        ("[encoder0]\nvendor = 256", "vendor: is 256, must be from 0 to 255"),
        ("[encoder0]\nstuck = {Full = 1}", "stuck.Full: is not one of Active, Enable, Empty"),
        ("[encoder0]\nstuck = {Empty = 2}", "stuck.Empty: is 2, must be 0 or 1"),
        ("[ram0]\nstuck = {Empty = 0}\nflush_polls = 2", "flush_polls: it never appears: stuck says that Empty is "),
        ("[ram0]\nfaults = 'x'", "faults: must be a list of registers, by name or offset"),
        ("[ram0]\nfaults = ['trTeImpl']", 'faults: a component of type ram_sink has no register "trTeImpl"'),
        ("[ram0]\nfaults = [2]", "faults: 0x2 is not the offset of a register"),
        ("[ram0]\nfaults = [0x1000]", "faults: 0x1000 is not the offset of a register"),
        ("[encoder0]\nformats = []", "formats: must name one of ntrace, etrace"),
        ("[encoder0]\nformats = ['nexus']", 'formats: "nexus" is not one of ntrace, etrace'),
        ("[encoder0]\nformats = ['ntrace', 'ntrace']", 'formats: "ntrace" is there twice'),
        ("[encoder0]\nfilters = 17", "filters: is 17, must be from 0 to 16"),
        ("[encoder0]\ncomparators = 1", "comparators: only filters use them, and there are none"),
        ("[encoder0]\noverflow_after = [1, -1]", "overflow_after: is -1, must be a number from 0 to 2**32 - 1"),
        ("[top]\ninputs = 3", "inputs: is 3, must be from 4 to 16"),
        ("[top]\nclocks = ['core']", 'clocks: "core" is not one of system, external'),
        ("[ram0]\naccess_width = 12", "access_width: is 12, must be a power of two"),
        ("[ram0]\nmodes = ['SRAM']\naccess_width = 8", "access_width: is that of system memory"),
        ("[ram0]\nmodes = ['SRAM']\nwindow = true", "window: is one to system memory, and the mode SMEM is missing"),
        ("[ram0]\nmodes = ['SMEM']\nsram_size = 4096", "sram_size: the mode SRAM is missing"),
        ("[ram0]\nmodes = []", "modes: must name one of SRAM, SMEM"),
        ("[ram0]\nwindow = 1", "window: is 1, must be true or false"),
        ("[pib0]\nmodes = ['off']", 'modes: "off" is not one of swt_manchester, '),
        ("[atb0]\nwidth = 3", "width: is 3, must be a power of two"),
        ("[pib0]\nstream = 1", "stream: is 1, must be one line of text"),
    ],
)  # fmt: skip
def test_what_is_refused(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(DescriptionError) as caught:
        built(tmp_path, text)
    assert str(caught.value).startswith(f"{tmp_path / 'devices.toml'}: ") and "\n" not in str(caught.value)
    assert said in str(caught.value)


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(DescriptionError, match=r"missing.toml: cannot be read: No such file"):
        devices.built(board(), tmp_path / "missing.toml", lambda name, where, folder: Kept())
    (tmp_path / "latin.toml").write_bytes(b"\xff")
    with pytest.raises(DescriptionError, match=r"is not a TOML file: it is not UTF-8 text"):
        devices.built(board(), tmp_path / "latin.toml", lambda name, where, folder: Kept())


def test_all_keys_are_documented() -> None:
    """And nothing else: the tables of the page have each key of each type."""
    text = DOCS.read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([a-z_, ]+) \| (`.*?) \| ", text, re.MULTILINE)
    found: dict[str, set[str]] = {}
    for kinds, keys in rows:
        for kind in kinds.split(", "):
            found.setdefault(kind, set()).update(re.findall(r"`(\w+)`", keys))
    keys = {kind: set(names) for kind, names in devices.KEYS.items()}
    assert found == {**keys, "all": set(BUILD_KEYS)}


def test_the_example_in_the_documentation(tmp_path: Path) -> None:
    """It is for the standard components."""
    blocks = re.findall(r"^    \[encoder0\]\n(?:    .*\n|\n)+", DOCS.read_text(encoding="utf-8"), re.MULTILINE)
    path = tmp_path / "devices.toml"
    path.write_text(blocks[0])
    wiring = devices.built(standard(MemoryMap()), path, lambda name, where, folder: Kept())
    assert wiring != standard(MemoryMap())


def test_a_table_for_all_of_a_type(tmp_path: Path) -> None:
    """The component's own table comes first, key by key; a component may be called "all" itself."""
    wiring = built(tmp_path, """
        [all.encoder]
        formats = ["etrace"]
        fixed = {trTeInstMode = 3}
        etrace = {bpred_size = 0, context_width = 16}
        [all.ram_sink]
        sram_size = 4096
        [encoder0]
        fixed = {trTeInstSyncMax = 4}
    """)  # fmt: skip
    encoder, sink = part(wiring, "encoder0"), part(wiring, "ram0")
    assert isinstance(encoder, EncoderPart) and encoder.etrace is not None
    assert (encoder.formats, encoder.build.fixed) == ((0,), {"trTeInstSyncMax": 4})
    parameters = encoder.etrace.encoder.parameters
    assert (parameters.bpred_size, parameters.context_width) == (0, 16)
    assert isinstance(sink, RamSinkPart) and sink.sram_size == 4096


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("all = 1", "all: must be a table with a table for each type of component"),
        ("[all]\nencoder = 1", "all.encoder: must be a table for all components of a type"),
        ("[all.encodr]", "[all.encodr]: there is no such type of component; there is encoder, funnel, "),
        ("[all.encoder]\nsram_size = 64", "[encoder0]: sram_size: unknown; known here: "),
        ("[encoder0]\netrace = {width = 3}", "[encoder0]: etrace.width: is unknown; known settings: "),
        ("[encoder0]\netrace = 3", "[encoder0]: etrace: must be a table of names and values, as in etrace = "),
    ],
)
def test_tables_of_types_that_are_refused(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(DescriptionError) as raised:
        built(tmp_path, text)
    assert str(raised.value).removeprefix(f"{tmp_path}/devices.toml: ").startswith(said)


def test_a_second_file_changes_what_it_says(tmp_path: Path) -> None:
    """As `--devices` does what a shipped target is built like."""
    first, second = tmp_path / "first.toml", tmp_path / "second.toml"
    first.write_text("[all.encoder]\nfixed = {trTeInstMode = 3}\nallowed = {trTeInstSyncMode = [2]}\nversion = [1, 1]\n"
                     "reset = {trTeSrcID = 5}\nstuck = {Empty = 1}\ntrigger_inputs = 2\noverflow_after = 9")
    second.write_text("[encoder0]\nversion = [0, 1]")
    once = devices.built(board(), first, lambda name, where, folder: Kept())
    twice = part(devices.built(once, second, lambda name, where, folder: Kept()), "encoder0")
    before = part(once, "encoder0")
    assert twice == replace(before, build=replace(before.build, version=(0, 1)))
    assert before.build.fixed and before.build.allowed and before.build.reset and before.build.stuck


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("depth = 24", "[tracer0]: depth: is 24, must be a power of two"),
        ("depth = 1", "[tracer0]: depth: is 1, must be from 2 to 32768"),
        ("version = [1, 0]", "[tracer0]: version: unknown; known here: depth"),
    ],
)
def test_a_tracer(tmp_path: Path, text: str, said: str) -> None:
    before = Wiring((TracerPart(name="tracer0", base=0xFFF3_0000),))
    file = tmp_path / "devices.toml"
    file.write_text("[all.tracer]\ndepth = 64")
    assert devices.built(before, file, lambda name, where, folder: Kept()).tracers[0].depth == 64
    file.write_text(f"[tracer0]\n{text}")
    with pytest.raises(DescriptionError, match=re.escape(said)):
        devices.built(before, file, lambda name, where, folder: Kept())
