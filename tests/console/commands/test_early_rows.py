"""`rvtrace decode` of a trace that takes long to decode: rows before the end, and the same ones."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from rvtrace_gdb.console.commands.decode import early_rows
from rvtrace_gdb.console.commands.decode.early_rows import EarlyRows
from rvtrace_gdb.console.main import main
from rvtrace_gdb.session.formats import format as trace_format
from rvtrace_gdb.views import row_pieces
from tests.helpers import reference_streams
from tests.helpers.amounts import long_only, thorough

DHRYSTONE = (reference_streams.FOLDER / "dhrystone.1.nex").read_bytes()
MEDIAN = (reference_streams.FOLDER / "median.1.nex").read_bytes()
ELF = reference_streams.FOLDER / "dhrystone.elf"
DAMAGED = DHRYSTONE[:15_000] + DHRYSTONE[100:8_000] + DHRYSTONE[:20_000]


@pytest.fixture
def listed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[str, list[int]]]:
    """Return (standard output, how many rows had been written after each piece of the trace)."""
    (tmp_path / "trace.bin").write_bytes(DHRYSTONE)
    monkeypatch.setattr(early_rows, "_PAUSE", 0)
    monkeypatch.setattr(early_rows, "_ORDER_SHARE", 0)

    def run(wait: float, *words: str, data: bytes = DHRYSTONE, piece: int = 5000) -> tuple[str, list[int]]:
        numbers, progress = [], EarlyRows.progress

        def noted(self: EarlyRows, label: str, done: int, total: int | None = None) -> None:
            progress(self, label, done, total)
            numbers.append(self.number)

        (tmp_path / "trace.bin").write_bytes(data)
        monkeypatch.setattr(trace_format, "_PIECE", piece)
        monkeypatch.setattr(early_rows, "WAIT", wait)
        monkeypatch.setattr(EarlyRows, "progress", noted)
        elf = () if "--elf" in words else ("--elf", str(ELF))
        status = main(["decode", str(tmp_path / "trace.bin"), "--ntrace", *elf, *words])
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


@cache
def of_harts(*times: tuple[int, int] | None) -> bytes:
    """The median program on harts 1, 2, ..., whose messages take turns; see `reference_streams.from_source`."""
    stream = MEDIAN * 3
    return reference_streams.in_turn(
        *(reference_streams.from_source(stream, 2, source, time) for source, time in enumerate(times, 1))
    )


SEVERAL = ("--src-bits", "2", "--elf", str(reference_streams.FOLDER / "median.elf"))


def timed() -> bytes:
    return of_harts((1000, 10), (1005, 10))


def times_lost() -> bytes:
    return timed()[:7_000] + timed()[7_500:20_000] + timed()[:5_000] + timed()[20_000:]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        pytest.param(times_lost, ("--timestamps",), id="lost"),
        pytest.param(lambda: of_harts((1000, 10), (1005, 40), (900, 12)), ("--timestamps", "/r"), id="other paces"),
        pytest.param(lambda: of_harts(None, None), ("--json",), id="untimed json"),
        *long_only(
            pytest.param(timed, ("--timestamps",), id="timed"),
            pytest.param(timed, ("--timestamps", "--json"), id="json"),
            pytest.param(timed, ("--timestamps", "--hart", "2"), id="one"),
            pytest.param(lambda: of_harts(None, None), (), id="untimed"),
        ),
    ],
)
def test_rows_of_several_harts_come_as_soon_as_their_order_is_known(
    listed: Callable[..., tuple[str, list[int]]], data: Callable[[], bytes], words: tuple[str, ...]
) -> None:
    early, numbers = listed(0, *SEVERAL, *words, data=data(), piece=1000)
    late, none = listed(1e9, *SEVERAL, *words, data=data())
    assert early == late
    assert not any(none)
    assert numbers == sorted(numbers) and len(set(numbers)) > 3, "piece after piece"


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(lambda: of_harts((1000, 10)) + of_harts(None, (5, 10)), id="one comes last"),
        pytest.param(lambda: of_harts((1000, 10), None), id="one without times"),
    ],
)
def test_a_hart_that_may_come_first_is_waited_for(
    listed: Callable[..., tuple[str, list[int]]], data: Callable[[], bytes]
) -> None:
    early, numbers = listed(0, *SEVERAL, "--timestamps", data=data(), piece=1000)
    assert early == listed(1e9, *SEVERAL, "--timestamps", data=data())[0]
    assert numbers[len(numbers) // 3] == 0


@thorough("test_what_needs_the_whole_trace_waits_for_it")
def test_a_trace_that_does_not_fit_is_decoded_first(listed: Callable[..., tuple[str, list[int]]]) -> None:
    """What is wrong with it is said before its rows."""
    broken = bytes(byte ^ (0x55 if at % 40 == 39 else 0) for at, byte in enumerate(DHRYSTONE))
    assert not any(listed(0, data=broken)[1])
