"""What `trace log` and `trace calls-of` cost: values at each of many places, of a history of any length.

Run: .venv/bin/python benchmarks/questions/log.py [MILLION_INSTRUCTIONS ...]   (default: 0.1 1)

A program calls a function in a loop on the simulated hart, about once in 100 instructions. For each length: how many
times the function ran, and CPU seconds: to open the capture; of the first page of a log, for which it is decoded and
executed once; of all rows with two variables; of all with five expressions, among them strings and a structure; of
those where a condition holds that is evaluated at all of them; of all calls with arguments and results. Then the
microseconds of a row of each, which are to be the same for all lengths.
"""

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from rvtrace_gdb.console.options.locations import Locations
from rvtrace_gdb.session.rpc.lists import pages
from rvtrace_gdb.session.rpc.lists.list_selection import Range
from rvtrace_gdb.session.rpc.protocol import Params
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import silent
from rvtrace_gdb.transport.simulated.machine import MemoryMap, build
from tests.helpers.cross_compiler import compile_program
from tests.helpers.example_captures import RAM
from tests.session.board import Board

PROGRAM = """
struct item { int key; const char *name; struct item *next; };
struct item items[4] = {{1, "one", items + 1}, {2, "two", items + 2}, {3, "three", items + 3}, {4, "four", items}};
volatile int sink;
__attribute__((noinline)) int visit(int number, struct item *item) { sink = number; return number * 3 + item->key; }
int main(void) {
    struct item *at = items;
    for (int i = 0;; i++) {
        for (int k = 0; k < 28; k++) sink = k;
        sink = visit(i, at);
        at = at->next;
    }
}
"""
_BUFFER = 1 << 25
EXPRESSIONS = ["number", "item->name", "item->next->key + number", "*item", "$sp"]


def main() -> None:
    lengths = [int(float(it) * 1e6) for it in sys.argv[1:]] or [100_000, 1_000_000]
    titles = "".join(f"{it:>8}" for it in ("open", "page", "two", "five", "if", "calls"))
    print(f"{'instructions':>13}{'rows':>9}{titles}   us per row: two, five, if, calls")
    for length in lengths:
        with tempfile.TemporaryDirectory() as folder:
            measure(length, Path(folder))


def measure(length: int, folder: Path) -> None:
    """Print the line of a length."""
    source = folder / "visits.c"
    source.write_text(PROGRAM, encoding="utf-8")
    session, elf = captured(length, folder, compile_program(folder, source))
    opened = Session()
    open_seconds, decoded = seconds(lambda: (opened.open(folder / "x.rvt", str(elf)), opened.harts())[1])
    where = Locations(decoded.image).search("visit")
    page, _ = seconds(lambda: rows(opened, "log", "", 10, where, expressions=EXPRESSIONS))
    two, _ = seconds(lambda: rows(opened, "log", "", 0, where, expressions=["number", "item->key"]))
    log, shown = seconds(lambda: rows(opened, "log", "", 0, where, expressions=EXPRESSIONS))
    chosen, _ = seconds(lambda: rows(opened, "log", "", 0, where, expressions=["number"], condition="item->key == 7"))
    calls, _ = seconds(lambda: rows(opened, "calls_of", "", 0, where))
    each = [f"{1e6 * it / max(shown, 1):.0f}" for it in (two, log, chosen, calls)]
    figures = "".join(f"{it:8.2f}" for it in (open_seconds, page, two, log, chosen, calls))
    print(f"{length:>13,}{shown:>9,}{figures}   {', '.join(each)}")
    session.close()


def captured(length: int, folder: Path, elf: Path) -> tuple[Session, Path]:
    """Make a capture of so many instructions."""
    machine = build(elf, memory_map=MemoryMap(ram_size=1 << 20, trace_ram_size=_BUFFER))
    machine.halt_at_start()
    target = Board(machine, elf, folder, registers=True)
    session, context = Session(target.connect, {}), target.describe(extra=RAM, size=_BUFFER)
    session.start(context, {})
    target.run(length)
    session.save(folder / "x.rvt", context)
    return session, elf


def rows(session: Session, what: str, args: str, size: int, where: dict[str, Any], **more: Any) -> int:
    """Make the rows of a list, and return how many there are."""
    asked = {"context": {}, "what": what, "args": args, "size": size, "anew": True, "where": where, **more}
    params = Params(asked, what)
    found = pages.LISTS[what](session, params, Range.from_params(params), silent)
    begin, end, _ = found.selection
    for first in range(begin, end, 256):
        found.rows(first, min(first + 256, end))
    return end - begin


def seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    begin = process_time()
    found = work()
    return process_time() - begin, found


main()
