"""`rvtrace decode` of several harts, and its events."""

import json
import re
from itertools import groupby
from pathlib import Path

import pytest

from rvtrace_gdb.console.main import main
from rvtrace_gdb.session import kept_files
from rvtrace_gdb.session.formats import format as formats
from rvtrace_gdb.session.formats import sinks
from rvtrace_gdb.session.formats.format import PiecewiseDecoding
from rvtrace_gdb.session.formats.long_traces import indexed_history, trace_index
from tests.console.options.beginnings import beginning
from tests.decode.ntrace.messages import split
from tests.helpers import reference_streams
from tests.helpers.amounts import LONG
from tests.helpers.core_captures import sifive
from tests.helpers.without_guesses import without_guesses

ELF = reference_streams.FOLDER / "median.elf"


def decode(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[list[str], list[str]]:
    """What is printed, and what is said beside it."""
    assert main(["decode", *map(str, words)]) == 0
    out, err = capsys.readouterr()
    return out.splitlines(), err.splitlines()


@pytest.fixture
def harts(tmp_path: Path) -> Path:
    """Raw bytes of harts 1 and 3, which run the median program at the same pace; 3 is half a message behind."""
    stream = (reference_streams.FOLDER / "median.1.nex").read_bytes()
    streams = [
        reference_streams.from_source(stream, 2, 1, (1000, 10)),
        reference_streams.from_source(stream, 2, 3, (1005, 10)),
    ]
    (tmp_path / "harts.bin").write_bytes(reference_streams.in_turn(*streams))
    return tmp_path / "harts.bin"


RAW = ("--ntrace", "--src-bits", 2, "--timestamps", "--elf", ELF)


def test_each_line_says_whose_it_is_and_is_gdbs_behind_that(harts: Path, capsys: pytest.CaptureFixture[str]) -> None:
    merged, said = decode(capsys, harts, *RAW)
    assert not [line for line in said if line.startswith("note:")]
    for hart in (1, 3):
        alone, _ = decode(capsys, harts, *RAW, "--hart", hart)
        prefix = f"hart {hart}\t"
        assert [line.removeprefix(prefix) for line in merged if line.startswith(prefix)] == alone
        pcs = [int(re.findall(r"0x([0-9a-f]{16})", line)[0], 16) for line in alone]
        assert reference_streams.fingerprint(pcs) == reference_streams.golden("median")[1]


def test_harts_take_turns_as_their_times_say(harts: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What hart 1 did by one message, then what hart 3 did by the same one: the same lines."""
    merged, _ = decode(capsys, harts, *RAW)
    turns = [[line.partition("\t")[2] for line in turn] for _, turn in groupby(merged, key=lambda line: line[:6])]
    assert merged[0].startswith("hart 1\t")
    assert turns[0::2] == turns[1::2]
    assert len(turns) > 400, "about one for each message"


def test_the_range_is_one_harts(harts: Path, capsys: pytest.CaptureFixture[str]) -> None:
    alone, _ = decode(capsys, harts, *RAW, "--hart", 3, "10,+5")
    assert [line.split("\t")[0] for line in alone] == ["10", "11", "12", "13", "14"]
    assert main(["decode", str(harts), *map(str, RAW), "10,+5"]) == 1
    [line] = capsys.readouterr().err.splitlines()
    assert line == "rvtrace: 10,+5: several harts are in the trace, and each has its own numbers: add --hart N"


def test_without_times_one_hart_comes_after_the_other_and_that_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stream = (reference_streams.FOLDER / "median.1.nex").read_bytes()
    (tmp_path / "raw").write_bytes(
        reference_streams.in_turn(*(reference_streams.from_source(stream, 2, src) for src in (0, 2)))
    )
    merged, said = decode(capsys, tmp_path / "raw", "--ntrace", "--src-bits", 2, "--elf", ELF)
    assert said[-1] == "note:     the trace has no timestamps: one hart after the other"
    count, _ = reference_streams.golden("median")
    assert [line.partition("\t")[0] for line in merged] == ["hart 0"] * count + ["hart 2"] * count


def test_one_hart_is_listed_as_ever(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words in ((), ("--hart", "all"), ("--hart", 0)):
        shown, _ = decode(capsys, reference_streams.FOLDER / "median.1.nex", "--ntrace", "--elf", ELF, "1,3", *words)
        assert [line.split("\t")[0] for line in shown] == ["1", "2", "3"]


def test_raw_bytes_and_their_capture_are_listed_alike(
    harts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "x.rvt"
    assert main(["import", str(harts), *map(str, RAW[1:]), "-o", str(file)]) == 0
    capsys.readouterr()
    assert decode(capsys, file)[0] == decode(capsys, harts, *RAW)[0]


# Events


def test_events_are_lines_with_columns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stream = (reference_streams.FOLDER / "median.1.nex").read_bytes()
    (tmp_path / "raw").write_bytes(stream + b"\x02\x03" + stream[:40])
    shown, _ = decode(capsys, tmp_path / "raw", "--ntrace", "--elf", ELF, "--events")
    count = reference_streams.golden("median")[0]
    entry = "0x0000000080000000 <_start+0>"
    assert shown[0] == f"1\tsync offset=0x0 next_pc={entry} # exit from reset"
    last = len(stream) - len([*split(stream)][-1])
    off = next(line for line in shown if "\ttrace-off " in line)
    assert off.startswith(f"{count + 1}\ttrace-off offset={last:#x} last_pc=0x")
    loss = next(line for line in shown if "\tloss " in line)
    assert f" offset={len(stream):#x} " in loss and loss.endswith(" # 2 bytes skipped: reserved MSEO value 10")
    assert any(line.endswith(" # the last message is cut off") and "\tnote " in line for line in shown)
    columns = re.compile(r"\d+\t[a-z-]+ offset=0x[0-9a-f]+( [a-z_]+=\S+( <[^>]+>)?)* # \S.*")
    assert all(columns.fullmatch(line) for line in shown)


def test_events_of_several_harts_are_in_the_order_of_their_bytes(
    harts: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shown, _ = decode(capsys, harts, *RAW, "--events")
    assert {line.partition("\t")[0] for line in shown} == {"hart 1", "hart 3"}
    offsets = [int(re.findall(r"offset=0x([0-9a-f]+)", line)[0], 16) for line in shown]
    assert offsets == sorted(offsets)
    assert " time=1000 " in shown[0] and " time=1005 " in shown[1]
    alone, _ = decode(capsys, harts, *RAW, "--events", "--hart", 3)
    assert alone == [line.partition("\t")[2] for line in shown if line.startswith("hart 3\t")]


def test_events_tell_the_context(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = sifive("linux-static")
    words = ["--ntrace", "--dialect", "sifive", "--src-bits", "2", "--elf", folder / "gtod"]
    words += ["--maps", f"738={folder / 'gtod.map'}", "--kernel-pages", folder / "kmem", "--events", "--hart", "1"]
    with without_guesses():
        shown, _ = decode(capsys, beginning(sifive("linux-static.rtd"), 20_000, tmp_path), *words)
    in_process = [line for line in shown if " prv=0 v=0 scontext=738 " in line]
    assert len(in_process) > (20 if LONG else 3)


def test_decoding_stops_at_the_first_loss_if_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stream = (reference_streams.FOLDER / "median.1.nex").read_bytes()
    (tmp_path / "raw").write_bytes(stream + b"\x02\x03" + stream)
    count = reference_streams.golden("median")[0]
    all_of_it, _ = decode(capsys, tmp_path / "raw", "--ntrace", "--elf", ELF)
    assert len(all_of_it) == 2 * count + 1
    stopped, _ = decode(capsys, tmp_path / "raw", "--ntrace", "--elf", ELF, "--stop-at-error")
    assert count <= len(stopped) <= count + 1


def test_the_last_rows_and_those_of_a_time_come_from_the_index_the_second_time(
    harts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    whole, _ = decode(capsys, harts, *RAW, "--hart", 3)
    told = [json.loads(line) for line in decode(capsys, harts, *RAW, "--hart", 3, "--events", "--json")[0]]
    times = sorted({event["time"] for event in told if "time" in event})
    monkeypatch.setenv(kept_files.FOLDER_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setattr(sinks, "LEAST_INDEXED", 1)
    monkeypatch.setattr(trace_index, "_APART", 500)
    monkeypatch.setattr(formats, "_PIECE", 250)
    monkeypatch.setattr(indexed_history, "_PIECE", 250)
    first = decode(capsys, harts, *RAW, "--hart", 3, "-7")
    fed = list[int]()
    monkeypatch.setattr(PiecewiseDecoding, "result", lambda *_: fed.append(1))
    again = decode(capsys, harts, *RAW, "--hart", 3, "-7")
    assert again[0] == first[0] == whole[-7:]
    assert again[1][2:] == first[1][2:], "but for the second in which it was read"
    assert decode(capsys, harts, *RAW, "--hart", 3, "40,49")[0] == whole[39:49]
    rows = decode(capsys, harts, *RAW, "--hart", 3, "--time", f"{times[0] + 90},{times[0] + 200}")[0]
    assert rows and whole[int(rows[0].split("\t")[0]) - 1 : int(rows[-1].split("\t")[0])] == rows
    assert not fed, "not everything was decoded"


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--time", "5,2"), "--time 5,2: the second time is earlier than the first one"),
        (("--time", "soon"), "--time soon: give a time in ticks, or two: FIRST,LAST"),
        (("--time", 4, "1,5"), "--time 4: neither with RANGE, nor with --events or --follow"),
        (("-0",), "Bad range: its end, "),
    ],
)
def test_times_that_make_no_sense(
    words: tuple[object, ...], why: str, harts: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["decode", *map(str, (harts, *RAW, "--hart", 1, *words))]) == 1
    assert capsys.readouterr().err.splitlines()[-1].startswith(f"rvtrace: {why}")


def test_a_time_of_a_trace_without_times(capsys: pytest.CaptureFixture[str]) -> None:
    raw = reference_streams.FOLDER / "median.1.nex"
    assert main(["decode", str(raw), "--ntrace", "--elf", str(ELF), "--time", "7"]) == 1
    assert capsys.readouterr().err.splitlines()[-1] == "rvtrace: --time: the trace has no timestamps"
