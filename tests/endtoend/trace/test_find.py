"""Real gdb-multiarch, real openocd, simulated target: what `trace find`, `trace events` and `trace gaps` list, against
what can be read off the list of the instructions that the hart itself says it retired.
"""

import re
import subprocess
from pathlib import Path

from tests.endtoend.trace.hard_programs import GAP, complete, session
from tests.endtoend.trace.hard_programs import instructions as listed
from tests.endtoend.trace.test_first_trace import trace
from tests.helpers.amounts import thorough
from tests.helpers.cross_compiler import HOME, compile_program, demo
from tests.helpers.page_sessions import Exchange, sessions, shown

ROW = re.compile(r"^(\d+)\t@(\d+)\t(?:\[gap\]|\[end\]|0x([0-9a-f]+)(?: <[^>]+>)?):\t(.*)$", re.M)
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


@thorough("test_lines_and_inlined_functions")
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
