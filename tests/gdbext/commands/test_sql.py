"""`trace sql` of a part of a history, in the real gdb, by its machine interface and in Python."""

from pathlib import Path

from rvtrace_gdb.console.bench.bench import Bench
from tests.gdbext.gdb_process import SOURCE, run_gdb
from tests.helpers.example_captures import example_capture

COUNT = "SELECT count(*) AS rows FROM functions"
PART = "trace sql -range 1,100 " + COUNT
INSIDE = f"trace sql {COUNT} WHERE begin <= 100"
MI = f'interpreter-exec mi "-rvtrace-sql --range 1,100 -- {COUNT}"'
TIME = "trace sql -time 0,50 SELECT position FROM events"
TREE = "trace sql -range 1,100 SELECT * FROM calls"


def test_a_range_and_a_time(tmp_path: Path) -> None:
    capture = example_capture(tmp_path, "hang")
    elf = next(tmp_path.glob("*.elf"))
    out = run_gdb(elf, [SOURCE, f"trace open {capture}", PART, INSIDE, MI, TIME, TREE, "trace sql -range"])
    assert out[PART] == out[INSIDE] and out[PART].split()[0] == "rows"
    number = out[PART].split()[1]
    assert f'values=["{number}"]' in out[MI]
    assert out[TIME].split()[0] == "position"
    assert "calls is the tree of all calls" in out[TREE]
    assert "-range: which?" in out["trace sql -range"]
    with Bench(str(elf)) as bench:
        bench.open(str(capture))
        assert bench.sql(COUNT, numbers="1,100") == [{"rows": int(number)}]
        assert bench.sql(COUNT)[0]["rows"] > int(number)
