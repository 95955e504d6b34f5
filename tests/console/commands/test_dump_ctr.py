"""`rvtrace dump` of Control Transfer Records: every field of the entry registers is a field of its own."""

import json
import struct
from dataclasses import replace
from pathlib import Path

import pytest

from rvtrace_gdb.console.main import main
from rvtrace_gdb.session.capture.file import save
from tests.session.captures import WITH_RECORDS

ENTRIES = struct.pack(
    "<12Q",
    *(0x8000_0001, 0x8000_0010, 0x8009),  # TYPE 9, CCV, no cycles
    *(0x8000_0021, 0x8000_0031, 0x0005),  # MISP, TYPE 5, no CCV
    *(0x8000_0041, 0x8000_0051, 0xF800_8005 | 0x07FF_0000),  # MISP, CCE and CCM full
    *(0x8000_0060, 0x8000_0070, 0x0005),  # not valid
)
"""1.0, "Entry Registers": ctrsource.V, ctrtarget.MISP are bits 0; ctrdata: TYPE 3:0, CCV 15, CCM 27:16, CCE 31:28."""


def test_mispredictions_are_a_field(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = replace(WITH_RECORDS.records[0], data=ENTRIES)
    save(replace(WITH_RECORDS, records=(first,)), tmp_path / "x.rvt")
    assert main(["dump", str(tmp_path / "x.rvt"), "--json", "--quiet"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    rows = [row for row in rows if row["sink"] == "ctr1"]
    assert [row["fields"].get("MISP") for row in rows] == [0, 1, 1, None]
    assert [row["fields"].get("TYPE") for row in rows] == [9, 5, 5, None]
    assert [row["fields"].get("cycles") for row in rows] == [0, None, ((1 << 12) + 0xFFF) << 14, None]
    assert [row["fields"].get("saturated") for row in rows] == [0, None, 1, None]
    assert [row["name"] for row in rows] == ["Record"] * 3 + ["Invalid"]
    assert rows[1]["fields"]["target"] == "0x80000030" and rows[1]["text"] == "taken branch, mispredicted"
