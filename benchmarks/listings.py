"""How long the listings of a long history take to appear.

Run: python benchmarks/listings.py [MILLION_INSTRUCTIONS [PART_OF_A_SETTING]]

The program `mixed` of benchmarks/programs runs on the simulated hart (default: 60 million instructions) and is traced
as in benchmarks/long_runs.py. The first line has the seconds it takes to find the calls, which a session does when it
decodes. For each listing: how many it has, the first page, which is when what is asked for is searched in the whole
history, and a page in the middle after that. Milliseconds of CPU time; the aim: 100 on 100 M.
"""

import sys
from pathlib import Path
from time import process_time

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from long_runs import histories

from rvtrace_gdb.decode.calls.call_history import CallHistory
from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.decode.program.image import ContextImages, Image
from rvtrace_gdb.session.queries.executions import ExecutionQuery
from rvtrace_gdb.session.queries.search import EventQuery, GapQuery, ListQuery, PagedResults

PAGE = 10


def main() -> None:
    for name, history, image in histories():
        measure(name, history, image)


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
