"""`set trace hart` says whose past `trace goto` leads to, as it says whose history is listed: gdb's thread follows.

Two harts that do different work, through a real OpenOCD, and their capture alone. What is expected comes from what each
of the simulated harts itself says it retired.
"""

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from rvtrace_gdb.console.bench.rig import Rig
from tests.endtoend.retired_instructions import ROW, retired_pcs
from tests.gdbext.gdb_process import GDBS, SOURCE, run_gdb
from tests.gdbext.replay.test_replay import nm
from tests.gdbext.runs_in_turn import said_in_turn
from tests.helpers import qemu
from tests.helpers.amounts import long_only
from tests.transport.simulated.harts import PROGRAMS, compiled

HARTS = 2
TO_THE_END = ["hbreak done", "continue", "continue "]
"""Each hart comes there once."""
ALL = [f"trace history /a 1,{1000000 + hart}" for hart in range(HARTS)]
GOES = [
    "trace goto second", "trace goto 5", "trace goto -next first", "trace goto -3", "trace goto second ",
    "trace goto begin", "reverse-stepi", "stepi", "trace goto end", "reverse-continue",
]  # fmt: skip
"""In the past of hart 1, which was set; gdb's own go on where its thread is."""
REFUSED = ["trace goto nosuch", "trace goto 100000"]
WROTE = "trace goto -wrote result[1]"


class Ran(NamedTuple):
    """*pcs*: what each hart did; *said*: by gdb; *capture*: what was traced, *tandem*: with registers and memory."""

    elf: Path
    pcs: list[list[int]]
    said: dict[str, str]
    capture: Path
    tandem: bool

    def place(self, command: str) -> tuple[int, int, int]:
        """Thread, number and pc after a command."""
        thread, number, pc = self.said[place_after(command)].rpartition(": ")[2].split()
        return int(thread), int(number), int(pc, 16)

    def check(self, command: str, hart: int, number: int) -> None:
        assert self.place(command) == (hart + 1, number, self.pcs[hart][number - 1]), (command, self.said[command])


def place_after(command: str) -> str:
    return f'printf "{command}: %d %d %#lx", $_thread, $trace_pos, $pc'


def looked_at(*commands: str) -> list[str]:
    return [one for command in commands for one in (command, place_after(command))]


def chosen() -> list[str]:
    """With hart 1 set: to places, and with thread 1 selected by the user again, to others; then without it."""
    commands = ["thread 1", "set trace hart 1", *looked_at(*GOES, "thread 1 "), "trace history", *looked_at(*REFUSED)]
    commands += [
        "trace goto end ",
        "thread 1  ",
        *looked_at(WROTE),
        "thread 1   ",
        *looked_at("reverse-stepi ", "trace goto 6"),
    ]
    return [*commands, "set trace hart", "thread 1    ", *looked_at("trace goto 7")]


def executions(elf: Path, pcs: Sequence[int], name: str) -> list[int]:
    """The numbers at which a function begins."""
    start = nm(elf)[name]
    return [number for number, pc in enumerate(pcs, 1) if pc == start]


def check_chosen(ran: Ran, end: int | None) -> None:
    """*end*: the number where hart 0 is before it moves, None in the present."""
    mine, other = ran.pcs[1], ran.pcs[0]
    first, second = (executions(ran.elf, mine, name) for name in ("first", "second"))
    numbers = [second[-1], 5, next(n for n in first if n > 5), len(mine) - 2, second[-1], 1, 1, 2, len(mine), 1]
    for command, number in zip(GOES, numbers, strict=True):
        ran.check(command, 1, number)
    assert ran.said[GOES[0]].splitlines().count("Thread 2 is selected now, which is hart 1 (`set trace hart`).") == 1
    assert "is selected now" not in ran.said[GOES[1]]
    assert ran.said["trace history"].splitlines()[-10].startswith("1\t"), "around the place of hart 1"
    for command in ("thread 1 ", *REFUSED):
        assert ran.place(command)[:2] == (1, -1 if end is None else end)
    assert [ran.said[command].strip() for command in REFUSED] == [
        'trace goto: nosuch: No symbol "nosuch" in current context.',
        f"there is no number 100000 in the history, which has 1 to {len(mine)}",
    ]
    ran.check("reverse-stepi ", 0, len(other) if end is None else end - 1)
    ran.check("trace goto 6", 1, 6)
    ran.check("trace goto 7", 0, 7)
    if ran.tandem:
        ran.check(WROTE, 1, stores(ran.elf, mine)[-1])
    else:
        assert ran.said[WROTE].startswith("Nothing wrote") and ran.place(WROTE)[0] == 1  # the harts share that memory
    for command, output in ran.said.items():
        assert "was not traced" not in output and "Python Exception" not in output, (command, output)


def stores(elf: Path, pcs: Sequence[int]) -> list[int]:
    """The numbers at which main stores into `result`."""
    code = subprocess.run(
        ["riscv64-unknown-elf-objdump", "-d", "--disassemble=main", elf], check=True, capture_output=True, text=True
    ).stdout
    (address,) = (int(line.split(":")[0], 16) for line in code.splitlines() if re.search(r"\t(c\.)?sw\t", line))
    return [number for number, pc in enumerate(pcs, 1) if pc == address]


@pytest.fixture(scope="module")
def elf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("apart"), PROGRAMS / "apart.c")


BEGIN = 0x8000_0000
"""Where each hart begins, to which nothing leads but a reset."""


def whole(elf: Path, folder: Path) -> list[list[int]]:
    """All that each hart executes up to there, and further; the same in every run."""
    rig = Rig(elf, folder / "rig", "--harts", str(HARTS), "--log-retired", str(folder / "log"))
    said_in_turn(rig, {"": ["trace start", "hbreak done", "continue", "continue"]})
    logs = [retired_pcs(folder / f"log.{hart}") for hart in range(HARTS)]
    return [pcs[len(pcs) - pcs[::-1].index(BEGIN) - 1 :] for pcs in logs]


@pytest.fixture(scope="module")
def retired(elf: Path, tmp_path_factory: pytest.TempPathFactory) -> list[list[int]]:
    """What each hart does, the same in every run: of hart 0 as long as it waits for hart 1, too."""
    return whole(elf, tmp_path_factory.mktemp("retired"))


@pytest.fixture(scope="module", params=["", *long_only("tandem", "-format etrace")])
def live(
    request: pytest.FixtureRequest, elf: Path, retired: list[list[int]], tmp_path_factory: pytest.TempPathFactory
) -> Ran:
    folder = tmp_path_factory.mktemp("live")
    capture = folder / "x.rvt"
    tandem = ["--tandem", str(folder / "x.tvt")] if request.param == "tandem" else []
    start = "trace start" if tandem else f"trace start {request.param}"
    with Rig(elf, folder / "rig", "--harts", str(HARTS), *tandem) as rig:
        begin = [SOURCE, f"set trace target {rig.target_file}", f"trace connect :{rig.gdb_port}", start, *TO_THE_END]
        lists = [one for hart, every in enumerate(ALL) for one in (f"set trace hart {hart} ", every)]
        said = run_gdb(elf, [*begin, *lists, *chosen(), *looked_at("trace live"), f"trace save {capture}"])
    pcs = [[int(pc, 16) for _, pc in ROW.findall(said[every])] for every in ALL]
    for listed, own in zip(pcs, retired, strict=True):
        both = min(len(listed), len(own))
        assert both > 150 and listed[:both] == own[:both]
    assert pcs[0][:150] != pcs[1][:150]
    return Ran(elf, pcs, said, capture, bool(tandem))


def test_in_a_target(live: Ran) -> None:
    check_chosen(live, None)
    assert live.place("trace live")[:2] == (1, -1)


@pytest.mark.parametrize("gdb", GDBS[-1:])
def test_in_a_capture_alone(live: Ran, gdb: str) -> None:
    """Each hart in it is a thread, that of the hart that was set is selected. It stands where the trace ends, which is
    known: both harts were halted there.
    """
    commands = [f"trace open {live.capture}", *looked_at("trace replay"), "info threads", *chosen(), "disconnect"]
    commands += ["set trace hart 1 ", *looked_at("trace replay "), "disconnect ", "set trace hart 7", "trace replay  "]
    ran = live._replace(said=run_gdb(live.elf, [SOURCE, *commands], gdb=gdb))
    ends = [len(pcs) + 1 for pcs in live.pcs]
    assert ran.place("trace replay")[:2] == (1, ends[0]) and ran.place("trace replay ")[:2] == (2, ends[1])
    assert re.findall(r"^[* ] (\d) +Thread (\d)", ran.said["info threads"], re.M) == [("1", "1"), ("2", "2")]
    assert ran.said["trace replay  "].strip() == "hart 7 is not in this trace, which has harts 0, 1"
    check_chosen(ran, ends[0])


@pytest.mark.parametrize("live", [""], indirect=True)
def test_a_thread_that_stands_for_all_harts(live: Ran, tmp_path: Path) -> None:
    """OpenOCD gives one hart a thread that does not say which hart it is: it goes where is set."""
    goes = ["trace goto second", "trace goto -2", "trace goto second "]
    with Rig(live.elf, tmp_path / "rig") as rig:
        begin = [SOURCE, f"trace open {live.capture}", f"trace connect :{rig.gdb_port}", "set trace hart 1"]
        said = run_gdb(live.elf, [*begin, *looked_at(*goes[:2]), "set trace hart", *looked_at(goes[2])])
    places = [live._replace(said=said).place(command)[:2] for command in goes]
    last = [executions(live.elf, pcs, "second")[-1] for pcs in live.pcs]
    assert places == [(1, last[1]), (1, len(live.pcs[1]) - 1), (1, last[0])] and last[0] != last[1]


@pytest.mark.parametrize("live", [""], indirect=True)
def test_a_hart_without_a_thread(live: Ran, tmp_path: Path) -> None:
    """QEMU with hart 0 alone, and the trace of both."""
    with qemu.running(live.elf, tmp_path, logged=False) as machine:
        begin = [SOURCE, f"trace open {live.capture}", f"trace connect :{machine.port}", "set trace hart 1"]
        said = run_gdb(live.elf, [*begin, *looked_at("trace goto 6"), "set trace hart", *looked_at("trace goto 7")])
    ran = live._replace(said=said)
    assert said["trace goto 6"].strip() == (
        "`set trace hart` names hart 1, for which gdb has no thread that could go there: `set trace hart auto` selects"
        " the past of hart 0, that of the selected thread"
    )
    assert ran.place("trace goto 6")[:2] == (1, -1)
    ran.check("trace goto 7", 0, 7)
