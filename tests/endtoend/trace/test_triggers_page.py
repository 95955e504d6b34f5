"""docs/triggers.md and docs/trace-start.md: the session is what the real gdb prints, the tables are the options."""

import os
from pathlib import Path

import pytest

from rvtrace_gdb.console.bench.rig import Rig
from rvtrace_gdb.gdbext.options import Option
from rvtrace_gdb.gdbext.start_options import OPTIONS
from tests.gdbext.gdb_process import SOURCE, run_gdb
from tests.helpers.cross_compiler import EXAMPLES, HOME, demo

TRIGGERS, START = HOME / "docs" / "triggers.md", HOME / "docs" / "trace-start.md"
PROMPT = "(gdb) "


def documented() -> list[tuple[str, list[str]]]:
    """(command, what gdb printed) of the page's session, which comes first."""
    found: list[tuple[str, list[str]]] = []
    for line in TRIGGERS.read_text(encoding="utf-8").splitlines():
        if not line.startswith("    "):
            if found:
                break
        elif line[4:].startswith(PROMPT):
            found.append((line[4 + len(PROMPT) :], []))
        elif found:
            found[-1][1].append(line[4:])
    return found


def printed(text: str) -> list[str]:
    """Without empty lines, where the sources are, and what is said at the first `trace start` of a gdb."""
    lines = text.replace(f"{EXAMPLES}{os.sep}", "examples/").splitlines()
    return [line for line in lines if line and not line.startswith(("OS ABI set", "`trace connect`"))]


def test_gdb_prints_what_the_page_says(tmp_path: Path) -> None:
    session = documented()
    assert len(session) == 5
    elf = demo(tmp_path)
    with Rig(elf, tmp_path / "rig") as rig:
        begin = [SOURCE, f"set trace target {rig.target_file}", f"target extended-remote :{rig.gdb_port}"]
        out = run_gdb(elf, [*begin, *(command for command, _ in session)])
    assert [(command, printed(out[command])) for command, _ in session] == session


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.name)
def test_every_option_is_in_the_page(option: Option) -> None:
    """As it is typed, and with all of its help."""
    page = START.read_text(encoding="utf-8").replace("\\|", "|")
    rows = [line for line in page.splitlines() if line.startswith((f"| `{option.name}`", f"| `{option.name} "))]
    assert len(rows) == 1 and rows[0].endswith(f"| {' '.join(option.help)} |")
    assert all(word in rows[0] for word in option.words)


def test_the_pages_lead_to_each_other() -> None:
    filters = (HOME / "docs" / "filters.md").read_text(encoding="utf-8")
    assert "(triggers.md)" in filters and "(trace-start.md)" in filters
    assert "(filters.md)" in TRIGGERS.read_text(encoding="utf-8")
