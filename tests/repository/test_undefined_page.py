"""docs/undefined.md: each row names a test, and there is such a test."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROW = re.compile(r"^\| (?!what \||---).*\|$", re.M)
TEST = re.compile(r"`(tests/[\w/]+\.py)(?:::(\w+))?` \|$")


def test_every_row_names_a_test() -> None:
    rows = ROW.findall((ROOT / "docs" / "undefined.md").read_text())
    assert len(rows) > 30
    for row in (row for row in rows if not row.startswith("|---")):
        named = TEST.search(row)
        assert named is not None, row
        path = ROOT / named[1]
        assert path.exists(), row
        assert named[2] is None or f"\ndef {named[2]}(" in path.read_text(), row
