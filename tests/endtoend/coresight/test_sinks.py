"""Real gdb and real OpenOCD: two harts behind bridges, whose trace goes through a funnel into each kind of TMC.

What is expected of each hart is the list of what it retired. One OpenOCD serves all: each trace is started anew.
"""

import re
import struct
from pathlib import Path
from typing import NamedTuple

import pytest

from rvtrace_gdb.console.bench.rig import Rig
from tests.endtoend.retired_instructions import listed_pcs, retired_pcs
from tests.gdbext.gdb_process import SOURCE, run_gdb
from tests.transport.simulated.harts import PROGRAMS, compiled

HARTS = 2
OFF = 2
"""A hart without power: no register that needs it answers."""


def component(name: str, kind: str, base: int, *keys: str) -> str:
    return "\n".join(["[[component]]", f'name = "{name}"', f'type = "{kind}"', f"base = {base:#x}", *keys, ""])


def replicator(number: int, sink: str) -> str:
    """One that feeds a sink, and the next one."""
    to = f'to = ["{sink}", "rep{number + 1}"]'
    return component(f"rep{number}", "coresight_replicator", 0x4003_0000 + 0x1000 * number, to)


BOARD = "\n".join([
    '[target]\npower = "hart"\n',
    *(
        component(f"e{n}", "encoder", 0x4000_0000 + n * 0x1000, f"hart = {n}", f'to = ["b{n}"]')
        + component(
            f"b{n}", "atb_bridge", 0x4001_0000 + n * 0x1000, f"id = {0x10 + n}", f"hart = {n}", 'to = ["cluster0"]'
        )
        for n in range(HARTS + 1)
    ),
    component("cluster0", "funnel", 0x4002_0000, 'to = ["static0"]', "inputs = {b0 = 1, b1 = 0, b2 = 2}"),
    '[[component]]\nname = "static0"\ntype = "coresight_static_funnel"\nto = ["main"]\n',
    component("main", "coresight_funnel", 0x4002_1000, 'to = ["rep0"]', "inputs = {static0 = 5}"),
    replicator(0, "etb0"), replicator(1, "etf0"), replicator(2, "etr1"), replicator(3, "etr2"), replicator(4, "linux0"),
    replicator(5, "stuck0"), component("rep6", "coresight_replicator", 0x4003_6000, 'to = ["etr3"]'),
    component("etb0", "coresight_tmc", 0x4004_0000, 'mode = "SRAM"'),
    component("etf0", "coresight_tmc", 0x4004_1000, 'mode = "FIFO"', 'to = ["etr0"]'),
    component("etr0", "coresight_tmc", 0x4004_2000, 'mode = "SMEM"', "start = 0x50000000", "size = 0x10000"),
    component("etr1", "coresight_tmc", 0x4004_3000, 'mode = "SG"', "start = 0x87f00000"),
    component("etr2", "coresight_tmc", 0x4004_4000, 'mode = "SMEM"', "start = 0x50010000", "size = 0x200"),
    component("linux0", "coresight_tmc", 0x4004_5000, 'mode = "SRAM"'),
    component("stuck0", "coresight_tmc", 0x4004_6000, 'mode = "SMEM"', "start = 0x50010200", "size = 0x8000"),
    component("etr3", "coresight_tmc", 0x4004_7000, 'mode = "SG"', "start = 0x87f10000"),
])  # fmt: skip
DEVICES = """
[e2]
off = true
[etb0]
sram_size = 0x8000
[b0]
width = 1
[etr2]
soc_600 = true
memory_width = 32
[linux0]
claimed = 2
[stuck0]
not_ready = true
"""
PAGES = (0x87E0_5000, 0x87E0_1000, 0x87E0_2000, 0x87E0_0000)
TABLE = 0x87F0_0000
SINKS = ("etb0", "etr0", "etr1", "etr2", "stuck0")
CLAIMS = {name: int(base, 16) + 0xFA4 for name, base in re.findall(r'name = "(\w+)"\ntype.*\nbase = (\w+)', BOARD)}
"""Where each component tells who claims it: CLAIMCLR."""
WRAPPED = "etr2"


WRONG_TABLE = 0x87F1_0000
WRONG = {
    "has 0x00000000 at 0x87f10000, which is no page": 0,
    "leads back to its page at 0x87f10000": WRONG_TABLE >> 12 << 4 | 3,
    "the bus refused to store its trace (MemErr, STS reads 0x": 0x7000_0000 >> 12 << 4 | 1,
}
"""First entries of a table that are wrong, and what is said: of no type, the table itself, a page without memory."""


def wrong_table(number: int, entry: int) -> list[str]:
    """The commands of a trace through the table with an entry. Only the last one starts."""
    said = [f"set {{unsigned}} {WRONG_TABLE} = {entry}", "trace start -to etr3" + " " * number]
    return [*said, "continue", "trace history 1,3", "trace stop" + " " * 20] if number == 2 else said


class Outcome(NamedTuple):
    """*said*: what gdb printed. *retired*: of each hart."""

    said: dict[str, str]
    retired: list[list[int]]

    def of(self, command: str, sink: str) -> str:
        return self.said[told(command, sink)]


def told(command: str, sink: str) -> str:
    """A command in a spelling of its own for each sink."""
    return command + " " * SINKS.index(sink)


def listing(hart: int, sink: str) -> str:
    return f"trace history /at {hart + 1},1000{SINKS.index(sink)}00"


def table() -> bytes:
    """The scatter-gather table: page numbers, shifted left by 4; 2: a data page, 1: the last one."""
    entries = [page >> 12 << 4 | (1 if page == PAGES[-1] else 2) for page in PAGES]
    return struct.pack(f"<{len(entries)}I", *entries)


def traced(sink: str) -> list[str]:
    """The commands of one trace: it is started, runs on, is listed in the middle, runs on again, and is stopped."""
    found = [f"trace start -to {sink}", told("continue", sink)]
    found += [told("trace status", sink)] * (sink in ("etr0", WRAPPED))
    found += [told("trace history", sink)] * (sink in ("stuck0", WRAPPED)) + [told("stepi", sink)]
    # Not by threads: gdb would read the registers of each.
    found += [word for hart in range(HARTS) for word in (f"set trace hart {hart}", listing(hart, sink))]
    found += ["set trace hart auto", told("trace stop", sink)]
    return [*found, told(f"monitor read_memory {CLAIMS[sink]:#x} 32 1", sink)]


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    folder = tmp_path_factory.mktemp("coresight")
    elf = compiled(folder, PROGRAMS / "meet.c", options=(f"-DHARTS={HARTS}", "-DEVERY=12"))
    board, devices, log, pages = folder / "board.toml", folder / "devices.toml", folder / "log", folder / "pages"
    board.write_text(BOARD)
    devices.write_text(DEVICES)
    pages.write_bytes(table())
    options = ("--target", str(board), "--devices", str(devices), "--log-retired", str(log))
    with Rig(elf, folder / "rig", *options) as rig:
        commands = [SOURCE, f"set trace target {rig.target_file}", "set trust-readonly-sections on"]
        commands += [f"trace connect :{rig.gdb_port}", f"restore {pages} binary {TABLE:#x}", "break met", "trace info"]
        commands += ["trace start -to linux0"]
        commands += [word for number, entry in enumerate(WRONG.values()) for word in wrong_table(number, entry)]
        commands += [f"monitor read_memory {CLAIMS['etr3']:#x} 32 1"]
        said = run_gdb(elf, [*commands, *(word for sink in SINKS for word in traced(sink))])
    return Outcome(said, [retired_pcs(Path(f"{log}.{hart}")) for hart in range(HARTS)])


def packed(pcs: list[int]) -> bytes:
    return struct.pack(f"<{len(pcs)}Q", *pcs)


@pytest.mark.parametrize("sink", SINKS)
def test_what_is_listed_is_what_ran(outcome: Outcome, sink: str) -> None:
    for hart in range(HARTS):
        listed = listed_pcs(re.sub("^(warning|note): .*\n", "", outcome.said[listing(hart, sink)], flags=re.M))
        assert len(listed) > 25
        assert packed(outcome.retired[hart]).find(packed(listed)) % 8 == 0, (sink, hart)


def test_a_hart_that_is_off_is_left_out(outcome: Outcome) -> None:
    """Every access to its encoder or bridge would have been an error."""
    note = f"hart {OFF} is off (examine deferred): it is not traced, and e{OFF} and b{OFF} are not touched"
    assert note in outcome.said["trace start -to etb0"]
    assert f"not read: hart {OFF} is off (examine deferred)" in outcome.said["trace info"]


def test_the_newest_part_of_a_ring_that_wrapped(outcome: Outcome) -> None:
    assert "etr2 at 0x40044000: SMEM 0x50010000, full, 512 bytes, older trace was overwritten" in outcome.of(
        "trace status", WRAPPED
    )
    said = outcome.of("trace history", WRAPPED)
    assert re.search("^warning: .* bytes of an unknown ATB ID: the frames with it were overwritten", said)


def test_one_that_software_on_the_target_uses_is_refused(outcome: Outcome) -> None:
    said = "linux0 at 0x40045000: software on the target uses it (CLAIMCLR reads 0x2), as Linux does"
    assert outcome.said["trace start -to linux0"].startswith(said)


@pytest.mark.parametrize("number", range(len(WRONG)))
def test_a_wrong_table_of_pages(outcome: Outcome, number: int) -> None:
    """It is refused when the trace starts; what no memory took, when it is read. Either way etr3 is given back."""
    where = "trace history 1,3" if number == 2 else "trace start -to etr3" + " " * number
    said = outcome.said[where]
    assert "etr3 at 0x40047000: " in said and list(WRONG)[number] in said
    assert outcome.said[f"monitor read_memory {CLAIMS['etr3']:#x} 32 1"] == "0x0\n"


def test_one_that_does_not_stop_is_named_and_what_it_stored_is_shown(outcome: Outcome) -> None:
    said = outcome.of("trace history", "stuck0")
    assert "stuck0 at 0x40046000: did not stop: FFCR did not reach FlushMan=0 within 1 s" in said
    assert "its capture was left on" in said


def test_status_and_info_tell_of_all_components_on_the_way(outcome: Outcome) -> None:
    said = outcome.of("trace status", "etr0")
    assert re.findall(r"^(?:link|bridge|funnel): +(\w+) at \S+: on$", said, re.M) == [
        "cluster0", "b0", "b1", "main", "rep0", "rep1", "etf0",
    ]  # fmt: skip
    assert re.search(r"^sink:     etr0 at 0x40042000: SMEM 0x50000000, \d+ of 65536 bytes$", said, re.M)
    info = outcome.said["trace info"]
    assert "to b0, cluster0 (input 1), main (input 5), rep0, rep1, etf0, etr0" in info
    for built in ("ETB, memory of 64 bits, 32768 bytes of its own", "ETR, memory of 256 bits, scatter-gather"):
        assert built in info


@pytest.mark.parametrize("sink", [sink for sink in SINKS if sink != "stuck0"])
def test_a_trace_that_was_stopped_has_given_its_components_back(outcome: Outcome, sink: str) -> None:
    assert outcome.of(f"monitor read_memory {CLAIMS[sink]:#x} 32 1", sink) == "0x0\n"
    said = outcome.of("trace stop", sink)
    assert re.search(rf"^sink:     {sink} at .*, \d+ bytes were read, through a ring of \d+", said, re.M)
