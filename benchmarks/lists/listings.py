"""How long the listings of a long history take to appear.

Run: python benchmarks/lists/listings.py [MILLION_INSTRUCTIONS [PART_OF_A_SETTING]]

The program `mixed` of benchmarks/programs runs on the simulated hart (default: 60 million instructions) and is traced
as in benchmarks/decoding/long_runs.py. The first line has the seconds it takes to find the calls, which a session does
when it decodes. For each listing: how many it has, the first page, which is when what is asked for is searched in the
whole history, and a page in the middle after that. Milliseconds of CPU time; the aim: 100 on 100 M.

Before that, whole listings at the shell, of the HTM trace and of a tandem trace: CPU seconds from the start of
`rvtrace` to its end, decoding included, with the kernel and without, and seconds on the clock to the first row. The
aims for `decode`: a sixth of what it took when each row was made alone (560 ns a row on the machine where that was
measured), and three times that for JSON.
"""

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter, process_time

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.decoding.long_runs import encoded, histories
from rvtrace_gdb.decode.calls.call_history import CallHistory
from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.decode.program.context_images import ContextImages
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.session.queries.lists.executions import ExecutionQuery
from rvtrace_gdb.session.queries.lists.search import EventQuery, GapQuery, ListQuery, PagedResults

PAGE = 10


TANDEM = Path(__file__).resolve().parents[2] / "tests" / "data" / "tandem" / "flute_rv64ui-v-add.tvt"
TANDEM_OPTIONS = ("--dialect", "flute", "--xlen", "64", "--flen", "64")


def main() -> None:
    whole_listings()
    for name, history, image in histories():
        measure(name, history, image)


def whole_listings() -> None:
    """A line for each command."""
    print(f"{'':30}{'MB':>8}{'kernel':>9}{'Python':>9}{'ratio':>7}{'first row':>11}")
    with tempfile.TemporaryDirectory() as folder:
        for setting, items, elf in encoded(Path(folder), "mixed"):
            if setting.name == "HTM":
                trace = Path(folder, "trace.bin")
                trace.write_bytes(b"".join(setting.encode(items)))
                for words in (["decode"], ["decode", "--json"]):
                    whole_listing([*words, str(trace), "--ntrace", "--elf", str(elf)])
                for words in (["dump"], ["dump", "--json"]):
                    whole_listing([*words, str(trace), "--ntrace"])
        groups = Path(folder, "trace.tvt")
        groups.write_bytes(TANDEM.read_bytes() * 4)
        for option in ([], ["--json"]):
            whole_listing(["tandem", "show", *option, str(groups), *TANDEM_OPTIONS])


def whole_listing(words: list[str]) -> None:
    """The line of one command."""
    (kernel, size, first), (python, *_) = (listed(words, compiled) for compiled in ("1", "0"))
    name = " ".join(word for word in words if word in ("decode", "dump", "tandem", "show", "--json"))
    print(f"{name:30}{size / 1e6:8.0f}{kernel:9.2f}{python:9.2f}{python / kernel:7.1f}{first:11.2f}", flush=True)


def listed(words: list[str], compiled: str) -> tuple[float, int, float]:
    """CPU seconds, how many bytes were written, and seconds until the first of them."""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), perf_counter()
    command = [sys.executable, "-m", "rvtrace_gdb", *words, "--quiet"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env={**os.environ, "RVTRACE_KERNEL": compiled}) as process:
        assert process.stdout is not None
        size = len(os.read(process.stdout.fileno(), 1 << 16))
        first = perf_counter() - begin
        while some := os.read(process.stdout.fileno(), 1 << 20):
            size += len(some)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)}: {process.returncode}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, size, first


def measure(name: str, history: History, image: Image) -> None:
    """A line for each listing."""
    program = ContextImages(image)
    begin = process_time()
    calls = CallHistory(history, program)
    spent = process_time() - begin
    print(f"{name}: {history.instructions} instructions, {len(history.entries)} entries, calls found in {spent:.2f} s")
    for what, question in questions(history, image).items():
        begin = process_time()
        found = page(PagedResults(history, program, question, calls=lambda: calls))
        middle = process_time()
        page(found, len(found) // 2)
        first, again = 1e3 * (middle - begin), 1e3 * (process_time() - middle)
        print(f"  {what:36}{len(found):10}{first:9.1f}{again:9.1f}", flush=True)


def questions(history: History, image: Image) -> dict[str, ListQuery]:
    """What is asked for: of each function that ran in the last instructions, the hottest and the coldest."""
    pcs = list(history.pcs(len(history) - 100_000))
    names = {pc: image.symbol(pc) for pc in set(pcs)}
    entries = sorted((pc for pc, symbol in names.items() if symbol and symbol[1] == 0), key=pcs.count)
    cold, hot = entries[0], entries[-1]
    return {
        "events": EventQuery(),
        "gaps": GapQuery(),
        "find: what never ran": ExecutionQuery("nothing", 0x10),
        f"find: function {names[cold]}": ExecutionQuery("cold", cold, function=True),
        f"find: function {names[hot]}": ExecutionQuery("hot", hot, function=True),
        "find: address in a loop": ExecutionQuery("loop", max(set(pcs), key=pcs.count)),
        "find: arrivals in a function": ExecutionQuery("range", hot, hot + 0x20),
    }


def page(found: PagedResults, number: int | None = None) -> PagedResults:
    """Makes a listing: the last page, or the one from a number on."""
    selection = found.select("" if number is None else str(number or 1), PAGE)
    found.rows(selection.begin, selection.end)
    return found


if __name__ == "__main__":
    main()
