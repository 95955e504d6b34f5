"""`rvtrace decode` of a trace that takes long to decode: rows before the end, and the same ones."""

from collections.abc import Callable
from pathlib import Path

import pytest

from rvtrace_gdb.console.commands.decode import early_rows
from rvtrace_gdb.console.commands.decode.early_rows import EarlyRows
from rvtrace_gdb.console.main import main
from rvtrace_gdb.session.formats import format as trace_format
from rvtrace_gdb.views import row_pieces
from tests.helpers import reference_streams

DHRYSTONE = (reference_streams.FOLDER / "dhrystone.1.nex").read_bytes()
ELF = reference_streams.FOLDER / "dhrystone.elf"
DAMAGED = DHRYSTONE[:15_000] + DHRYSTONE[100:8_000] + DHRYSTONE[:20_000]


@pytest.fixture
def listed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[str, list[int]]]:
    """Return (standard output, how many rows had been written after each piece of the trace)."""
    (tmp_path / "trace.bin").write_bytes(DHRYSTONE)
    monkeypatch.setattr(trace_format, "_PIECE", 5000)
    monkeypatch.setattr(early_rows, "_PAUSE", 0)

    def run(wait: float, *words: str, data: bytes = DHRYSTONE) -> tuple[str, list[int]]:
        numbers, progress = [], EarlyRows.progress

        def noted(self: EarlyRows, label: str, done: int, total: int | None = None) -> None:
            progress(self, label, done, total)
            numbers.append(self.number)

        (tmp_path / "trace.bin").write_bytes(data)
        monkeypatch.setattr(early_rows, "WAIT", wait)
        monkeypatch.setattr(EarlyRows, "progress", noted)
        status = main(["decode", str(tmp_path / "trace.bin"), "--ntrace", "--elf", str(ELF), *words])
        monkeypatch.setattr(EarlyRows, "progress", progress)
        assert status == 0
        return capsys.readouterr().out, numbers

    return run


@pytest.mark.parametrize(
    ("data", "words"),
    [(DHRYSTONE, ("--hart", "all")), (DAMAGED, ("--json",)), (DAMAGED, ("/rf", "--color", "always"))],
    ids=["whole", "damaged", "colours"],
)
def test_rows_come_while_the_trace_is_decoded_and_are_the_same(
    listed: Callable[..., tuple[str, list[int]]], data: bytes, words: tuple[str, ...]
) -> None:
    early, numbers = listed(0, *words, data=data)
    late, none = listed(1e9, *words, data=data)
    assert early == late
    assert not any(none)
    rising = sorted(set(numbers))
    assert numbers == sorted(numbers) and len(rising) > 3, "piece after piece"
    assert not any(number % row_pieces._AT_ONCE for number in rising)


@pytest.mark.parametrize("words", [("5,20",), ("--events",)])
def test_what_needs_the_whole_trace_waits_for_it(
    listed: Callable[..., tuple[str, list[int]]], words: tuple[str, ...]
) -> None:
    early, numbers = listed(0, *words)
    assert early == listed(1e9, *words)[0]
    assert not any(numbers)


def test_a_trace_that_does_not_fit_is_decoded_first(listed: Callable[..., tuple[str, list[int]]]) -> None:
    """What is wrong with it is said before its rows."""
    broken = bytes(byte ^ (0x55 if at % 40 == 39 else 0) for at, byte in enumerate(DHRYSTONE))
    assert not any(listed(0, data=broken)[1])
