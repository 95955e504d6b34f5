"""The messages of a SpacemiT K3 in its vendor's trace guide: fields, addresses, and the remarks of `trace dump`.

The addresses are the beginnings of blocks that the guide's `perf script` prints, made by another decoder on the board.
"""

import re
from pathlib import Path

import pytest

from rvtrace_gdb.console.main import main
from tests.decode.coresight.k3 import MESSAGES, SRC_BITS

ADDRESSES = [
    0xFFFFFFFF80B63E34, 0xFFFFFFFF80B655BE, 0xFFFFFFFF80B65C30, 0xFFFFFFFF80B5932E, 0xFFFFFFFF80B59392,
    0xFFFFFFFF80219FB8, 0xFFFFFFFF80E8699C, 0xFFFFFFFF8021A002,
]  # fmt: skip


def dumped(folder: Path, capsys: pytest.CaptureFixture[str], *messages: str) -> str:
    """What `rvtrace dump` prints of messages."""
    file = folder / "k3.bin"
    file.write_bytes(bytes.fromhex("".join(messages)))
    words = ["--ntrace", "--src-bits", str(SRC_BITS), "--xlen", "64", "--timestamps"]
    assert main(["dump", str(file), *words]) == 0
    return capsys.readouterr().out


def test_the_addresses_are_those_of_the_guide(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = dumped(tmp_path, capsys, *MESSAGES)
    assert [int(found, 16) for found in re.findall(r" addr=0x([0-9a-f]+)", said)] == ADDRESSES
    assert set(re.findall(r" SRC=(\d+)", said)) == {"5"}
    assert "hcontext=0" in said and "scontext=1717 " in said and "I-CNT=70" in said


def test_an_address_that_is_only_sign_extended_causes_no_remark(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """F-ADDR has 66 bits, of which the upper four are ones; with a zero among them it is longer than an address."""
    first = MESSAGES[0]
    assert "66 bits" not in dumped(tmp_path, capsys, first)
    other = first.replace("fcfcfcfcfcfd", "fcfcfcfcfcdd")
    assert other != first
    assert "F-ADDR has 66 bits, more than 63" in dumped(tmp_path, capsys, other)
