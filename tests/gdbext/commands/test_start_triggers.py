"""`trace start -trigger-on, -trigger-off, -trigger-notify` in the real gdb, through a real OpenOCD.

What the history has to be is cut out of what the hart retires in a run that is traced from end to end: the simulated
hart runs a program the same way every time.
"""

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rvtrace_gdb.console.bench.rig import Rig
from tests.endtoend.retired_instructions import ROW, retired_pcs
from tests.gdbext.commands.test_start_filters import Places, places
from tests.gdbext.filter_rig import FilterRig
from tests.gdbext.gdb_process import GDB, SOURCE, every_gdb, run_gdb
from tests.helpers.cross_compiler import demo

ALL = "trace history /a 1,1000000"
Program = tuple[Path, Places, list[int]]
"""The ELF, where its functions are, and all that runs until the end of the program."""


@contextmanager
def connected(rig: Rig) -> Iterator[list[str]]:
    """The commands that gdb begins with."""
    with rig:
        yield [SOURCE, f"set trace target {rig.target_file}", f"target extended-remote :{rig.gdb_port}"]


def session(elf: Path, folder: Path, commands: Iterable[str], gdb: str = GDB) -> dict[str, str]:
    with connected(Rig(elf, folder / "rig")) as begin:
        return run_gdb(elf, [*begin, *commands], gdb=gdb)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Program:
    folder = tmp_path_factory.mktemp("triggers")
    elf, log = demo(folder), folder / "retired.log"
    with connected(Rig(elf, folder / "rig", "--log-retired", str(log))) as begin:
        run_gdb(elf, [*begin, "trace start", "break finish", "continue"])
    return elf, places(elf), retired_pcs(log)


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


def listed(listing: str) -> list[int]:
    return [int(pc, 16) for _, pc in ROW.findall(listing)]


@pytest.mark.parametrize(
    ("on", "off", "options"),
    [
        (["add"], ["mul"], ""),
        ([], ["on_trap"], "-implicit-return full"),
        (["classify", "on_trap"], [], "-btm -timestamps"),
        (["on_trap"], ["fib", "classify"], "-format etrace -data"),
    ],
)
def test_what_is_traced(program: Program, on: list[str], off: list[str], options: str, tmp_path: Path) -> None:
    elf, known, retired = program
    asked = [f"-trigger-on {','.join(on)}"] * bool(on) + [f"--trigger-off {name}" for name in off]
    start = f"trace start {' '.join(asked)} {options}"
    out = session(elf, tmp_path, [start, "hbreak finish", "continue", ALL, "trace gaps 1,1000"])
    pieces = slices(retired, {known[name][0] for name in on}, {known[name][0] for name in off})
    assert listed(out[ALL]) == joined(pieces)
    assert "encoder0 " + ("begins to trace" if on else "ends") in out[start]


def test_with_breakpoints_and_looks_in_between(program: Program, tmp_path: Path) -> None:
    """Breakpoints of the user, hard and soft, also where the triggers are; and reading out does not switch it on."""
    elf, known, retired = program
    on, off = known["add"][0], known["mul"][0]
    commands = ["trace start -trigger-on add -trigger-off mul", "trace status", "stepi", "trace history 1,5"]
    at, here = [], 1
    for number, name in enumerate(["add", "mul", "add", "mul", "on_trap", "add"]):
        here = retired.index(known[name][0], here)
        at.append(retired[here])
        kind = "tbreak" if number == 2 else "thbreak"
        commands += [f"{kind} *{at[-1]:#x}", "continue", f"print/x $pc + {number}", "trace history 1,+1", "stepi"]
        here += 1
    out = session(elf, tmp_path, [*commands, "thbreak finish", "continue", ALL])
    assert "nothing has been traced yet" in out["trace history 1,5"]
    assert [int(out[f"print/x $pc + {number}"].split()[-1], 16) - number for number in range(len(at))] == at
    assert listed(out[ALL]) == joined(slices(retired, {on}, {off}))


@pytest.mark.parametrize(
    ("options", "marks"), [("", {"add": 0, "mul": 0, "classify": 4}), ("-format etrace", {"fib": 0, "classify": 4})]
)
def test_marks(program: Program, options: str, marks: dict[str, int], tmp_path: Path) -> None:
    """As often as the place is reached while it is traced; not where E-Trace reports the place anyhow (add, mul)."""
    elf, known, retired = program
    named = ",".join(f"{name}+{offset}" if offset else name for name, offset in marks.items())
    commands = [f"trace start {options} -trigger-notify {named} -trigger-off on_trap", "break finish", "continue"]
    out = session(elf, tmp_path, [*commands, "trace events 1,1000"])
    marked = re.findall(r"@\d+ 0x([0-9a-f]+) <[^>]*>:\tsync: trace event", out["trace events 1,1000"])
    wanted = {known[name][0] + offset for name, offset in marks.items()}
    traced = joined(slices(retired, set(), {known["on_trap"][0]}))
    assert [int(pc, 16) for pc in marked] == [pc for pc in traced if pc in wanted]
    assert wanted == {int(pc, 16) for pc in marked}


def test_filters_and_triggers(program: Program, tmp_path: Path) -> None:
    """What is in both."""
    elf, known, retired = program
    with connected(FilterRig(elf, tmp_path / "rig")) as begin:
        start = "trace start -function classify,fib -trigger-on on_trap -trigger-off mul"
        out = run_gdb(elf, [*begin, start, "break finish", "continue", ALL])
    pieces = joined(slices(retired, {known["on_trap"][0]}, {known["mul"][0]}))
    inside = [known[name] for name in ("classify", "fib")]
    found = [pc for pc in pieces if any(start <= pc < end for start, end in inside)]
    assert len(found) > 20 and listed(out[ALL]) == found


def test_triggers_from_outside(program: Program, tmp_path: Path) -> None:
    """They fire while the program stands at a breakpoint; and an output tells when the trace goes on and off."""
    elf, known, retired = program
    door, devices = tmp_path / "door", tmp_path / "devices.toml"
    devices.write_text("[encoder0]\ntrigger_inputs = 2\ntrigger_outputs = 1\n")
    rig = Rig(elf, tmp_path / "rig", "--devices", str(devices), "--side-door", str(door))
    fire = (
        "python import socket; s = socket.socket(socket.AF_UNIX); s.connect({!r});"
        " s.sendall(b'TRIGGER encoder0 {}\\n'); print(s.recv(100)); s.close()"
    )
    stops = [known["classify"][0], known["on_trap"][0]]
    start = "trace start -trigger-input 0=off,1=on -trigger-output 0=start,0=stop"
    commands = [start]
    for place, number in zip(stops, (1, 0), strict=True):
        commands += [f"tbreak *{place:#x}", "continue", fire.format(str(door), number)]
    with connected(rig) as begin:
        out = run_gdb(elf, [*begin, *commands, "break finish", "continue", ALL])
        said = (rig.folder / "sim.log").read_text()
    assert "encoder0 trigger input 0: trace-off, trigger input 1: trace-on" in out[start]
    first = retired.index(stops[0])
    assert listed(out[ALL]) == retired[first : retired.index(stops[1], first)]
    assert said.count("encoder0: trigger output 0") >= 2


def test_what_cannot_be_done(program: Program, tmp_path: Path) -> None:
    elf, known, _ = program
    fib = known["fib"][0]
    said = {
        "trace start -trigger-on": "trace start: -trigger-on takes places in the program, got: none.",
        "trace start -trigger-on -btm": "trace start: -trigger-on takes places in the program, got: -btm.",
        "trace start -trigger-on nix": 'trace start: -trigger-on nix: No symbol "nix" in current context.',
        "trace start -trigger-off ticks": "trace start: -trigger-off ticks: ticks is neither a function nor an address",
        "trace start -trigger-off fib,": "trace start: -trigger-off : a place is missing",
        "trace start -trigger-on fib -trigger-off &fib": f"{fib:#x} is to switch the trace on and off: name different"
        " places",
        "trace start -trigger-on fib,add,mul -trigger-off main,classify": "hart 0 has 4 free triggers, 5 places need"
        " one each: name fewer, or delete hardware breakpoints and watchpoints",
        "trace start -trigger-on fib -trigger-control 0x10": "encoder0 at 0x20000000: does not keep 0x10 in"
        " trTeTrigDbgControl (it reads 0x0)",
    }
    free = [f"monitor set_reg {{tselect {number}}}; return [get_reg -force tdata1]" for number in range(4)]
    out = session(
        elf, tmp_path, [*said, *free, "trace start", "break finish", "continue", "trace gaps", "trace status"]
    )
    assert {command: out[command].strip() for command in said} == said
    assert [out[command].split()[-1] for command in free] == ["0x2000000000000000"] * 4
    assert "0 gaps" in out["trace status"] and "begins" not in out["trace status"]


def test_places_can_be_said_in_every_way_gdb_knows(program: Program, tmp_path: Path) -> None:
    """And triggers of a start before are not in the way of the next one."""
    elf, known, _ = program
    fib, mul = known["fib"][0], known["mul"][0]
    ways = ["fib,mul", f"&fib,{mul:#x}", "demo.c:fib,mul+0", "'fib, mul'", "fib -trigger-on mul"]
    commands = [f"trace start -trigger-on {way}" for way in ways]
    out = session(elf, tmp_path, [*commands, "trace stop"])
    for command in commands:
        assert f"encoder0 begins to trace at {fib:#x} and {mul:#x}\n" in out[command], command
        assert "still set" not in out[command]


@every_gdb
def test_completion(program: Program, gdb: str) -> None:
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
    out = run_gdb(program[0], [SOURCE, *commands], gdb=gdb)
    found = {typed: out[f"complete trace start {typed}"].splitlines() for typed in offered}
    assert found == {typed: [f"trace start {text}" for text in texts] for typed, texts in offered.items()}


def test_sinks_and_harts_are_offered(program: Program, tmp_path: Path) -> None:
    """As the target description has them, without a target; without a description nothing."""
    board = tmp_path / "board.toml"
    board.write_text((Path(__file__).parents[3] / "examples" / "targets" / "two-clusters.toml").read_text())
    offered = {
        "-hart ": [f"-hart {number}" for number in range(7)],
        "-hart 2,": [f"-hart 2,{number}" for number in (0, 1, 3, 4, 5, 6)],
    }
    commands = [f"complete trace start {typed}" for typed in (*offered, "-to ")]
    out = run_gdb(program[0], [SOURCE, f"set trace target {board}", *commands])
    assert {typed: out[f"complete trace start {typed}"].split("\n")[:-1] for typed in offered} == {
        typed: [f"trace start {text}" for text in texts] for typed, texts in offered.items()
    }
    sinks = re.findall(r'name = "(\w+)"\ntype = "(?:ram_sink|pib_sink|atb_bridge)"', board.read_text())
    assert sinks and out["complete trace start -to "].split() == [
        word for name in sorted(sinks) for word in ("trace", "start", "-to", name)
    ]
    assert run_gdb(None, [SOURCE, "complete trace start -to "])["complete trace start -to "].strip() == ""
