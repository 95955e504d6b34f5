"""Real gdb-multiarch, real openocd, simulated target: the functions gdb lists are those of what the hart retired.

What is expected comes from the hart's own log, read by a naive interpreter with the symbols of nm; the log has no
traps, so where these hit is taken from `trace events`. The program is that of test_everything_on.
"""

import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from rvtrace_gdb.console.bench.rig import Rig
from rvtrace_gdb.decode.program.image import Image
from tests.decode.calls.naive_calls import NaiveCalls, Ran
from tests.endtoend.retired_instructions import retired_pcs
from tests.gdbext.gdb_process import SOURCE, run_gdb
from tests.helpers.cross_compiler import demo
from tests.transport.simulated.encoder.traces import LOW, compiled

LINE = re.compile(r"(\d+)\t((?:  )*)(\S+)( \[.+\])?\tinst (\d+),(\d+)")
TRAP = re.compile(r"^\d+\t@(\d+)\t0x([0-9a-f]+)(?: <[^>]*>)?:\ttrap: (?:[^;\n]*?, at 0x([0-9a-f]+))?", re.M)
TREE = re.compile(r" *(\d+|-) +(\d+) +(\d+)  ((?:  )*)(\S+)( \[trap\])?")
TRAPS = "trace events trap 1,10000000"
ALL = "trace functions /ic 1,10000000"


class Session:
    """A program traced, what gdb said, and what is expected."""

    def __init__(self, elf: Path, folder: Path, until: str, march: str, options: str, rounds: int) -> None:
        log = folder / "retired.log"
        with Rig(elf, folder / "rig", "--isa", march, "--log-retired", str(log), "--ram", hex(LOW)) as rig:
            commands = [SOURCE, f"set trace target {rig.target_file}", f"target extended-remote :{rig.gdb_port}"]
            commands += [f"break {until}", f"trace start {options}", *["continue"] * rounds]
            commands += ["trace functions", "trace functions -", ALL, TRAPS, "trace calls /n 0"]
            self.said = run_gdb(elf, commands)
        self.pcs = retired_pcs(log)
        nm = subprocess.run(["riscv64-unknown-elf-nm", elf], check=True, capture_output=True, text=True).stdout
        symbols = [line.split() for line in nm.splitlines() if line.split()[-2] in "tTwW"]
        self.names: dict[int, set[str]] = {}
        for address, _, name in symbols:
            self.names.setdefault(int(address, 16), set()).add(name)
        self.lines = [match for line in self.said[ALL].splitlines() if (match := LINE.fullmatch(line))]
        assert len(self.lines) == len(self.said[ALL].strip().splitlines()), self.said[ALL]
        self.naive = NaiveCalls(Image.from_elf(elf), list(self.names), self.traps())
        self.expected = self.naive.functions(self.pcs)

    def traps(self) -> dict[int, list[tuple[int | None, int]]]:
        found: dict[int, list[tuple[int | None, int]]] = {}
        for place, handler, epc in TRAP.findall(self.said[TRAPS]):
            found.setdefault(int(place) - 1, []).append((int(epc, 16) if epc else None, int(handler, 16)))
        return found

    def check(self) -> None:
        """Numbers, places, names, levels, and which are trap handlers."""
        ends = [ran.begin for ran in self.expected[1:]] + [len(self.pcs)]
        assert [(int(m[1]), int(m[5]) - 1, int(m[6])) for m in self.lines] == [
            (number, ran.begin, end) for number, (ran, end) in enumerate(zip(self.expected, ends, strict=True), 1)
        ]
        assert [len(m[2]) // 2 for m in self.lines] == [ran.level for ran in self.expected]
        assert [bool(m[4]) for m in self.lines] == [ran.why == "trap" for ran in self.expected]
        for match, ran in zip(self.lines, self.expected, strict=True):
            assert match[3] in self.name(ran)

    def name(self, ran: Ran) -> set[str]:
        start = self.naive.function(self.pcs[ran.begin])
        return {"??"} if start is None else self.names[start]


@pytest.fixture(
    scope="module",
    params=[("rv64imac", ""), ("rv64imac", "-format etrace"), ("rv32imac", "-implicit-return full -repeated-history")],
    ids=["rv64", "rv64-etrace", "rv32-implicit"],
)
def everything(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Session:
    march, options = request.param
    folder = tmp_path_factory.mktemp("calls")
    return Session(compiled(folder, march, LOW), folder, "round_done", "IMAC", options, 2)


def test_the_functions_are_those_of_what_was_retired(everything: Session) -> None:
    assert len(everything.expected) > 300
    everything.check()
    why = Counter(ran.why for ran in everything.expected)
    assert min(why[kind] for kind in ("call", "return", "tail", "trap", "trap return", "switch")) > 0
    assert max(ran.level for ran in everything.expected) > 40


def test_nothing_runs_at_a_wrong_level(everything: Session) -> None:
    """By what the program is: user_main is called by nobody, and recursion is 40 calls deep."""
    levels = {(m[3], len(m[2]) // 2) for m in everything.lines}
    assert {level for name, level in levels if name == "user_main"} == {0}
    assert {level for name, level in levels if name in ("fibonacci", "chosen", "fill", "round_done")} >= {1}
    assert {level for name, level in levels if name == "deep"} == set(range(1, 42))
    assert {level for name, level in levels if name == "coroutines"} == {1}
    assert {level for name, level in levels if name == "other"} == {2}


def test_the_tree_has_all_instructions_and_calls(everything: Session) -> None:
    """What the list of functions sums up to, each function by itself."""
    rows = [match for line in everything.said["trace calls /n 0"].splitlines() if (match := TREE.fullmatch(line))]
    assert len(rows) == len(everything.said["trace calls /n 0"].strip().splitlines()) - 1  # the first line is a heading
    own: Counter[str] = Counter()
    calls: Counter[str] = Counter()
    for row in rows:
        own[row[5]] += int(row[3])
        calls[row[5]] += 0 if row[1] == "-" else int(row[1])
    ran, called = Counter[str](), Counter[str]()
    for line, expected in zip(everything.lines, everything.expected, strict=True):
        ran[line[3]] += int(line[6]) - int(line[5]) + 1
        called[line[3]] += expected.why in ("call", "tail", "trap")
    for start in everything.naive.trapped:  # a trap came before the first instruction of what was called
        if start is not None:
            called[next(name for name in everything.names[start] if name in own)] += 1
    assert own == ran and +calls == +called
    assert sum(int(row[2]) for row in rows if not row[4]) == len(everything.pcs)


def test_pages(everything: Session) -> None:
    """The last ten, then those before."""
    count = len(everything.expected)
    pages = [everything.said[f"trace functions{page}"].splitlines() for page in ("", " -")]
    numbers = [[int(line.split("\t")[0]) for line in page] for page in pages]
    assert numbers == [list(range(count - 9, count + 1)), list(range(count - 19, count - 9))]
    assert pages[0] == [f"{m[1]}\t{m[3]}{m[4] or ''}" for m in everything.lines[-10:]]


def test_a_c_program(tmp_path: Path) -> None:
    """The demo, compiled with debug information: its functions are among them, and its timer's."""
    session = Session(demo(tmp_path), tmp_path, "finish", "IMAC", "", 1)
    session.check()
    assert {"main", "fib", "classify", "on_trap"} <= {match[3] for match in session.lines}
