"""`trace stack` in the real gdb: Enter goes on, as in lists."""

from pathlib import Path

from tests.gdbext.gdb_process import SOURCE, run_gdb
from tests.helpers.example_captures import example_capture

TYPED = "python from rvtrace_gdb.gdbext import enter_key; enter_key._last_command = lambda: '1 trace stack'"
"""gdb keeps no list of commands in a pipe, by which a repetition is known."""
ASK = "python gdb.execute('trace stack -top 2', from_tty=True)"


def test_enter_shows_the_next_frames_and_functions(tmp_path: Path) -> None:
    capture = example_capture(tmp_path, "latency")
    elf = next(tmp_path.glob("*.elf"))
    pages = [f"{ASK}{' ' * number}" for number in range(5)]
    out = run_gdb(elf, [SOURCE, f"trace open {capture}", "trace stack -top 0", TYPED, *pages])
    whole, *parts = (rows(out[it]) for it in ("trace stack -top 0", *pages))
    assert len(whole) > 8 and [len(it) for it in parts[:2]] == [4, 4]
    assert sorted(row for part in parts for row in part) == sorted(whole)
    assert "... 3 more frames" in out[pages[0]] and "from row 3 on:" in out[pages[1]]
    assert out[pages[4]].strip() == "No more frames and functions."


def rows(text: str) -> list[str]:
    """The lines of frames and functions."""
    return [line for line in text.splitlines() if line.startswith("    ") and "#" in line]
