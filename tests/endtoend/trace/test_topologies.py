"""Real gdb and real OpenOCD: four harts in two clusters, through two levels of funnels, to a sink in system memory and
one with memory of its own. What is expected of each hart is the list of what it retired.
"""

import re
from pathlib import Path
from typing import NamedTuple

import pytest

from rvtrace_gdb.console.bench.rig import Rig
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.session.capture.file import load
from rvtrace_gdb.session.formats.sinks import decode
from tests.endtoend.retired_instructions import listed_pcs, retired_pcs
from tests.gdbext.gdb_process import SOURCE, run_gdb
from tests.helpers.amounts import long_only
from tests.transport.simulated.harts import PROGRAMS, compiled

HARTS = 4
BACK = 2
"""The hart that goes back, while hart 0 stands at a breakpoint."""
CLUSTERS = [f"cluster{number}" for number in range(2)]


def component(name: str, kind: str, base: int, *keys: str) -> str:
    return "\n".join(["[[component]]", f'name = "{name}"', f'type = "{kind}"', f"base = {base:#x}", *keys, ""])


BOARD = "\n".join(
    [
        *(
            component(f"e{n}", "encoder", 0x4000_0000 + n * 0x1000, f"hart = {n}", f'to = ["{CLUSTERS[n // 2]}"]')
            for n in range(HARTS)
        ),
        component("cluster0", "funnel", 0x4001_0000, 'to = ["top"]', "inputs = {e0 = 3, e1 = 15}"),
        component("cluster1", "funnel", 0x4001_1000, 'to = ["top"]'),
        component("top", "funnel", 0x4001_2000, 'to = ["memory", "own"]', "inputs = {cluster0 = 1, cluster1 = 0}"),
        component("memory", "ram_sink", 0x4002_0000, 'mode = "SMEM"', "start = 0x50000000", "size = 0x40000"),
        component("own", "ram_sink", 0x4002_1000, 'mode = "SRAM"', "size = 0x8000"),
    ]
)


class Outcome(NamedTuple):
    """*said*: what gdb printed. *retired*: of each hart. *capture*: what was saved."""

    said: dict[str, str]
    retired: list[list[int]]
    capture: Path
    elf: Path

    def sinks(self) -> dict[str, dict[int, list[int]]]:
        """What each sink tells of each hart, decoded on its own."""
        capture, image = load(self.capture), Image.from_elf(self.elf)
        found = {sink.in_force.name: decode([sink], capture.encoders, image).histories for sink in capture.sinks}
        return {name: {hart: list(h.pcs()) for hart, h in of_sink.items()} for name, of_sink in found.items()}

    def row(self, hart: int) -> str:
        return self.said[listing(hart)]


def listing(hart: int) -> str:
    """The command that lists all, in a spelling of its own for each hart."""
    return f"trace history /at {hart + 1},10000000"


SEVERAL = (
    "note: the trace of harts 0 to 3 is in several sinks: of each hart the longest history is shown\n"
)

OPTIONS = [
    "-to own,memory -timestamps -implicit-return full",
    *long_only("-to memory,own -format etrace", "-to memory,own"),
]


@pytest.fixture(scope="module", params=OPTIONS)
def outcome(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    folder = tmp_path_factory.mktemp("clusters")
    elf = compiled(folder, PROGRAMS / "meet.c", options=(f"-DHARTS={HARTS}",))
    board, log, capture = folder / "board.toml", folder / "log", folder / "x.rvt"
    board.write_text(BOARD)
    with Rig(elf, folder / "rig", "--target", str(board), "--log-retired", str(log)) as rig:
        commands = [SOURCE, f"set trace target {rig.target_file}", "set trust-readonly-sections on"]
        commands.append(f"trace connect :{rig.gdb_port}")
        commands += [f"trace start {request.param}", "break met", "continue", "trace status"]
        for hart in range(HARTS):
            commands += [f"thread {hart + 1}", listing(hart)]
        commands += [f"thread {BACK + 1}", "print/x $pc", "reverse-stepi", "print/x  $pc", "trace live"]
        commands += ["print/x   $pc", "show scheduler-locking"]
        said = run_gdb(elf, [*commands, f"trace save {capture}"])
    return Outcome(said, [retired_pcs(Path(f"{log}.{hart}")) for hart in range(HARTS)], capture, elf)


def test_every_hart_is_listed_as_it_ran(outcome: Outcome) -> None:
    for hart in range(HARTS):
        listed = listed_pcs(outcome.said[listing(hart)].removeprefix(SEVERAL))
        assert listed == outcome.retired[hart][hart:]
        assert len(listed) > 300


def test_each_sink_has_a_stream_of_its_own(outcome: Outcome) -> None:
    found = outcome.sinks()
    assert set(found) == {"memory", "own"}
    for histories in found.values():
        assert histories == dict(enumerate(outcome.retired))


def test_what_is_said_of_the_components(outcome: Outcome) -> None:
    said = outcome.said["trace status"]
    assert re.search("^harts:    0 to 3 halted$", said, re.M)
    assert sorted(re.findall(r"^funnel: +(\w+) at \S+: on$", said, re.M)) == ["cluster0", "cluster1", "top"]
    assert re.search(r"^sink:     memory at 0x40020000: SMEM 0x50000000, \d+ of 262144 bytes$", said, re.M)
    assert re.search(r"^sink:     own at 0x40021000: SRAM, \d+ of 32768 bytes$", said, re.M)
    assert re.findall(r"^encoder:  (.*): tracing, ", said, re.M) == [f"e0 to e{HARTS - 1}"]


def test_one_hart_goes_back_and_comes_back(outcome: Outcome) -> None:
    """gdb would step hart 0 over its breakpoint before it moves another one, and fail an assertion on the way back."""
    pcs = [int(outcome.said[f"print/x{spaces}$pc"].split("= ")[1], 16) for spaces in (" ", "  ", "   ")]
    assert pcs[1] == outcome.retired[BACK][-1]
    assert pcs[2] == pcs[0]
    assert outcome.said["show scheduler-locking"] == 'Mode for locking scheduler during execution is "replay".\n'
