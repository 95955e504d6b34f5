"""`rvtrace find`, `events` and `gaps` of a trace that takes long to decode: rows before the end, and the same ones."""

from collections.abc import Callable
from pathlib import Path

import pytest

from rvtrace_gdb.console.commands.shown_list import early_list
from rvtrace_gdb.console.commands.shown_list.early_list import EarlyList
from rvtrace_gdb.console.main import main
from rvtrace_gdb.session.formats import format as trace_format
from tests.helpers import reference_streams
from tests.helpers.amounts import long_only

MEDIAN = (reference_streams.FOLDER / "median.1.nex").read_bytes()
ELF = reference_streams.FOLDER / "median.elf"
WHOLE = MEDIAN * 8
DAMAGED = WHOLE[:7_000] + WHOLE[7_100:]


def of_harts(*streams: bytes) -> bytes:
    """Streams of harts 1, 2, ..., whose messages take turns."""
    messages = (reference_streams.from_source(stream, 2, source) for source, stream in enumerate(streams, 1))
    return reference_streams.in_turn(*messages)


TWO = of_harts(WHOLE[:9_000], MEDIAN * 2)
Listed = Callable[..., tuple[str, list[int]]]


@pytest.fixture
def listed(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Listed:
    """Return (standard output, how many rows had been written after each piece of the trace)."""
    for name in ("_PAUSE", "_SHARE"):
        monkeypatch.setattr(early_list, name, 0)
    monkeypatch.setattr(trace_format, "_PIECE", 2400)  # the third ends where nothing can be decoded
    progress = EarlyList.progress

    def run(wait: float, data: bytes, verb: str, *words: str) -> tuple[str, list[int]]:
        numbers = []

        def noted(self: EarlyList, label: str, done: int, total: int | None = None) -> None:
            progress(self, label, done, total)
            numbers.append(self.written)

        (tmp_path / "trace.bin").write_bytes(data)
        monkeypatch.setattr(early_list, "WAIT", wait)
        monkeypatch.setattr(EarlyList, "progress", noted)
        assert main([verb, str(tmp_path / "trace.bin"), "--ntrace", "--elf", str(ELF), *words]) == 0
        return capsys.readouterr().out, numbers

    return run


@pytest.mark.parametrize(
    ("data", "words"),
    [
        pytest.param(WHOLE, ("find", "main"), id="find"),
        pytest.param(DAMAGED, ("events", "--kind", "loss", "--kind", "sync", "--json"), id="kinds"),
        pytest.param(TWO, ("events", "--src-bits", "2", "--hart", "2"), id="one hart"),
        *long_only(
            pytest.param(DAMAGED, ("find", "main", "printf", "--json"), id="find json"),
            pytest.param(DAMAGED, ("events",), id="events"),
            pytest.param(DAMAGED, ("gaps",), id="gaps"),
            pytest.param(TWO, ("find", "main", "--src-bits", "2"), id="harts"),
        ),
    ],
)
def test_rows_come_while_the_trace_is_decoded_and_are_the_same(
    listed: Listed, data: bytes, words: tuple[str, ...]
) -> None:
    early, numbers = listed(0, data, *words)
    late, none = listed(1e9, data, *words)
    assert early == late
    assert not any(none)
    assert numbers == sorted(numbers) and numbers[-1] > 0, "before the last piece"


@pytest.mark.parametrize("words", [("find", "main", "2,3"), ("events", "--from", "1000"), ("functions",)])
def test_what_needs_the_whole_trace_waits_for_it(listed: Listed, words: tuple[str, ...]) -> None:
    early, numbers = listed(0, WHOLE, *words)
    assert early == listed(1e9, WHOLE, *words)[0]
    assert not any(numbers)


def test_a_place_that_is_none_is_said_after_decoding(
    listed: Listed, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(tmp_path / "trace.bin")
    whole = listed(0, WHOLE, "find", "main")[0]
    assert whole
    assert main(["find", file, "--ntrace", "--elf", str(ELF), "nowhere"]) == 1
    out, err = capsys.readouterr()
    assert not out
    assert err.splitlines()[-1].startswith("rvtrace: nowhere")
