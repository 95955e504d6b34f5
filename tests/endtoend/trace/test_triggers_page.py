"""docs/triggers.md and docs/trace-start.md: the session is what the real gdb prints, the tables are the options."""

from pathlib import Path

import pytest

from rvtrace_gdb.console.bench.rig import Rig
from rvtrace_gdb.gdbext.options import Option
from rvtrace_gdb.gdbext.start_options import OPTIONS
from tests.gdbext.gdb_process import SOURCE, run_gdb
from tests.helpers.cross_compiler import HOME, demo
from tests.helpers.page_sessions import sessions, shown

TRIGGERS, START = HOME / "docs" / "triggers.md", HOME / "docs" / "trace-start.md"


def test_gdb_prints_what_the_page_says(tmp_path: Path) -> None:
    session = sessions("triggers.md")[0]
    assert len(session) == 5
    elf = demo(tmp_path)
    with Rig(elf, tmp_path / "rig") as rig:
        begin = [SOURCE, f"set trace target {rig.target_file}", f"target extended-remote :{rig.gdb_port}"]
        out = run_gdb(elf, [*begin, *(command for command, _ in session)])
    assert [(command, printed(out[command])) for command, _ in session] == session


def printed(text: str) -> list[str]:
    """Without what is said at the first `trace start` of a gdb."""
    return [line for line in shown(text) if not line.startswith("`trace connect`")]


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
