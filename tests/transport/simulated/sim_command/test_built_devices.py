"""Components that are built as a file of `rvtrace sim --devices` says, on the bus.

Registers and bits are numbers here, from the Trace Control Interface 1.0 and the P550's tables.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from rvtrace_gdb.console.commands.sim import devices
from rvtrace_gdb.controlregs.trace_control.component_registers import RamMode
from rvtrace_gdb.controlregs.trace_control.encoder_registers import TeFormat
from rvtrace_gdb.session.description.model import DescriptionError
from rvtrace_gdb.transport.simulated.bus import BusError
from rvtrace_gdb.transport.simulated.devices.component import ComponentBuild
from rvtrace_gdb.transport.simulated.devices.filters import FilterUnits
from rvtrace_gdb.transport.simulated.wiring import (
    AnyPart,
    AtbBridgePart,
    EncoderPart,
    FunnelPart,
    RamSinkPart,
    Wiring,
    block_of,
    problems,
)
from tests.helpers.amounts import LONG
from tests.transport.simulated.chips import Chip, enable
from tests.transport.simulated.devices.test_component import ACTIVE, CONTROL, ENABLE, HTM, IMPL, TRACING
from tests.transport.simulated.harts import compiled
from tests.transport.simulated.sim_command.device_files import Kept, board, built, part


@pytest.fixture(scope="module")
def elf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("devices"))


def test_on_the_bus(elf: Path, tmp_path: Path) -> None:
    text = """
        [encoder0]
        version = [2, 0]
        vendor = 7
        fixed = {trTeInstMode = 3}
        allowed = {trTeInstSyncMax = [4, 8]}
        reset = {trTeSrcBits = 2, trTeSrcID = 5, trTeInstSyncMax = 8}
        faults = ["trTeDataControl"]
        [ram0]
        stuck = {Active = 0}
        [top]
        stuck = {Empty = 0}
    """
    chip = Chip(elf, built(tmp_path, text), harts=1)
    te = chip["encoder0"]
    te.activate()
    assert te[IMPL] & 0xFF00_0FFF == 0x0700_0102
    assert te[0x8] >> 16 == 2 << 12 | 5 and te[CONTROL] >> 20 & 15 == 8
    te[CONTROL] = ACTIVE | HTM | 9 << 20
    assert te[CONTROL] >> 4 & 7 == 3 and te[CONTROL] >> 20 & 15 == 8
    with pytest.raises(BusError):
        te[0x10]
    chip["ram0"][CONTROL] = ACTIVE
    chip["top"].activate()
    enable(chip["top"])
    chip["top"][CONTROL] = ACTIVE
    for _ in range(20):
        assert chip["ram0"][CONTROL] & ACTIVE == 0
        assert chip["top"][CONTROL] & 0b1000 == 0


def hard_wired(part: AnyPart) -> list[tuple[str, int]]:
    """Every field that can be, with 0 and with its highest value."""
    fields = {n: field for register in block_of(part).registers for n, field in register.by_name.items()}
    wanted = [(name, value) for name, field in fields.items() for value in (0, (1 << field.width) - 1)]
    return [(n, v) for n, v in wanted if not list(problems(replace(part, build=ComponentBuild(fixed={n: v}))))]


@pytest.mark.parametrize(
    ("name", "trace_format"),
    [
        *((name, TeFormat.N_TRACE) for name in ("encoder0", "top", "ram0", "pib0", "atb0")),
        ("encoder0", TeFormat.E_TRACE),
    ],
)
def test_whatever_is_hard_wired(elf: Path, name: str, trace_format: TeFormat) -> None:
    """The target goes on, whatever becomes of the trace. Every field is that."""
    first, *rest = board().parts
    assert isinstance(first, EncoderPart)
    wiring = Wiring((replace(first, formats=(trace_format,), filters=FilterUnits(2, 2)), *rest))
    tried = hard_wired(part(wiring, name))
    assert len(tried) >= 2
    if name == "encoder0" and not LONG:  # half of it with one format, half with the other
        tried = [case for n, case in enumerate(tried) if (n + n // 2) % 2 == (trace_format is TeFormat.E_TRACE)]
    for field, value in tried:
        parts = (p if p.name != name else replace(p, build=ComponentBuild(fixed={field: value})) for p in wiring.parts)
        chip = Chip(elf, Wiring(tuple(parts)), harts=1)
        for component in ("ram0", "pib0", "atb0", "top", "encoder0"):
            registers = chip[component]
            for bits in (0, ACTIVE, ACTIVE | 1 << 4, ACTIVE | ENABLE | 0x60, ACTIVE | ENABLE | TRACING | 0x60):
                registers[CONTROL] = bits
        chip.machine.run_slice(300)
        for component in ("encoder0", "top", "atb0", "pib0", "ram0"):
            chip[component][CONTROL] = ACTIVE
            assert chip[component][CONTROL] & ACTIVE
        assert chip.machine.hart.instret >= 300


def test_data_packets_that_would_be_empty(elf: Path) -> None:
    """trTeDataNoAddr and trTeDataNoValue are never both 1, whichever is hard-wired."""
    first, *rest = board().parts
    assert isinstance(first, EncoderPart)
    for fixed in ({"trTeDataNoValue": 1}, {"trTeDataNoAddr": 1, "trTeDataNoValue": 0}):
        built = replace(first, formats=(TeFormat.E_TRACE,), build=ComponentBuild(fixed=fixed))
        te = Chip(elf, Wiring((built, *rest)), harts=1)["encoder0"]
        te.activate()
        for written in (0b01, 0b10, 0b11):
            te[0x10] = written << 16
            assert te[0x10] >> 16 & 3 in (0b01, 0b10)


VERSION_0 = Wiring((
    EncoderPart(name="te", base=0x10_0000, hart=3, to=("tf",), version=0),
    FunnelPart(name="tf", base=0x1_8000, to=("ram", "atb"), inputs={"te": 0}, input_count=1, version=0),
    RamSinkPart(name="ram", base=0x1_8000, inside="tf", modes=(RamMode.SMEM,)),
    AtbBridgePart(name="atb", base=0x1_8000, inside="tf"),
))  # fmt: skip


def of_version_0(folder: Path, text: str) -> Wiring:
    (folder / "v0.toml").write_text(text)
    return devices.built(VERSION_0, folder / "v0.toml", lambda name, where, folder: Kept())


def test_version_0(elf: Path, tmp_path: Path) -> None:
    """teImpl and tfImpl: hasATBSink, hasSBASink, hasSRAMSink, sinkBytes; xtiControl at 0x50."""
    text = """
        [te]
        trigger_inputs = 2
        fixed = {teSyncMaxInst = 6}
        [tf]
        inputs = 4
        [ram]
        modes = ["SRAM", "SMEM"]
        sram_size = 4096
        access_width = 16
    """
    chip = Chip(elf, of_version_0(tmp_path, text), harts=4)
    te, tf = chip["te"], chip["tf"]
    te[CONTROL] = tf[CONTROL] = ACTIVE
    te[CONTROL] = ACTIVE | 0xF << 20
    assert te[CONTROL] >> 20 & 15 == 6
    assert te[IMPL] >> 28 == 3, "the hart"
    te[0x50] = 0x232
    assert te[0x50] == 0x32
    assert tf[IMPL] & 0x3_03F0 == 2 << 16 | 1 << 4 | 1 << 5 | 1 << 7


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[te]\nfilters = 1", "[te]: filters: unknown; known here: trigger_inputs, trigger_outputs, version, "),
        (
            "[te]\nfixed = {trTeInstMode = 3}",
            "[te]: fixed.trTeInstMode: a component of type encoder has no field of this",
        ),
        ("[te]\nfaults = ['trTeControl']", 'faults: a component of type encoder has no register "trTeControl"'),
        ("[tf]\ndepth = 1", "[tf]: depth: unknown; known here: inputs, version, "),
        (
            "[ram]\nfixed = {trRamMode = 1}",
            "[ram]: fixed: unknown; known here: modes, sram_size, access_width, address",
        ),
    ],
)
def test_what_version_0_does_not_have(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(DescriptionError) as caught:
        of_version_0(tmp_path, text)
    assert said in str(caught.value)
