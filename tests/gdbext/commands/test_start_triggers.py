"""`trace start -trigger-on, -trigger-off, -trigger-notify` in the real gdb, through a real OpenOCD.

What the history has to be is cut out of what the hart retires in a run that is traced from end to end: the simulated
hart runs a program the same way every time.
"""

import re
from pathlib import Path
from typing import NamedTuple

import pytest

from rvtrace_gdb.console.bench.rig import Rig
from tests.endtoend.retired_instructions import retired_pcs
from tests.gdbext.commands.test_start_filters import Places, listed, places
from tests.gdbext.filter_rig import FilterRig
from tests.gdbext.gdb_process import SOURCE, ask_gdb, every_gdb, run_gdb
from tests.gdbext.runs_in_turn import said_in_turn
from tests.helpers.amounts import long_only
from tests.helpers.cross_compiler import demo

ALL = "trace history /a 1,1000000"
TO_THE_END = ["break finish", "continue", ALL]


BEGIN = 0x8000_0000
"""Where the program begins, to which nothing leads but a reset."""


class Traced(NamedTuple):
    """A program, where its functions are, all that runs until its end, and what gdb said, by run."""

    elf: Path
    known: Places
    retired: list[int]
    said: dict[str, dict[str, str]]


@pytest.fixture(scope="module")
def elf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return demo(tmp_path_factory.mktemp("triggers"))


@pytest.fixture(scope="module")
def traced(elf: Path, tmp_path_factory: pytest.TempPathFactory) -> Traced:
    """Runs on one target, whose encoder has filters, too. The last run is without triggers, after all the others."""
    folder, known = tmp_path_factory.mktemp("runs"), places(elf)
    asked = {start_of(*one): [start_of(*one), "hbreak finish", *TO_THE_END[1:], "trace gaps 1,1000"] for one in TRACED}
    asked |= {str(one): [marking(*one), *TO_THE_END[:2], "trace events 1,1000"] for one in MARKS}
    asked["between"] = looking_in_between(known)
    asked["filters"] = [FILTERS_AND_TRIGGERS, *TO_THE_END]
    plain = ["trace start", *TO_THE_END, "trace gaps", "trace status"]
    asked["all"] = [*refused(known), *FREE, *said_in_every_way(known), *plain]
    said = said_in_turn(FilterRig(elf, folder / "rig", "--log-retired", str(folder / "log")), asked)
    pcs = retired_pcs(folder / "log")  # of what is not traced it has nothing
    last = pcs[len(pcs) - pcs[::-1].index(BEGIN) - 1 :]
    return Traced(elf, known, last, said)


def slices(pcs: list[int], on: set[int], off: set[int]) -> list[list[int]]:
    """The pieces from where tracing goes on to before where it goes off; it is on from the start without *on*."""
    found: list[list[int]] = [] if on else [[]]
    tracing = not on
    for pc in pcs:
        if pc in on and not tracing:
            tracing = True
            found.append([])
        elif pc in off:
            tracing = False
        if tracing:
            found[-1].append(pc)
    assert 20 < sum(map(len, found)) < len(pcs)
    return found


def joined(pieces: list[list[int]]) -> list[int]:
    return [pc for piece in pieces for pc in piece]


TRACED = [
    (["add"], ["mul"], ""),
    (["on_trap"], ["fib", "classify"], "-format etrace -data"),
    *long_only(([], ["on_trap"], "-implicit-return full"), (["classify", "on_trap"], [], "-btm -timestamps")),
]


def start_of(on: list[str], off: list[str], options: str) -> str:
    asked = [f"-trigger-on {','.join(on)}"] * bool(on) + [f"--trigger-off {name}" for name in off]
    return f"trace start {' '.join(asked)} {options}"


@pytest.mark.parametrize(("on", "off", "options"), TRACED)
def test_what_is_traced(traced: Traced, on: list[str], off: list[str], options: str) -> None:
    start, known = start_of(on, off, options), traced.known
    said = traced.said[start]
    pieces = slices(traced.retired, {known[name][0] for name in on}, {known[name][0] for name in off})
    assert listed(said[ALL]) == joined(pieces)
    assert "encoder0 " + ("begins to trace" if on else "ends") in said[start]


STOPS = ["add", "mul", "add", "on_trap", *long_only("mul", "add")]


def looking_in_between(known: Places) -> list[str]:
    commands = ["trace start -trigger-on add -trigger-off mul", "trace status", "stepi", "trace history 1,5"]
    for number, name in enumerate(STOPS):
        kind = "tbreak" if number == 2 else "thbreak"
        commands += [f"{kind} *{known[name][0]:#x}{' ' * number}", f"continue{' ' * number}"]
        commands += [f"print/x $pc + {number}", f"trace history 1,+1{' ' * number}", f"stepi{' ' * number}"]
    return [*commands, "thbreak finish", *TO_THE_END[1:]]


def test_with_breakpoints_and_looks_in_between(traced: Traced) -> None:
    """Breakpoints of the user, hard and soft, also where the triggers are; and reading out does not switch it on."""
    known, said = traced.known, traced.said["between"]
    assert "nothing has been traced yet" in said["trace history 1,5"]
    at = [int(said[f"print/x $pc + {number}"].split()[-1], 16) - number for number in range(len(STOPS))]
    assert at == [known[name][0] for name in STOPS]
    assert listed(said[ALL]) == joined(slices(traced.retired, {known["add"][0]}, {known["mul"][0]}))


MARKS = [("", {"add": 0, "mul": 0, "classify": 4}), ("-format etrace", {"fib": 0, "classify": 4})]


def marking(options: str, marks: dict[str, int]) -> str:
    named = ",".join(f"{name}+{offset}" if offset else name for name, offset in marks.items())
    return f"trace start {options} -trigger-notify {named} -trigger-off on_trap"


@pytest.mark.parametrize(("options", "marks"), MARKS)
def test_marks(traced: Traced, options: str, marks: dict[str, int]) -> None:
    """As often as the place is reached while it is traced; not where E-Trace reports the place anyhow (add, mul)."""
    known, said = traced.known, traced.said[str((options, marks))]
    marked = re.findall(r"@\d+\t0x([0-9a-f]+) <[^>]*>:\tsync: trace event", said["trace events 1,1000"])
    wanted = {known[name][0] + offset for name, offset in marks.items()}
    before = joined(slices(traced.retired, set(), {known["on_trap"][0]}))
    assert [int(pc, 16) for pc in marked] == [pc for pc in before if pc in wanted]
    assert wanted == {int(pc, 16) for pc in marked}


FILTERS_AND_TRIGGERS = "trace start -function classify,fib -trigger-on on_trap -trigger-off mul"


def test_triggers_from_outside(traced: Traced, tmp_path: Path) -> None:
    """They fire while the program stands at a breakpoint; and an output tells when the trace goes on and off.

    This encoder has no filters, which is said where one is asked for.
    """
    elf, known, retired, _ = traced
    door, devices = tmp_path / "door", tmp_path / "devices.toml"
    devices.write_text("[encoder0]\ntrigger_inputs = 2\ntrigger_outputs = 1\n")
    rig = Rig(elf, tmp_path / "rig", "--devices", str(devices), "--side-door", str(door))
    fire = (
        "python import socket; s = socket.socket(socket.AF_UNIX); s.connect({!r});"
        " s.sendall(b'TRIGGER encoder0 {}\\n'); print(s.recv(100)); s.close()"
    )
    stops = [known["classify"][0], known["on_trap"][0]]
    start = "trace start -trigger-input 0=off,1=on -trigger-output 0=start,0=stop"
    commands = [without := "trace start -function fib", start]
    for place, number in zip(stops, (1, 0), strict=True):
        commands += [f"tbreak *{place:#x}", "continue", fire.format(str(door), number)]
    with rig:
        begin = [SOURCE, f"set trace target {rig.target_file}", f"target extended-remote :{rig.gdb_port}"]
        out = run_gdb(elf, [*begin, *commands, *TO_THE_END])
        said = (rig.folder / "sim.log").read_text()
    line = "encoder0 at 0x20000000: has no filters (trTeInstFilters stays 0): trace everything"
    assert out[without].strip() == line
    assert "encoder0 trigger input 0: trace-off, trigger input 1: trace-on" in out[start]
    first = retired.index(stops[0])
    assert listed(out[ALL]) == retired[first : retired.index(stops[1], first)]
    assert said.count("encoder0: trigger output 0") >= 2


FREE = [f"monitor set_reg {{tselect {number}}}; return [get_reg -force tdata1]" for number in range(4)]


def refused(known: Places) -> dict[str, str]:
    """Commands, and the line each of them prints."""
    return {
        "trace start -trigger-on": "trace start: -trigger-on takes places in the program, got: none.",
        "trace start -trigger-on -btm": "trace start: -trigger-on takes places in the program, got: -btm.",
        "trace start -trigger-on nix": 'trace start: -trigger-on nix: No symbol "nix" in current context.',
        "trace start -trigger-off ticks": "trace start: -trigger-off ticks: ticks is neither a function nor an address",
        "trace start -trigger-off fib,": "trace start: -trigger-off : a place is missing",
        "trace start -trigger-on fib -trigger-off &fib": f"{known['fib'][0]:#x} is to switch the trace on and off:"
        " name different places",
        "trace start -trigger-on fib,add,mul -trigger-off main,classify": "hart 0 has 4 free triggers, 5 places need"
        " one each: name fewer, or delete hardware breakpoints and watchpoints",
        "trace start -trigger-on fib -trigger-control 0x10": "encoder0 at 0x20000000: does not keep 0x10 in"
        " trTeTrigDbgControl (it reads 0x0)",
    }


def said_in_every_way(known: Places) -> list[str]:
    """Commands for the two places fib and mul."""
    mul = hex(known["mul"][0])
    ways = ["'demo.c:fib, mul+0'", f"&fib -trigger-on {mul}"]
    ways += long_only("fib,mul", f"&fib,{mul}", "demo.c:fib,mul+0", "'fib, mul'", "fib -trigger-on mul")
    return [f"trace start -trigger-on {way}" for way in ways]


def test_what_cannot_be_done(traced: Traced) -> None:
    said, lines = traced.said["all"], refused(traced.known)
    assert {command: said[command].strip() for command in lines} == lines
    assert [said[command].split()[-1] for command in FREE] == ["0x2000000000000000"] * 4
    assert "0 gaps" in said["trace status"] and "begins" not in said["trace status"]
    assert listed(said[ALL]) == traced.retired


def test_places_can_be_said_in_every_way_gdb_knows(traced: Traced) -> None:
    """And triggers of a start before are not in the way of the next one."""
    fib, mul = traced.known["fib"][0], traced.known["mul"][0]
    for command in said_in_every_way(traced.known):
        said = traced.said["all"][command]
        assert f"encoder0 begins to trace at {fib:#x} and {mul:#x}\n" in said, command
        assert "still set" not in said


@every_gdb
def test_completion(elf: Path, gdb: str) -> None:
    offered = {
        "-trigger-o": ["-trigger-off", "-trigger-on", "-trigger-output"],
        "-trigger-input ": [],
        "-trigger-on fi": ["-trigger-on fib", "-trigger-on finish"],
        "-trigger-off fib,cl": ["-trigger-off fib,classify"],
        "--trigger-notify ma": ["--trigger-notify main"],
        "-range fib,on_": ["-range fib,on_trap"],
        "-function add,mu": ["-function add,mul"],
        "-trigger-control ": [],
        "-timestamp-prescale 1": ["-timestamp-prescale 1", "-timestamp-prescale 16"],
    }
    commands = [f"complete trace start {typed}" for typed in offered]
    out = ask_gdb(elf, [SOURCE, *commands], gdb=gdb)
    found = {typed: out[f"complete trace start {typed}"].splitlines() for typed in offered}
    assert found == {typed: [f"trace start {text}" for text in texts] for typed, texts in offered.items()}


def test_sinks_and_harts_are_offered(elf: Path, tmp_path: Path) -> None:
    """As the target description has them, without a target; without a description nothing."""
    board = tmp_path / "board.toml"
    board.write_text((Path(__file__).parents[3] / "examples" / "targets" / "two-clusters.toml").read_text())
    offered = {
        "-hart ": [f"-hart {number}" for number in range(7)],
        "-hart 2,": [f"-hart 2,{number}" for number in (0, 1, 3, 4, 5, 6)],
    }
    commands = [f"complete trace start {typed}" for typed in (*offered, "-to ")]
    out = ask_gdb(elf, [SOURCE, f"set trace target {board}", *commands])
    assert {typed: out[f"complete trace start {typed}"].split("\n")[:-1] for typed in offered} == {
        typed: [f"trace start {text}" for text in texts] for typed, texts in offered.items()
    }
    sinks = re.findall(r'name = "(\w+)"\ntype = "(?:ram_sink|pib_sink|atb_bridge)"', board.read_text())
    assert sinks and out["complete trace start -to "].split() == [
        word for name in sorted(sinks) for word in ("trace", "start", "-to", name)
    ]
    assert ask_gdb(elf, [SOURCE, "complete trace start -to "])["complete trace start -to "].strip() == ""
