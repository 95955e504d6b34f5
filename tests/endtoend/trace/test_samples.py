"""What gdb prints in the samples of docs/ that look at one trace of the demo program, and who types the others."""

from pathlib import Path

from tests.endtoend.trace.test_first_trace import trace
from tests.helpers.cross_compiler import HOME, demo
from tests.helpers.page_sessions import sessions, shown
from tests.tutorials.page import is_printed

HERE = {"calls.md": 2, "coverage.md": 3, "history.md": 1, "intervals.md": 1, "report.md": 1}
"""How many sessions at the beginning of a page are typed here, after the demo program ran to `finish`."""
ELSEWHERE = {
    "ctr.md": 3,  # tests/gdbext/ctr/test_page.py
    "diff.md": 1,  # tests/session/questions/divergence/test_page.py
    "filters.md": 1,  # tests/endtoend/trace/test_triggers_page.py
    "finding.md": 5,  # test_find.py, test_mismatched_returns.py, test_trap_loop.py
    "history.md": 1,  # test_two_harts.py
    "native.md": 1,  # tests/gdbext/replay/test_record_btrace_limits.py
    "registers.md": 1,  # tests/gdbext/commands/test_registers_page.py
    "reverse.md": 1,  # tests/endtoend/reverse/test_page.py
    "share.md": 2,  # tests/console/commands/test_note.py
    "serve.md": 3,  # tests/console/commands/serve/test_page.py
    "triggers.md": 1,  # test_triggers_page.py
    "waves.md": 1,  # tests/gdbext/replay/test_gtkwave.py
    "who-wrote.md": 1,  # tests/endtoend/tandem/test_who_wrote.py
    "why.md": 2,  # tests/gdbext/commands/test_why.py
}
UNTYPED = {
    "check.md": 1,  # a trace that was damaged
    "coverage.md": 1,  # while it runs: what comes when is another each time
    "esp32.md": 1,  # a chip
    "export.md": 1,  # nothing of it is shown
    "first-board.md": 1,  # another board; nothing is printed
    "follow.md": 1,  # a probe
    "fork.md": 1,  # of a program of a test; the tutorial of the changed variable has one that is typed
    "history.md": 2,  # of a terminal: tests/gdbext/commands/test_history.py; of a program of a test
    "linux.md": 1,  # tests/endtoend/linux/test_boot.py
    "log.md": 1,  # a synopsis
    "native.md": 1,  # a Linux
    "reverse.md": 4,  # programs of tests, QEMU
    "sifive-v0.md": 1,  # a board
    "tandem.md": 1,  # a core
    "tasks.md": 1,  # nothing is printed
    "target-description.md": 1,  # nothing is printed
    "targets.md": 2,  # a board; nothing is printed
    "top.md": 1,  # while it runs
    "trace-start.md": 1,  # the usage
    "tui.md": 1,  # a window
    "usb.md": 1,  # an adapter
    "values.md": 3,  # a board whose buffer was too small
    "waves.md": 1,  # the waveforms of a design
}


def test_every_session_of_a_page_is_typed_or_said_not_to_be() -> None:
    pages = {page.name: len(sessions(page.name)) for page in sorted((HOME / "docs").glob("*.md"))}
    counted = {page: sum(table.get(page, 0) for table in (HERE, ELSEWHERE, UNTYPED)) for page in pages}
    assert counted == pages


def test_gdb_prints_what_the_pages_say(tmp_path: Path) -> None:
    """With times, for what docs/history.md shows."""
    exchanges = [(page, *row) for page, count in HERE.items() for found in sessions(page)[:count] for row in found]
    begin = ["trace start -timestamps", "break finish", "continue"]
    said, _ = trace(demo(tmp_path), tmp_path / "rig", [*begin, *(command for _, command, _ in exchanges)])
    for page, command, lines in exchanges:
        expected = [line.replace("examples/", "") for line in lines]
        printed = shown(said[command])
        assert is_printed(by_file(expected), "\n".join(by_file(printed))), f"{page}: {command}\n{printed}"


def by_file(lines: list[str]) -> list[str]:
    """The lines of `trace coverage` by the names of the files: their order is that in which the program was linked."""
    parts: list[list[str]] = [[]]
    for line in filter(None, lines):
        if line.startswith("File "):
            parts.append([])
        parts[-1].append(line)
    return [line for part in [parts[0], *sorted(parts[1:])] for line in part]
