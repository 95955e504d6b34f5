"""`trace native` in the real gdb, real OpenOCD, simulated target: gdb's own record commands, against what retired.

gdb numbers and prints by itself here; the addresses must be those of the simulated hart's own log.
"""

import re
from collections.abc import Callable
from functools import cache
from itertools import groupby, pairwise
from pathlib import Path
from typing import NamedTuple

import pytest

from rvtrace_gdb.console.bench.rig import Rig
from rvtrace_gdb.console.main import main
from rvtrace_gdb.decode.program.image import Image
from tests.endtoend.retired_instructions import retired_pcs
from tests.gdbext.gdb_process import SOME_GDBS, SOURCE, run_gdb
from tests.gdbext.runs_in_turn import THROUGH_RVTRACE, Run, in_turn
from tests.helpers import reference_streams
from tests.helpers.amounts import LONG, thorough
from tests.helpers.cross_compiler import demo
from tests.helpers.qemu import running

ROW = re.compile(r"^(\d+)\t(?:=> |   )0x([0-9a-f]+)", re.M)
FUNCTION = re.compile(r"^(\d+)\t(\S+)\tinst (\d+),(\d+)", re.M)
ALL = "record instruction-history 1,1000000"
FUNCTIONS = "record function-call-history /i 1,1000000"
PC = re.compile(r"= 0x([0-9a-f]+)")
GAP = "[decode error (1): instruction overflow]"
RECORDED = re.compile(r"Recorded (\d+) instructions in (\d+) functions \((\d+) gaps\)")


def beginning(rig: Rig) -> list[str]:
    """Connected through the proxy, at `finish`."""
    commands = [SOURCE, f"set trace target {rig.target_file}", f"trace connect localhost:{rig.gdb_port}"]
    return [*commands, "trace start", "break finish", "continue"]


def listed(output: str) -> list[int]:
    """The addresses of a listing of gdb's, all of whose lines are instructions that count from 1."""
    rows = ROW.findall(output)
    assert [int(number) for number, _ in rows] == list(range(1, len(rows) + 1))
    assert len(rows) == len(output.strip().splitlines()), output
    return [int(pc, 16) for _, pc in rows]


def pc_of(output: str) -> int:
    match = PC.search(output)
    assert match, output
    return int(match[1], 16)


def recorded(output: str) -> tuple[int, ...]:
    match = RECORDED.search(output)
    assert match, output
    return tuple(map(int, match.groups()))


class Session:
    """The demo up to `finish`, recorded by gdb, and everything gdb's own commands say of it."""

    def __init__(self, folder: Path, gdb: str) -> None:
        self.elf = demo(folder)
        log = folder / "retired.log"
        with Rig(self.elf, folder / "rig", "--log-retired", str(log)) as rig:
            commands = [*beginning(rig), "info registers pc", "trace native", ALL, FUNCTIONS, "info record"]
            commands += ["record goto 100", "p/x $pc", "backtrace"]
            commands += ["stepi", "p/x $pc + 0", "reverse-stepi 5", "p/x $pc + 0 + 0"]
            commands += ["tbreak classify", "reverse-continue", "continue", "p/x (long)$pc"]
            commands += ["trace goto 5", "trace native 10", "record instruction-history 1,100"]
            commands += [
                "reverse-stepi 3",
                "trace native off",
                "backtrace 1",
                "info record ",
                "trace native off ",
                "trace native junk",
                "trace native 1 2",
            ]
            commands += ["reverse-stepi", "p/x $pc+0", "trace native ", "trace live", "help trace native"]
            commands += ["complete trace native o", "show trace native-limit"]
            self.said = run_gdb(self.elf, commands, gdb=gdb)
        self.pcs = retired_pcs(log)


@pytest.fixture(scope="module")
def session_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Session]:
    """Of each gdb there is one."""
    return cache(lambda gdb: Session(tmp_path_factory.mktemp("native"), gdb))


@pytest.fixture(scope="module", params=SOME_GDBS)
def session(request: pytest.FixtureRequest, session_of: Callable[[str], Session]) -> Session:
    return session_of(request.param)


def test_the_instruction_history_is_what_retired(session: Session) -> None:
    assert len(session.pcs) > 1000
    assert listed(session.said[ALL]) == session.pcs


def test_the_function_history_has_every_instruction(session: Session) -> None:
    """gdb begins a function where the symbol changes, which is how it is put together here."""
    image = Image.from_elf(session.elf)
    names = [(image.symbol(pc) or ("??", 0))[0] for pc in session.pcs]
    expected, number = [], 1
    for name, same in groupby(names):
        count = len(list(same))
        expected.append((name, str(number), str(number + count - 1)))
        number += count
    assert [it[1:] for it in FUNCTION.findall(session.said[FUNCTIONS])] == expected


def test_gdb_says_what_it_recorded(session: Session) -> None:
    """At once, when the recording begins; and of what it does not know on this architecture."""
    said = session.said["trace native"]
    assert recorded(said) == recorded(session.said["info record"])
    assert recorded(said)[0] == len(session.pcs) and recorded(said)[2] == 0
    assert "gdb does not recognize calls on RISC-V" in said and "warning" not in said


def test_going_back_and_forth(session: Session) -> None:
    assert pc_of(session.said["p/x $pc"]) == session.pcs[99]
    assert pc_of(session.said["p/x $pc + 0"]) == session.pcs[100]
    assert pc_of(session.said["p/x $pc + 0 + 0"]) == session.pcs[95]


def test_breakpoints_backward(session: Session) -> None:
    """From instruction 96 on there is no classify before: the beginning; then forward to the first one."""
    assert "No more reverse-execution history" in session.said["reverse-continue"] or (
        "Reached end of recorded history" in session.said["reverse-continue"]
    )
    image = Image.from_elf(session.elf)
    first = next(pc for pc in session.pcs if (image.symbol(pc) or ("",))[0] == "classify")
    assert pc_of(session.said["p/x (long)$pc"]) == first


def test_our_own_past_is_not_used_meanwhile(session: Session) -> None:
    assert "`record goto`" in session.said["trace goto 5"] and "`trace native off`" in session.said["trace goto 5"]
    assert session.said["trace native "].strip() == (
        "gdb is in the past, and its own recording begins in the present: `trace live` first"
    )


def test_only_the_newest(session: Session) -> None:
    said = session.said["trace native 10"]
    assert f"gdb gets the newest 10 of {len(session.pcs)} instructions" in said
    assert f"its number 1 is number {len(session.pcs) - 9} of `trace history`" in said
    assert recorded(said)[0] == 10 and "gdb does not recognize calls" not in said
    assert listed(session.said["record instruction-history 1,100"]) == session.pcs[-10:]


def test_off(session: Session) -> None:
    """Then our own way back is there again."""
    assert "gdb has stopped recording" in session.said["trace native off"]
    assert session.said["backtrace 1"].startswith("#0  finish ")  # gdb itself keeps the frame of where it was
    assert "No record" in session.said["info record "] or "No recording" in session.said["info record "]
    assert session.said["trace native off "].strip() == "gdb does not record: there is nothing to end."
    assert pc_of(session.said["p/x $pc+0"]) == session.pcs[-1]


def test_words(session: Session) -> None:
    usage = "Usage: trace native [N | off]"
    for words in ("junk", "1 2"):
        said = session.said[f"trace native {words}"].strip()
        assert said == f"trace native: {words} is neither a number of instructions nor off. {usage}"
    assert usage in session.said["help trace native"]
    assert session.said["complete trace native o"].strip() == "trace native off"
    assert session.said["show trace native-limit"].strip() == "`trace native` gives gdb at most 100000 instructions."


OURS = "trace history /a 1,100000"
TO_CLASSIFY, TO_FINISH = ["trace start", "break classify", "continue"], ["trace start", "break finish", "continue"]
LATER = 5 if LONG else 3
"""How often the program goes on while gdb records."""
USE = "use `trace native`, which decodes the trace first and then records"


class Recorded(NamedTuple):
    """What the session before had, and more runs of the same program. The first has nothing before it."""

    first: Session
    runs: dict[str, Run]


@pytest.fixture(scope="module", params=SOME_GDBS)
def more(
    request: pytest.FixtureRequest, session_of: Callable[[str], Session], tmp_path_factory: pytest.TempPathFactory
) -> Recorded:
    folder, first = tmp_path_factory.mktemp("more"), session_of(request.param)
    later = [one for i in range(LATER) for one in (f"continue {i + 1}", f"info record {' ' * i}")]
    destroyed = [f"monitor mww {address:#x} 0xffffffff" for address in (0x3000_0050, 0x3000_0054)]
    runs = {
        "alone": [*TO_FINISH, "record btrace", "record btrace bts", "info record", "reverse-stepi", "print/x $pc"],
        "later": [*TO_CLASSIFY, "trace native", "info record", *later],
        "lost": [*TO_FINISH, *destroyed, "trace native", ALL, FUNCTIONS, OURS],
        "untraced": [*TO_CLASSIFY, "trace stop", "delete", "break finish", "continue "],
    }
    runs["later"] += ["reverse-stepi", "record goto end", "stepi", ALL]
    runs["untraced"] += ["trace native", ALL, "stepi", "record instruction-history 1,1000001"]
    runs["alone"] += ["trace live", "trace native", "record stop", "record btrace ", "info record "]
    ended = {name: [*commands, "trace native off", "trace live"] for name, commands in runs.items()}
    rig = Rig(first.elf, folder / "rig", "--log-retired", str(folder / "log"))
    return Recorded(first, in_turn(rig, folder / "log", ended, request.param, THROUGH_RVTRACE))


@thorough("test_the_instruction_history_is_what_retired")
def test_what_runs_later_is_recorded_too(more: Recorded) -> None:
    """gdb asks for more at each command: it is read out meanwhile. Numbers go on, nothing is warned of."""
    said, pcs = more.runs["later"]
    counts = [recorded(said[f"info record {' ' * i}"])[0] for i in range(LATER)]
    assert all(before < after for before, after in pairwise(counts))
    assert not [command for command, text in said.items() if "warning" in text or "corrupted" in text]
    assert listed(said[ALL]) == pcs


def test_a_loss_is_a_line_of_its_own(more: Recorded) -> None:
    """Bytes of the trace are destroyed in its buffer: gdb's list has what `trace history` has, with a gap there."""
    said, pcs = more.runs["lost"]
    rows = said[ALL].strip().splitlines()
    [gap] = [i for i, row in enumerate(rows) if row.endswith(GAP)]
    mine = [line for line in said[OURS].splitlines() if re.match(r"\d+\t", line)]
    assert len(mine) == len(rows) and mine[gap].startswith(f"{gap + 1}\t[")
    assert [ROW.findall(row) for row in rows] == [ROW.findall(row) for row in mine]
    assert said[FUNCTIONS].count(GAP) == 1
    assert recorded(said["trace native"])[2] == 1
    found = [int(pc, 16) for _, pc in ROW.findall(said[ALL])]
    assert found[:gap] == pcs[:gap] and found[gap:] == pcs[gap - len(found) :]


def test_what_was_not_traced_is_a_gap(more: Recorded) -> None:
    """The trace has ended and the program ran on."""
    said, pcs = more.runs["untraced"]
    before, after = said[ALL].strip().splitlines(), said["record instruction-history 1,1000001"].strip().splitlines()
    assert listed("\n".join(before[:-1])) == pcs and before[-1] == f"{len(pcs) + 1}\t{GAP}"
    rest = [line for line in after if re.match(r"\d+\t", line)]
    assert rest[: len(before)] == before
    assert "<finish+0>" in rest[-2] and rest[-1] == f"{len(pcs) + 3}\t{GAP}"


def test_gdbs_own_command_alone_says_what_to_use(more: Recorded) -> None:
    """It works once the trace was decoded; that gdb could record changes nothing of our own way back."""
    said, pcs = more.runs["alone"]
    assert said["record btrace"].strip().endswith(USE) and said["record btrace bts"].strip().endswith(USE)
    assert said["info record"].strip() == "No recording is currently active."
    assert said["print/x $pc"].strip().endswith(f"= {pcs[-1]:#x}")
    assert recorded(said["info record "])[0] == len(pcs)


def test_a_hart_that_was_not_traced_has_no_recording(tmp_path: Path) -> None:
    elf = reference_streams.FOLDER / "median.elf"
    words = [str(reference_streams.FOLDER / "median.1.nex"), "--elf", str(elf)]
    assert main(["import", *words, "-o", str(tmp_path / "x.rvt")]) == 0
    listing = "record instruction-history"
    with running(elf, tmp_path, 2, logged=False) as qemu:
        commands = [SOURCE, f"trace open {tmp_path / 'x.rvt'}", f"trace connect localhost:{qemu.port}", "thread 2"]
        commands += ["trace native 5", listing, "thread 1", f"{listing} 1,100", "trace native off"]
        said = run_gdb(elf, commands)
    assert said["trace native 5"].splitlines()[:2] == [
        "note:     hart 1 is not in this trace: gdb gets the recording of the other threads only",
        "Recorded 0 instructions in 0 functions (0 gaps) for thread 2 (Thread 1.2).",
    ]
    assert said[listing].strip() == "No trace."
    assert len(ROW.findall(said[f"{listing} 1,100"])) == 5
    assert "gdb has stopped recording" in said["trace native off"]
