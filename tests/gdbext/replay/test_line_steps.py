"""Steps by lines in the past, which gdb is spared parts of: they end where they end without that.

The other way is gdb's own, one instruction at a time (`set range-stepping off`).
"""

import json
import random
import re
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

from rvtrace_gdb.console.main import main
from tests.decode.executed.logs import CLOCK, qemu_log
from tests.gdbext.gdb_process import NEWEST_GDB, SOURCE, run_gdb
from tests.helpers.amounts import LONG, thorough
from tests.helpers.cross_compiler import HOME, compile_program, symbol_address

PROGRAM = HOME / "tests" / "programs" / "steps.c"
COMMANDS = [
    "next", "step", "reverse-next", "reverse-step", "until", "finish", "reverse-finish", "next 3", "reverse-next 3",
    "step 4", "reverse-step 4", "next;stepi", "reverse-next;reverse-stepi;next", "up;finish", "up;reverse-finish",
    "stepi 5", "reverse-stepi 7", "watch $gp;next", "finish;reverse-next", "reverse-next", "finish", "next",
]  # fmt: skip
IN_GDB = """
import json
def asked(command):
    try:
        return gdb.execute(command, to_string=True)
    except gdb.error as error:
        return f"error: {error}"
def outcome(stepping, place, commands, breakpoints):
    asked(f"set range-stepping {stepping}")
    asked(f"trace goto {place}")
    for address in breakpoints:
        asked(f"break *{address:#x}")
    said = [asked(command) for command in commands.split(";")]
    said.append(asked("print $trace_pos") + asked("bt"))
    asked("delete")
    return said
for case in json.load(open(CASES)):
    print("case", json.dumps([outcome("on", *case), outcome("off", *case)]), flush=True)
"""
VARYING = re.compile(r"stepping, at number \d+ .*\n|(?<=atchpoint )\d+|(?<=reakpoint )\d+|\$\d+ = ")


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, list[int]]:
    """The program, a capture of all that ran, and the addresses in it before it ended."""
    folder = tmp_path_factory.mktemp("steps")
    elf = compile_program(folder, PROGRAM)
    log, capture = qemu_log(elf, folder, *CLOCK, lines=900), folder / "x.rvt"
    assert main(["encode", "--elf", str(elf), "--pcs", str(log), "-o", str(capture), "--quiet"]) == 0
    with redirect_stdout(StringIO()) as listed:
        assert main(["decode", str(capture), "--quiet", "--json"]) == 0
    rows = map(json.loads, listed.getvalue().splitlines())
    return elf, capture, [int(row["addr"], 16) for row in rows if "addr" in row]


@pytest.mark.parametrize("gdb", NEWEST_GDB)
def test_they_end_where_gdb_itself_ends(gdb: str, traced: tuple[Path, Path, list[int]], tmp_path: Path) -> None:
    elf, capture, pcs = traced
    rng, end = random.Random(5), pcs.index(symbol_address(elf, "done"))
    loop = pcs.index(symbol_address(elf, "inlined")) + 8
    cases = [(loop, "finish", [pcs[loop + 11]]), (loop + 20, "reverse-finish", [pcs[loop + 2]])]
    cases += [(place, "reverse-next", []) for place in range(380, 390)]  # in the loop of an inlined function
    for place in rng.sample(range(40, end), 50 if LONG else 30):
        near = [rng.choice(pcs[place - 40 : place + 40]) for _ in range(rng.choice((0, 0, 1, 2)))]
        cases.append((place, rng.choice(COMMANDS), near))
    (tmp_path / "cases").write_text(json.dumps(cases))
    (tmp_path / "in_gdb.py").write_text(IN_GDB.replace("CASES", repr(str(tmp_path / "cases"))))
    said = run_gdb(elf, [SOURCE, f"trace open {capture}", "trace replay", f"source {tmp_path / 'in_gdb.py'}"], gdb=gdb)
    rows = [line[len("case ") :] for line in said[f"source {tmp_path / 'in_gdb.py'}"].splitlines() if "case [" in line]
    assert len(rows) == len(cases)
    for case, row in zip(cases, rows, strict=True):
        spared, own = json.loads(row)
        assert [VARYING.sub("", text) for text in spared] == [VARYING.sub("", text) for text in own], case


@thorough("test_they_end_where_gdb_itself_ends")
@pytest.mark.parametrize("gdb", NEWEST_GDB)
def test_gdb_looks_at_few_of_the_instructions(gdb: str, traced: tuple[Path, Path, list[int]]) -> None:
    elf, capture, _ = traced
    ways = {
        "reverse-next": ["trace goto begin", "break steps.c:45", "continue"],  # behind the loop of one line
        "finish": ["delete", "trace goto begin ", "break mixed", "continue "],
        "next": ["delete ", "trace goto begin  ", "break inlined", "continue  ", "next  "],
    }
    commands = [SOURCE, f"trace open {capture}", "trace replay"]
    for command, before in ways.items():
        commands += [*before, "set debug infrun 1", command, "set debug infrun 0"]
    spared, own = (run_gdb(elf, [f"set range-stepping {it}", *commands], gdb=gdb) for it in ("on", "off"))
    looks = [(spared[command].count("stop_pc="), own[command].count("stop_pc=")) for command in ways]
    assert all(few < 12 and many > 20 for few, many in looks), looks


CONDITIONS = ["$trace_pos % 7 == 3", "i == 3 && sum > 2", "$a5 == 0x7", "n - 4 < $a5", "$pc == 1", "sink != 0"]


@thorough("endtoend/reverse/test_session.py::test_a_condition_stops_backward")
@pytest.mark.parametrize("gdb", NEWEST_GDB)
def test_conditions_stop_where_gdb_itself_stops(gdb: str, traced: tuple[Path, Path, list[int]]) -> None:
    """gdb's own way: `set breakpoint condition-evaluation host`."""
    elf, capture, _ = traced
    commands = [f"trace open {capture}", "trace replay"]
    for number, condition in enumerate(CONDITIONS):
        way, back = f"continue{' ' * number}", f"reverse-continue{' ' * number}"
        commands += [f"trace goto begin{' ' * number}", f"break steps.c:44 if {condition}", "tbreak handler"]
        commands += [way, f"print $trace_pos{' ' * number}", back, f"info breakpoints{' ' * number}", "delete"]
    said = [
        run_gdb(elf, [SOURCE, f"set breakpoint condition-evaluation {where}", *commands], gdb=gdb)
        for where in ("auto", "host")
    ]
    for command in commands:
        one, other = (re.sub(r" \((?:target|host) evals\)", "", VARYING.sub("", it[command])) for it in said)
        assert one == other, command
    assert sum("target evals" in text for text in said[0].values()) == len(CONDITIONS)
    assert sum("already hit" in text for text in said[1].values()) >= 3
