"""The SpacemiT K3's graph of 39 components, from its device tree, with its limits, behind real OpenOCD: 16 harts.

What is expected of each hart is the list of what it retired: with the ETR's buffer flat, scattered over pages as Linux
has it, and in the ETF alone. From the frames of the first follow rings that wrapped at each position, and streams that
the funnels interleave at any byte.
"""

import random
import re
import struct
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

from rvtrace_gdb.console.bench.rig import Rig
from rvtrace_gdb.decode.coresight.demultiplexed import DemultiplexedTrace
from rvtrace_gdb.decode.coresight.formatter import FrameFormatter
from rvtrace_gdb.decode.coresight.frames import FrameForm
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.session.capture.file import load
from rvtrace_gdb.session.capture.model import CapturedSink
from rvtrace_gdb.session.description.devicetree import trace_components
from rvtrace_gdb.session.description.library.shipped import shipped
from rvtrace_gdb.session.formats.framed_sinks import FramedSinks
from rvtrace_gdb.session.formats.sinks import decode
from tests.endtoend.retired_instructions import listed_pcs, retired_pcs
from tests.endtoend.targets.boards import listing
from tests.gdbext.gdb_process import SOURCE, run_gdb
from tests.helpers.amounts import LONG, long_only, thorough
from tests.session.description.devicetrees import tree
from tests.transport.simulated.harts import PROGRAMS, compiled

K3 = "spacemit-k3"
HARTS = 16
FRAME = 16
TABLE, PAGES = 0x8700_0000, (0x8710_3000, 0x8710_1000, 0x8710_2000, 0x8710_0000)
FLAT = (
    '\nmode = "SMEM"\n# As in the vendor\'s example; it has to be memory that nothing else uses.\n'
    "start = 0x170000000\nsize = 0x1000000\n"
)
START = "trace start -sync-period 64"


class Recorded(NamedTuple):
    """*said*: what gdb printed; *retired*: of each hart; *sink*: what the flat buffer held; *elf*: the program."""

    said: dict[str, str]
    retired: list[list[int]]
    capture: Path
    elf: Path

    def decoded(self, data: bytes, *, wrapped: bool) -> dict[int, list[int]]:
        """The histories of the harts if the buffer held these frames."""
        capture = load(self.capture)
        [sink] = capture.sinks
        assert isinstance(sink, CapturedSink)
        streams = FramedSinks().streams([replace(sink, data=data, wrapped=wrapped)])
        found = decode(list(streams), capture.encoders, Image.from_elf(self.elf))
        return {hart: list(history.pcs()) for hart, history in found.histories.items()}

    @property
    def frames(self) -> bytes:
        [sink] = load(self.capture).sinks
        assert isinstance(sink, CapturedSink)
        return sink.data


def anew(command: str, number: int) -> str:
    """A command in a spelling of its own for each trace."""
    return command + " " * number


def off_from(first: int) -> str:
    """The devices of harts that are off, up to the last one: all registers of theirs are bus errors."""
    return "".join(f"[encoder{hart}]\noff = true\n" for hart in range(first, HARTS))


def again(hart: int, number: int) -> str:
    return f"trace history /at {hart + 1},1000000{number}"


@pytest.fixture(scope="module")
def k3(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    folder = tmp_path_factory.mktemp("k3")
    elf = compiled(folder, PROGRAMS / "meet.c", options=(f"-DHARTS={HARTS}",))
    log, capture, pages, devices = folder / "log", folder / "x.rvt", folder / "pages", folder / "devices.toml"
    text = shipped(K3).text()
    scattered, etf = folder / "scattered.toml", folder / "etf.toml"
    assert FLAT in text
    scattered.write_text(text.replace(FLAT, f'\nmode = "SG"\nstart = {TABLE:#x}\n'))
    alone = text.partition('[[component]]\nname = "etr0"')[0]
    etf.write_text(alone.replace('to = ["etr0"]\nmode = "FIFO"', 'mode = "SRAM"'))
    entries = [page >> 12 << 4 | (1 if page == PAGES[-1] else 2) for page in PAGES]
    pages.write_bytes(struct.pack(f"<{len(entries)}I", *entries))
    built = "[all.atb_bridge]\nwidth = 1\n[etf0]\nsram_size = 0x10000\n[encoder3]\nversion = [0, 1]\n"
    devices.write_text(built)
    options = ("--target", K3, "--devices", str(devices), "--log-retired", str(log))
    with Rig(elf, folder / "rig", *options) as rig:
        commands = [SOURCE, f"set trace target {K3}", f"set trace openocd-port {rig.tcl_port}"]
        commands += [f"target extended-remote :{rig.gdb_port}", f"restore {pages} binary {TABLE:#x}", START]
        commands += ["break met", "continue", "trace status"]
        # Not by threads: gdb would read the registers of each.
        commands += [word for hart in range(HARTS) for word in (f"set trace hart {hart}", listing(hart))]
        commands += [f"trace save {capture}", "set trace hart auto", *long_only("trace stop")]
        for number, file in enumerate(long_only(scattered, etf), 1):
            commands += [f"set trace target {file}", anew(START, number), anew("continue", number)]
            commands += [word for hart in (0, 5, 15) for word in (f"thread {hart + 1}", again(hart, number))]
            commands += [anew("trace status", number), anew("trace stop", number)]
        said = run_gdb(elf, commands)
    return Recorded(said, [retired_pcs(Path(f"{log}.{hart}")) for hart in range(HARTS)], capture, elf)


def test_the_shipped_description_is_the_device_tree() -> None:
    imported = trace_components(tree("spacemit_k3"), {"": (0x1_7000_0000, 0x100_0000)}).description
    found = shipped(K3).description()
    assert (found.components, found.hart_power, found.xlen) == (imported.components, True, imported.xlen)


def packed(pcs: list[int]) -> bytes:
    return struct.pack(f"<{len(pcs)}Q", *pcs)


def within(part: list[int], whole: list[int]) -> bool:
    """Whether *part* ran in *whole*, one instruction after the other."""
    return packed(whole).find(packed(part)) % 8 == 0


def test_each_hart_is_listed_as_it_ran(k3: Recorded) -> None:
    for hart in range(HARTS):
        listed = listed_pcs(k3.said[listing(hart)])
        assert len(listed) > 100
        assert k3.retired[hart][hart : hart + len(listed)] == listed


def test_what_the_encoders_can_do_is_what_is_used(k3: Recorded) -> None:
    start = k3.said[START]
    assert re.search(rf"^tracing:  encoder0 to encoder{HARTS - 1}: N-Trace 1\.0 BTM, sync every 64 cl.*$", start, re.M)
    assert re.search(rf"^note: +encoder0 to encoder{HARTS - 1}: no HTM; using BTM$", start, re.M)
    assert "encoder3 at 0xd9008000: trace control interface 0.1 is used as 1.0: it is 1.0 with its halves" in start
    assert "into:     etr0: SMEM 0x170000000, 16777216 bytes, keeps the newest" in start


def test_what_components_and_harts_have_alike_is_one_line(k3: Recorded) -> None:
    status = k3.said["trace status"]
    assert re.search(rf"^target: .*, harts 0 to {HARTS - 1}$", status, re.M)
    assert re.search(rf"^harts: +0 to {HARTS - 1} halted$", status, re.M)
    assert re.search(rf"^encoder: +encoder0 to encoder{HARTS - 1}: tracing, N-Trace 1\.0 BTM", status, re.M)
    assert re.search(rf"^bridge: +bridge0 to bridge{HARTS - 1}: on$", status, re.M)
    assert re.search("^funnel: +funnel0 to funnel3: on$", status, re.M)


def check_harts_that_are_off(start: str, first: int) -> None:
    """A funnel has the power of the first hart of its cluster."""
    for hart in range(first, HARTS):
        funnel = f", funnel{hart // 4} and bridge{hart}" if hart % 4 == 0 else f" and bridge{hart}"
        note = rf"^note: +hart {hart} is off \(.*\): it is not traced, and encoder{hart}{funnel} are not touched$"
        assert re.search(note, start, re.M), hart


@thorough("endtoend/coresight/test_sinks.py::test_what_is_listed_is_what_ran")
@pytest.mark.parametrize(
    ("number", "sink"),
    [(1, f"etr0 at 0xd9044000: pages of the table at {TABLE:#x}"), (2, "etf0 at 0xd9043000: SRAM")],
)
def test_the_buffer_of_linux_and_the_etf_alone(k3: Recorded, number: int, sink: str) -> None:
    assert f"sink:     {sink}" in k3.said[anew("trace status", number)]
    for hart in (0, 5, 15):
        listed = listed_pcs(re.sub("^(warning|note): .*\n", "", k3.said[again(hart, number)], flags=re.M))
        assert len(listed) > 20 and within(listed, k3.retired[hart]), (hart, number)


def test_a_ring_that_wrapped_at_each_position(k3: Recorded) -> None:
    """What is left is the end of what ran, from a synchronization on; nothing else, and nothing in between."""
    frames = k3.frames
    whole = k3.decoded(frames, wrapped=False)
    positions = range(FRAME, len(frames), FRAME)
    seen = [0] * HARTS
    for position in positions if LONG else [*positions][:: max(len(positions) // 12, 1)]:
        for hart, pcs in k3.decoded(frames[position:], wrapped=True).items():
            assert whole[hart][len(whole[hart]) - len(pcs) :] == pcs, (hart, position)
            seen[hart] += bool(pcs)
    assert all(seen)


def test_funnels_that_switch_at_any_byte(k3: Recorded) -> None:
    """The vendor, in riscv-nexus-trace issue 115: a funnel switches inputs in the middle of a message."""
    trace, rng, formatter = DemultiplexedTrace(FrameForm.MEMORY, k3.frames), random.Random(23), FrameFormatter()
    left = {atb_id: trace.stream(atb_id) for atb_id in trace.atb_ids if atb_id}
    assert sorted(left) == list(range(1, HARTS + 1))
    frames = b""
    while left:
        atb_id, size = rng.choice(list(left)), rng.choice([1, 1, 2, 3, 7])
        frames += formatter.put(atb_id, left[atb_id][:size])
        left[atb_id] = left[atb_id][size:]
        if not left[atb_id]:
            del left[atb_id]
    assert k3.decoded(frames + formatter.flush(), wrapped=False) == k3.decoded(k3.frames, wrapped=False)
    assert len(frames) > len(k3.frames)


PROCESSES = PROGRAMS.parent / "contexts"
WITH_CONTEXT = "trace start -context"


def recorded_processes(folder: Path, target: str | Path, harts: int) -> tuple[dict[str, str], Path, Path]:
    """Record the processes of *harts* harts on the simulated K3. Return what gdb said, the capture and the program."""
    folder.mkdir()
    options = (f"-DHARTS={harts}", str(PROCESSES / "processes.S"))
    elf = compiled(folder, PROCESSES / "processes.c", options=options)
    devices, log, capture = folder / "devices.toml", folder / "log", folder / "x.rvt"
    devices.write_text(off_from(harts))
    board = ("--target", K3, "--devices", str(devices), "--log-retired", str(log))
    with Rig(elf, folder / "rig", *board) as rig:
        said = run_gdb(elf, [
            SOURCE, f"set trace target {target}", f"set trace openocd-port {rig.tcl_port}",
            f"target extended-remote :{rig.gdb_port}", WITH_CONTEXT, "break met", "continue", "trace events",
            f"trace save {capture}", "trace stop", WITH_CONTEXT + " ",
        ])  # fmt: skip
    return said, capture, elf


def processes_of(capture: Path, elf: Path, hart: int) -> dict[str, set[int | None]]:
    """The values of scontext with which the instructions of each process's function ran, as the history has them."""
    loaded, image = load(capture), Image.from_elf(elf)
    histories = decode(list(FramedSinks().streams(loaded.sinks)), loaded.encoders, image).histories
    found: dict[str, set[int | None]] = {"first": set(), "second": set()}
    for position, pc in enumerate(histories[hart].pcs()):
        name, _ = image.symbol(pc) or ("", 0)
        if name in found:
            found[name].add(histories[hart].context_at(position).scontext)
    return found


def test_processes_by_scontext(tmp_path: Path) -> None:
    """As the harts write it before their sret, where `trace start` has set a trigger by itself: the encoders report a
    context after synchronizations alone. Without the trigger functions run in the context of whatever came before.
    """
    harts = 3
    said, capture, elf = recorded_processes(tmp_path / "marked", K3, harts)
    line = "harts 0 to 2: trace-notify trigger at <enter+18> (1 of 4 free triggers): there the encoder reports the"
    assert f"note:     {line} context\n" in said[WITH_CONTEXT]
    assert line in said[WITH_CONTEXT + " "], "the triggers were taken back"
    check_harts_that_are_off(said[WITH_CONTEXT], harts)
    for hart in range(harts):
        expected = {"first": {100 * hart + 101}, "second": {100 * hart + 102}}
        assert processes_of(capture, elf, hart) == expected, hart
    assert "scontext 101" in said["trace events"]
    bare = tmp_path / "bare.toml"
    bare.write_text(re.sub("^context_notify.*\n", "", shipped(K3).text(), flags=re.M))
    said, capture, elf = recorded_processes(tmp_path / "unmarked", bare, 1)
    assert "trigger" not in said[WITH_CONTEXT]
    assert processes_of(capture, elf, 0) != {"first": {101}, "second": {102}}


@thorough("test_processes_by_scontext")
def test_harts_that_are_off(tmp_path: Path) -> None:
    """The seven last ones are not touched; the others are listed as they ran."""
    on = 9
    elf = compiled(tmp_path, PROGRAMS / "meet.c", options=(f"-DHARTS={on}",))
    devices, log = tmp_path / "devices.toml", tmp_path / "log"
    devices.write_text(off_from(on))
    options = ("--target", K3, "--devices", str(devices), "--log-retired", str(log))
    with Rig(elf, tmp_path / "rig", *options) as rig:
        commands = [SOURCE, f"set trace target {K3}", f"set trace openocd-port {rig.tcl_port}"]
        commands += [f"target extended-remote :{rig.gdb_port}", START, "break met", "continue"]
        commands += [word for hart in range(on) for word in (f"thread {hart + 1}", listing(hart))]
        said = run_gdb(elf, commands)
    check_harts_that_are_off(said[START], on)
    for hart in range(on):
        listed = listed_pcs(said[listing(hart)])
        assert len(listed) > 100
        assert retired_pcs(Path(f"{log}.{hart}"))[hart : hart + len(listed)] == listed
