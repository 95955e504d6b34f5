"""How long reports of long traces take, and how much memory.

Run: python benchmarks/lists/views.py [MILLION_INSTRUCTIONS [jobs]]     (Linux)

The programs of benchmarks/programs run on the simulated hart (default: 100 million instructions of `mixed`, a third of
that of `random`, which never repeats itself) and are traced as in benchmarks/decoding/long_runs.py: N-Trace without and
with a timestamp in each message, and E-Trace. `rvtrace report` reads each trace in a process of its own: seconds of CPU
time from its start to its end, how many million instructions that are in a second, and the most memory that it has.
Then the parts, in milliseconds of CPU time: decoding, the calls, the profile, and its rows; and how many times as long
as decoding the calls, the profile and the rows take. The lines below are other views of the same trace: the page for a
browser, the timeline for Perfetto, with the size of the file, and statistics of intervals.

The last lines are reports of `mixed` as loops (as in benchmarks/lists/exports.py), of as many instructions and of ten
times as many: rounds that leave calls open, and return from what they did not call. Seconds of the calls and of the
profile with its rows, and by how many megabytes the process grew at most.

With `jobs`: each trace four times in one file, read by one process, and in the pieces that two and four processes read.
Seconds of CPU time of all of them together; how many times as much as by one that is, which is worth while if there are
more processors; and the most memory, with one piece at a time.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

if len(sys.argv) < 2:
    sys.argv.append("100")

from benchmarks.decoding.long_runs import SETTINGS, cpu_seconds, encoded
from benchmarks.decoding.memory import status
from benchmarks.lists.exports import grown, loops
from rvtrace_gdb.decode.calls.call_history import CallHistory
from rvtrace_gdb.decode.history.builder import HistoryBuilder
from rvtrace_gdb.decode.history.events import Accounting
from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.decode.program.context_images import ContextImages
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.reports.profile.hart_profile import hart_profile
from rvtrace_gdb.reports.profile.model import Profile
from rvtrace_gdb.session.queries.reports.report import ReportChoice, reports

WANTED = {
    "HTM": ["--ntrace"],
    "HTM, times": ["--ntrace", "--timestamps"],
    "E-Trace": ["--etrace", "--iaddress-width", "64", "--ecause-width", "5"],
}
"""The settings, and the options with which their bytes are read."""
OUTPUT, FROM, TO = "OUTPUT", "FROM", "TO"
"""What stands for the file that is written, and for functions."""
VIEWS = (
    ("report --html", "report", ["--html", OUTPUT]),
    ("export --to perfetto", "export", ["--to", "perfetto", "-o", OUTPUT]),
    ("intervals --traps", "intervals", ["--traps"]),
    ("intervals --calls", "intervals", ["--calls", FROM]),
    ("intervals from one function to another", "intervals", [FROM, TO]),
)
"""Other views: title, command of `rvtrace`, and arguments."""
PLACES = {"mixed": {FROM: "by_key", TO: "by_value"}, "random": {FROM: "odd", TO: "even"}}
"""Functions of the programs."""
WITHIN, MILLIONS = 20, 100
"""A report of so many million instructions takes at most so many seconds."""
COPIES = 4


class Used(NamedTuple):
    """Seconds of CPU time, and the most megabytes of memory."""

    seconds: float
    most: float


def main() -> int:
    if sys.argv[2:] == ["jobs"]:
        return several_processes()
    missed = False
    heads = f"{'Minstr':>8}{'MB':>8}{'s':>8}{'Minstr/s':>10}{'most MB':>9}"
    print(f"{'':22}{heads}{'decode':>9}{'calls':>9}{'profile':>9}{'rows':>7}{'ratio':>7}")
    with tempfile.TemporaryDirectory() as folder:
        for program in ("mixed", "random"):
            for setting, items, elf in encoded(Path(folder), program):
                if setting.name not in WANTED:
                    continue
                trace = Path(folder) / "trace.bin"
                trace.write_bytes(b"".join(setting.encode(items)))
                missed |= measure(f"{program}, {setting.name}", setting.name, trace, elf)
                if (program, setting.name) == ("mixed", "HTM"):
                    looped = decoded(setting.name, trace.read_bytes(), Image.from_elf(elf)), Image.from_elf(elf)
        print(f"{'':22}{'Minstr':>8}{'calls s':>9}{'report s':>9}{'grew MB':>9}")
        for times in (1, 10):
            report_of_loops(*looped, times * MILLIONS * 10**6)
    return int(missed)


def several_processes() -> int:
    """Long traces, by one process and by several."""
    print(f"{'':22}{'MB':>8}{'jobs':>6}{'CPU s':>8}{'ratio':>7}{'most MB':>9}")
    del sys.argv[2]
    with tempfile.TemporaryDirectory() as folder:
        for program in ("mixed", "random"):
            for setting, items, elf in encoded(Path(folder), program):
                if setting.name in WANTED:
                    trace = Path(folder) / "trace.bin"
                    trace.write_bytes(b"".join(setting.encode(items)) * COPIES)
                    by_processes(f"{program}, {setting.name}", setting.name, trace, elf)
    return 0


def by_processes(shown: str, name: str, trace: Path, elf: Path) -> None:
    """A line for each number of processes."""
    alone = 0.0
    for jobs in (1, 2, 4):
        command = [sys.executable, __file__, "--pieces", "report", str(trace), "--elf", str(elf), "--json", "--quiet"]
        with subprocess.Popen(
            [*command, *WANTED[name], "--jobs", str(jobs)], stdout=subprocess.DEVNULL
        ) as process:
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        seconds = used.ru_utime + used.ru_stime
        alone = alone or seconds
        figures = f"{trace.stat().st_size / 1e6:8.1f}{jobs:6}{seconds:8.2f}{seconds / alone:7.2f}"
        print(f"{shown:22}{figures}{used.ru_maxrss / 1e3:9.0f}", flush=True)


def pieces() -> int:
    """Run a command that has a trace read in pieces, by this process: nobody counts the time of a process's helpers."""
    from rvtrace_gdb.console.captures import pieces, processes
    from rvtrace_gdb.console.captures.readers import read_or_problem
    from rvtrace_gdb.console.main import main as rvtrace

    pieces._LEAST = 1 << 20
    processes.by_processes = lambda of, jobs: map(read_or_problem, of)
    return rvtrace(sys.argv[2:])


def decoded(name: str, trace: bytes, image: Image) -> History:
    """Return the history of a trace."""
    decoder = next(setting for setting in SETTINGS if setting.name == name).decoder(image, None)
    decoder.feed(trace)
    return decoder.finish_one()


def report_of_loops(history: History, image: Image, length: int) -> None:
    """A line for a report of six million instructions of a history, as loops of this length in all."""
    some, part = HistoryBuilder(), history.entries[: history.entry_at(min(6 * 10**6, len(history) - 1))[0]]
    for entry in part:
        some.append(entry)
    looped, before = loops(some.finish(Accounting(0, 0, 0, 0)), length), grown()
    calls: list[CallHistory] = []
    finding = cpu_seconds(lambda: calls.append(CallHistory(looped, ContextImages(image))))
    reporting = cpu_seconds(lambda: reports([hart_profile(calls[0])], ReportChoice()))
    millions = f"{len(looped) / 1e6:8.1f}"
    print(f"{'mixed as loops':22}{millions}{finding:9.2f}{reporting:9.2f}{grown() - before:9.1f}", flush=True)


def measure(shown: str, name: str, trace: Path, elf: Path) -> bool:
    """A line for the report, with its parts, and one for each other view; return whether the report took too long."""
    report, spent = used("report", trace, elf, name, ["--json"])
    millions = json.loads(report[0])["instructions"] / 1e6
    begin = f"{shown:22}{millions:8.1f}{trace.stat().st_size / 1e6:8.1f}"
    print(f"{begin}{figures(spent, millions)}{parts(name, trace, elf)}", flush=True)
    for title, command, arguments in VIEWS:
        output = trace.with_name("output")
        meant = {OUTPUT: str(output), **PLACES[shown.split(",")[0]]}
        written = [meant.get(it, it) for it in arguments]
        size = ""
        _, other = used(command, trace, elf, name, written)
        if OUTPUT in arguments:
            size = f"{output.stat().st_size / 1e6:9.2f} MB written"
        print(f"  {title:36}{figures(other, millions)}{size}", flush=True)
    return bool(spent.seconds > WITHIN * max(millions, 1) / MILLIONS)


def used(command: str, trace: Path, elf: Path, name: str, arguments: list[str]) -> tuple[list[str], Used]:
    """Return the lines that a command prints, in a process of its own, and what it used."""
    started = [sys.executable, __file__, "--child", command, str(trace), *arguments]
    options = ["--elf", str(elf), "--quiet", *WANTED[name]]
    with subprocess.Popen([*started, *options], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        *lines, memory = process.stdout.read().splitlines()
        _, status, spent = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, (command, arguments)
    return lines, Used(spent.ru_utime + spent.ru_stime, float(memory))


def figures(spent: Used, millions: float) -> str:
    """Return seconds, millions of instructions in a second, and megabytes."""
    return f"{spent.seconds:8.2f}{millions / spent.seconds:10.1f}{spent.most:9.0f}"


def parts(name: str, trace: Path, elf: Path) -> str:
    """Return milliseconds of the parts of the work, and a ratio."""
    image, histories, calls, profiles = Image.from_elf(elf), list[History](), list[CallHistory](), list[Profile]()
    setting = next(setting for setting in SETTINGS if setting.name == name)

    def decode() -> None:
        decoder = setting.decoder(image, None)
        decoder.feed(trace.read_bytes())
        histories.append(decoder.finish_one())

    spent = [
        cpu_seconds(decode),
        cpu_seconds(lambda: calls.append(CallHistory(histories[0], ContextImages(image)))),
        cpu_seconds(lambda: profiles.append(hart_profile(calls[0]))),
        cpu_seconds(lambda: reports(profiles, ReportChoice())),
    ]
    milliseconds = [f"{1e3 * part:9.0f}" for part in spent[:3]]
    return f"{''.join(milliseconds)}{1e3 * spent[3]:7.0f}{sum(spent[1:]) / spent[0]:7.2f}"


def child() -> None:
    """Run a command, and say how much memory this process has had: the system counts that of its parent in, too."""
    from rvtrace_gdb.console.main import main as rvtrace

    assert rvtrace(sys.argv[2:]) == 0
    print(status("VmHWM"))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child()
    elif sys.argv[1:2] == ["--pieces"]:
        sys.exit(pieces())
    else:
        sys.exit(main())
