"""Real gdb-multiarch, real openocd, simulated target: what `trace find`, `trace events` and `trace gaps` list, against
what can be read off the list of the instructions that the hart itself says it retired.
"""

import re
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest

from rvtrace_gdb.console.bench.rig import Rig
from tests.endtoend.trace.hard_programs import GAP, Outcome, complete, session
from tests.endtoend.trace.hard_programs import instructions as listed
from tests.endtoend.trace.one_after_the_other import traces
from tests.endtoend.trace.test_first_trace import trace
from tests.gdbext.gdb_process import SOURCE, run_gdb
from tests.helpers.amounts import long_only
from tests.helpers.cross_compiler import HOME, compile_program, demo
from tests.helpers.page_sessions import Exchange, sessions, shown
from tests.transport.simulated.encoder.traces import LOW, compiled

ROW = re.compile(r"^(\d+)\t@(\d+)\t(?:\[gap\]|\[end\]|0x([0-9a-f]+)(?: <[^>]+>)?):\t(.*)$", re.M)
SOURCES = re.compile(r"from 0x([0-9a-f]+)")
ALL = "1,10000000"


def positions(text: str) -> list[int]:
    """The places of a list whose numbers go up from 1."""
    rows = ROW.findall(text)
    assert [int(number) for number, *_ in rows] == list(range(1, len(rows) + 1)), text
    return [int(position) for _, position, *_ in rows]


def where(retired: list[int], address: int) -> list[int]:
    return [i for i, pc in enumerate(retired, 1) if pc == address]


def names(elf: Path) -> dict[str, int]:
    lines = subprocess.run(["riscv64-unknown-elf-nm", elf], check=True, capture_output=True, text=True).stdout
    return {name: int(address, 16) for address, _, name in map(str.split, lines.splitlines())}


def instructions(elf: Path) -> dict[int, str]:
    """What objdump says is at each address."""
    command = ["riscv64-unknown-elf-objdump", "-d", "--no-show-raw-insn", str(elf)]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return {int(at, 16): text for at, text in re.findall(r"^ *([0-9a-f]+):\s+(.*)$", lines, re.M)}


def came_from(retired: list[int], elf: Path, handler: int) -> list[int]:
    """What ran before each instruction in its own program: behind a trap, what ran before the trap."""
    code, interrupted, before, found = instructions(elf), [], 0, []
    for pc in retired:
        if pc == handler:
            interrupted.append(before)
        found.append(before)
        before = interrupted.pop() if code[pc].split()[0] == "mret" and interrupted else pc
    return found


@pytest.mark.parametrize("options", ["", "-format etrace", *long_only("-btm", "-implicit-return full -timestamps")])
def test_functions_and_interrupts(options: str, tmp_path: Path) -> None:
    """None of the functions begins with a loop: each is entered when its first instruction runs. A saved trace has the
    same.
    """
    functions = ["main", "fib", "add", "sub", "mul", "classify", "start_timer", "on_trap"]
    asked = [f"trace find {name} {ALL}" for name in functions]
    commands = [f"trace start {options}", "break finish", "continue", *asked, f"trace events {ALL}", "trace gaps"]
    elf, capture = demo(tmp_path), tmp_path / "x.rvt"
    said, retired = trace(elf, tmp_path, [*commands, f"trace events interrupt {ALL}", f"trace save {capture}"])
    same = [f"trace find fib {ALL}", f"trace events {ALL}"]
    saved = run_gdb(elf, [SOURCE, f"trace open {capture}", *same])
    for command in same:
        assert saved[command] == said[command] and len(said[command].splitlines()) > 3
    for name, command in zip(functions, asked, strict=True):
        assert positions(said[command]) == where(retired, names(elf)[name]), name
        sources = [int(pc, 16) for pc in SOURCES.findall(said[command])]
        assert sources == [retired[i - 2] for i in positions(said[command])], name
    traps = where(retired, names(elf)["on_trap"])
    assert len(traps) >= 2 and positions(said[f"trace events interrupt {ALL}"]) == traps
    other = [1, *([1] if "etrace" in options else []), len(retired) + 1]  # E-Trace says which privilege it begins with
    assert sorted(positions(said[f"trace events {ALL}"])) == sorted([*other, *traps])
    # Where an interrupt hit is where the program went on after it. E-Trace leaves it out right after an indirect jump:
    # the address in the packet of such an interrupt is undefined (Efficient Trace 2.0, "thaddr").
    hit = re.findall(r"\ttrap: interrupt.*, at 0x([0-9a-f]+) ", said[f"trace events {ALL}"])
    code = instructions(elf)
    indirect = ("ret", "jr", "jalr")
    silent = ["etrace" in options and code[retired[trap - 2]].split()[0] in indirect for trap in traps]
    mrets = [pc for before, pc in pairwise(retired) if code[before].startswith("mret")]
    returned = [pc for pc, is_silent in zip(mrets, silent, strict=False) if not is_silent]
    assert [int(pc, 16) for pc in hit] == returned
    assert said["trace gaps"].strip() == "No gaps: the history is complete."


def test_a_function_that_is_nothing_but_a_loop(tmp_path: Path) -> None:
    """`spin: j spin`, interrupted by a timer: full counters are all there is to tell, and it is entered once, whatever
    interrupts return to.
    """
    commands = ["trace start", "hbreak second", "continue", "stepi 4", f"trace find spin {ALL}", "trace find *spin"]
    outcome = session("spin.S", tmp_path, [*commands, "trace find handler"], first=60000)
    complete(outcome, first=60000)
    assert len(outcome.retired) > 2 << 16
    elf = next(tmp_path.glob("spin*.elf"))
    ran = where(outcome.retired, names(elf)["spin"])
    assert len(ran) > 50_000
    assert positions(outcome.said[f"trace find spin {ALL}"]) == ran[:1]
    last = [int(row[1]) for row in ROW.findall(outcome.said["trace find *spin"])]
    assert last == ran[-10:] and ROW.findall(outcome.said["trace find *spin"])[-1][0] == str(len(ran))
    assert positions(outcome.said["trace find handler"]) == where(outcome.retired, names(elf)["handler"])


KERNEL = ["-format etrace", "-context", "-btm -implicit-return full"]


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, Outcome, str]]:
    """A kernel with system calls, interrupts, co-routines and tasks in user mode, traced with one option after the
    other: the ELF, what came of it, options.
    """
    folder = tmp_path_factory.mktemp("kernel")
    elf = compiled(folder, "rv64imac", LOW)
    kinds = ("trap", "exception", "interrupt", "context")
    asked = [f"trace find other {ALL}", f"trace find coroutines,other-1 {ALL}", f"trace find leaf {ALL}"]
    asked += [f"trace events {kind} {ALL}" for kind in kinds]
    each = [[f"trace start {options}", "ignore 1 1", "continue 1", *asked] for options in KERNEL]
    log = folder / "retired.log"
    with Rig(elf, folder / "rig", "--isa", "IMAC", "--ram", hex(LOW), "--log-retired", str(log)) as rig:
        parts = traces(rig, log, ["break round_done", "continue"], each)
    return {
        options: (elf, Outcome(said, retired, ""), options)
        for options, (said, retired) in zip(KERNEL, parts, strict=True)
    }


@pytest.fixture(params=KERNEL)
def kernel(request: pytest.FixtureRequest, kernels: dict[str, tuple[Path, Outcome, str]]) -> "Kernel":
    return kernels[request.param]


Kernel = tuple[Path, Outcome, str]


def test_entries_of_a_coroutine_that_begins_with_a_loop(kernel: Kernel) -> None:
    elf, outcome, _ = kernel
    entry, code = names(elf)["other"], instructions(elf)
    before = came_from(outcome.retired, elf, names(elf)["trap"])
    rounds = [i for i in where(outcome.retired, entry) if code[before[i - 1]].startswith(("bnez", "bne", "j\t"))]
    entered = [i for i in where(outcome.retired, entry) if i not in rounds]
    assert rounds and entered, "it does both"
    assert positions(outcome.said[f"trace find other {ALL}"]) == entered


def test_arrivals_in_a_range(kernel: Kernel) -> None:
    elf, outcome, _ = kernel
    first, last = names(elf)["coroutines"], names(elf)["other"] - 1
    inside = [first <= pc <= last for pc in outcome.retired]
    arrived = [i for i, now in enumerate(inside, 1) if now and not (i > 1 and inside[i - 2])]
    assert len(arrived) > 5
    assert positions(outcome.said[f"trace find coroutines,other-1 {ALL}"]) == arrived
    assert positions(outcome.said[f"trace find leaf {ALL}"]) == where(outcome.retired, names(elf)["leaf"])


def test_traps_with_their_cause(kernel: Kernel) -> None:
    """What the handler did tells which they were: it sets the timer, or it does not."""
    elf, outcome, options = kernel
    retired, at = outcome.retired, names(elf)
    traps = where(retired, at["trap"])
    ends = [*traps[1:], len(retired) + 1]
    interrupts = [i for i, end in zip(traps, ends, strict=True) if at["interrupt"] in retired[i - 1 : min(end, i + 40)]]
    exceptions = [i for i in traps if i not in interrupts]
    assert interrupts and exceptions
    assert positions(outcome.said[f"trace events trap {ALL}"]) == traps
    if "-btm" not in options:
        assert positions(outcome.said[f"trace events interrupt {ALL}"]) == interrupts
        assert positions(outcome.said[f"trace events exception {ALL}"]) == exceptions
    if "etrace" in options:
        text = "\ttrap: exception 8 (environment call from U-mode or VU-mode), at 0x"
        assert outcome.said[f"trace events exception {ALL}"].count(text) == len(exceptions)
        text = "\ttrap: interrupt 7 (machine timer interrupt), at 0x"
        assert outcome.said[f"trace events interrupt {ALL}"].count(text) == len(interrupts)


def test_changes_of_privilege(kernel: Kernel) -> None:
    """U-mode begins behind mret, M-mode with the handler."""
    elf, outcome, options = kernel
    if "-btm" in options:
        assert outcome.said[f"trace events context {ALL}"].strip() == "No event of the kind context is in this trace."
        return
    code, retired = instructions(elf), outcome.retired
    user = [i for i in range(2, len(retired) + 1) if code[retired[i - 2]].startswith("mret")]
    rows = ROW.findall(outcome.said[f"trace events context {ALL}"])
    told = {mode: {int(row[1]) for row in rows if f"{mode}-mode" in row[3]} for mode in "UM"}
    assert len(user) > 5 and set(user) <= told["U"]
    assert set(where(retired, names(elf)["trap"])) <= told["M"]


def test_gaps_are_where_the_program_switched_its_trace_off(tmp_path: Path) -> None:
    """A gap is between two instructions that retired while traced, one after the other; all these are listed."""
    commands = ["trace start", "hbreak _exit", "continue", "stepi 3", "trace gaps", "trace events trace-off 1,10"]
    outcome = session("self_switching.c", tmp_path, commands)
    assert listed(outcome.listing) == outcome.retired
    assert outcome.reasons == ["trace disabled, then trace enabled at another place"] * 5
    assert outcome.same_elsewhere()
    rows = ROW.findall(outcome.said["trace gaps"])
    assert len(rows) == 5
    for gaps_before, (number, position, _, text) in enumerate(rows):
        last, following = (int(pc, 16) for pc in re.findall(r"0x([0-9a-f]+) <", text))
        index = int(position) - 1 - gaps_before
        assert (int(number), last, following) == (gaps_before + 1, *outcome.retired[index - 1 : index + 1])
        assert text.startswith("trace off: trace disabled, then trace enabled at another place, after 0x")
    numbers = [row.partition("\t")[0] for row in outcome.listing.splitlines() if GAP.match(row)]
    assert [row[1] for row in rows] == numbers
    assert [row[1] for row in ROW.findall(outcome.said["trace events trace-off 1,10"])][:5] == numbers


LINES = """\
static inline __attribute__((always_inline)) int twice(int n)
{
    volatile int twofold = 2 * n;
    return twofold;
}

volatile int result;

int finish(int value)
{
    result = value;
    return value;
}

int main(void)
{
    int sum = 0;
    for (int i = 0; i < 5; i++)
        sum += twice(i);
    sum -= twice(sum);
    return finish(sum);
}
"""


def test_lines_and_inlined_functions(tmp_path: Path) -> None:
    """The inlined function runs six times, at two places; so does a line of it."""
    (tmp_path / "lines.c").write_text(LINES)
    elf = compile_program(tmp_path, tmp_path / "lines.c")
    asked = ["trace find lines.c:3", "trace find twice", "trace find lines.c:21", "info line lines.c:21"]
    said, retired = trace(elf, tmp_path, ["trace start", "break finish", "continue", *asked, "trace find none.c:1"])
    for command in asked[:2]:
        rows = ROW.findall(said[command])
        assert len(rows) == 6 and len({pc for _, _, pc, _ in rows}) == 2, said[command]
        assert all(retired[int(position) - 1] == int(pc, 16) for _, position, pc, _ in rows)
    line = re.search(r"starts at address 0x([0-9a-f]+)", said[asked[3]])
    assert line and positions(said[asked[2]]) == where(retired, int(line[1], 16))
    assert said["trace find none.c:1"] == "trace find: none.c:1: No source file named none.c.\n"


def of_another_program(found: list[Exchange]) -> bool:
    """Whether test_mismatched_returns.py or test_trap_loop.py has the session of the page."""
    return "mismatched" in found[0].command or any("every" in line for line in found[0].lines)


def test_gdb_prints_what_the_page_says(tmp_path: Path) -> None:
    """docs/finding.md: a session for each list; the last one on an encoder that loses trace, as the page says."""
    elf, devices = demo(tmp_path), tmp_path / "devices.toml"
    page = (HOME / "docs" / "finding.md").read_text(encoding="utf-8")
    [lossy] = re.findall(r"`(overflow_after = .*?)`", page)
    devices.write_text(f"[encoder0]\n{lossy}\n")
    *whole, gaps = (found for found in sessions("finding.md") if not of_another_program(found))
    assert [session[0].command.split()[1] for session in (*whole, gaps)] == ["find", "events", "gaps"]
    first = [exchange for found in whole for exchange in found]
    for name, exchanges, options in (("whole", first, []), ("lossy", gaps, ["--devices", str(devices)])):
        typed = ["trace start -timestamps", "break finish", "continue", *(command for command, _ in exchanges)]
        said, _ = trace(elf, tmp_path / name, typed, *options)
        assert [(command, shown(said[command])) for command, _ in exchanges] == exchanges
