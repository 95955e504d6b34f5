"""A trace of events without a flow, at the shell and in gdb: what it says is shown, and nothing else is claimed."""

import json
import random
import re
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from rvtrace_gdb.console.bench.bench import Bench
from rvtrace_gdb.console.main import main
from rvtrace_gdb.decode.history.hart_events import HartEventKind
from rvtrace_gdb.rows.list_text import HART_EVENTS
from rvtrace_gdb.session.queries.lists.search import KINDS
from rvtrace_gdb.support.errors import RvtraceError
from tests.decode.coresight import naive
from tests.decode.ntrace.messages import message
from tests.gdbext.gdb_process import GDB, SOURCE, run_gdb
from tests.helpers import reference_streams
from tests.helpers.event_traces import ELF, EVENTS, in_circuit, sample, written
from tests.helpers.gdb_mi import GdbMi
from tests.helpers.started_python import rvtrace

NO_FLOW = "this trace has no flow, so no instruction is known to have run: it has 5 PC samples"
TEXT = written(0, b"Hello!\nbye\n") + written(2, b"\x01\x02")


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    (tmp_path / "events.rtd").write_bytes(EVENTS + TEXT)
    return tmp_path / "events.rtd"


@pytest.fixture
def capture(raw: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    assert main(["import", str(raw), "--ntrace", "--elf", ELF, "-o", str(raw.with_suffix(".rvt"))]) == 0
    out, err = capsys.readouterr()
    assert "dialect sifive" in out + err
    return raw.with_suffix(".rvt")


def shown(capsys: pytest.CaptureFixture[str], *words: str | Path) -> list[str]:
    assert main([*map(str, words), "--quiet"]) == 0
    return capsys.readouterr().out.splitlines()


def test_events_have_their_places(capture: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [line.partition(":\t") for line in shown(capsys, "events", capture)][:8]
    assert [(place.split("\t")[2], text.partition(";")[0]) for place, _, text in lines] == [
        ("0x00000000800017c8 <main+0>", "control: trace on"),
        ("0x00000000800017de <main+22>", "call, to 0x0000000080001048 <median+0>"),
        *[("0x0000000080001048 <median+0>", "PC sample")] * 3,
        ("0x000000008000104e <median+6>", "PC sample"),
        ("0x00000000800017c8 <main+0>", "PC sample"),
        ("0x0000000080001838 <main+112>", "return, to 0x00000000800017de <main+22>"),
    ]


def test_one_kind_is_selected(capture: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert len(shown(capsys, "events", capture, "--kind", "pc-sample")) == 5
    assert len(shown(capsys, "events", capture, "--kind", "hart-event")) == 13


def test_decode_lists_events_where_there_is_nothing_else(capture: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(capsys, "decode", capture)
    assert lines == shown(capsys, "decode", capture, "--events")
    assert lines[1] == (
        "1\tcall offset=0x9 pc=0x00000000800017de <main+22> target=0x0000000080001048 <median+0> # call"
    )
    rows = [json.loads(line) for line in shown(capsys, "decode", capture, "--json")]
    listed = [json.loads(line) for line in shown(capsys, "events", capture, "--json")]
    assert rows == listed
    assert (rows[1]["kind"], rows[1]["addr"], rows[1]["to"]["func"]) == ("call", "0x00000000800017de", "median")
    assert rows[-1] == {
        "number": 13, "hart": 0, "position": 1, "kind": "written", "what": "end", "channel": 2, "value": "0x201",
        "size": 2, "text": "2 bytes written to channel 2: 0x0201", "trace-byte": rows[-1]["trace-byte"],
    }  # fmt: skip


def test_samples_are_reported(capture: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """4 of 5 in median: 80 %, and by the normal distribution +-1.96 * sqrt(0.8 * 0.2 / 5) = 35.1 %."""
    lines = shown(capsys, "report", capture)
    assert lines[0] == "Hart 0: 5 PC samples, no flow: what ran between is not known."
    assert [line.split() for line in lines if "+-" in line] == [
        ["4", "80.0%", "+-35.1", "median"],
        ["1", "20.0%", "+-35.1", "main"],
    ]
    assert [line.split() for line in lines if "->" in line] == [["1", "main", "->", "median"]]
    (report,) = (json.loads(line) for line in shown(capsys, "report", capture, "functions", "--top", "1", "--json"))
    assert report["functions"] == [{"name": "median", "samples": 4}]
    assert (report["samples"], report["more"], report["calls"]) == (5, {"functions": 1}, [])


def test_samples_of_several_captures_add_up(
    capture: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Shares stay, of three times as many samples: +-1.96 * sqrt(0.8 * 0.2 / 15) = 20.2 %."""
    more = ("--merge", capture, capture)
    lines = shown(capsys, "report", capture, *more)
    assert [line.split() for line in lines if "+-" in line] == [
        ["12", "80.0%", "+-20.2", "median"],
        ["3", "20.0%", "+-20.2", "main"],
    ]
    words = ("functions", "--top", "1", "--json", *more)
    (report,) = (json.loads(line) for line in shown(capsys, "report", capture, *words))
    assert (report["samples"], report["more"], report["calls"]) == (15, {"functions": 1}, [])
    flow = tmp_path / "flow.rvt"
    stream = reference_streams.FOLDER / "median.1.nex"
    assert main(["import", str(stream), "--ntrace", "--elf", ELF, "-o", str(flow)]) == 0
    for first, second in ((flow, capture), (capture, flow)):
        assert main(["report", str(first), "--merge", str(second)]) == 1
        assert "some of these captures have PC samples or calls without a flow" in capsys.readouterr().err


def test_flat_profiles(capture: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["export", str(capture), "--to", "folded", "-o", str(tmp_path / "x"), "--quiet"]) == 0
    assert (tmp_path / "x").read_text().splitlines() == ["hart 0;median 4", "hart 0;main 1"]
    assert main(["export", str(capture), "--to", "speedscope", "-o", str(tmp_path / "y"), "--quiet"]) == 0
    found = json.loads((tmp_path / "y").read_text())
    (profile,) = found["profiles"]
    assert (profile["name"], profile["weights"]) == ("hart 0, samples", [4, 1])
    assert [found["shared"]["frames"][stack[0]]["name"] for stack in profile["samples"]] == ["median", "main"]


@pytest.mark.parametrize(
    "words",
    [
        ("functions",), ("calls",), ("coverage",), ("explain",), ("stack",), ("check",), ("values",), ("why", "x"),
        ("calls-of", "main"), ("report", "blocks"), ("report", "--html", "x.html"), ("decode", "1,5"),
        ("export", "--to", "vcd", "-o", "x"),
    ],
)  # fmt: skip
def test_what_needs_a_flow_says_so_in_one_line(
    capture: Path, words: tuple[str, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(capture.parent)
    verb, *rest = words
    assert main([verb, str(capture), *rest, "--quiet"]) == 1
    out, err = capsys.readouterr()
    assert (out, len(err.splitlines())) == ("", 1)
    assert err.startswith(f"rvtrace: {NO_FLOW}")


@pytest.mark.parametrize("words", [("find", "main"), ("gaps",)])
def test_lists_that_would_be_empty_do_not_say_that_nothing_happened(
    capture: Path, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    verb, *rest = words
    assert main([verb, str(capture), *rest]) == 0
    assert NO_FLOW[1:] in capsys.readouterr().out


def test_losses_are_not_hidden(raw: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lost = EVENTS + message("Error", etype=0, ecode=0) + in_circuit(15, 4) + sample(0x1234)
    raw.write_bytes(lost)
    source = ("--ntrace", "--elf", ELF)
    lines = shown(capsys, "report", raw, *source)
    assert "The place of 1 of them is not known: no whole address came before." in lines
    assert "At 2 places trace is lost or does not match the program: `trace gaps` lists them." in lines
    assert len(shown(capsys, "gaps", raw, *source)) == 1  # both are at one place of a history without instructions
    assert len(shown(capsys, "events", raw, *source, "--kind", "overflow")) == 1


def test_the_console_log(capture: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(capsys, "itc", capture) == [
        "channel 0:\tHello!", "channel 0:\tbye", "channel 2:\t0x0201",
    ]  # fmt: skip
    assert shown(capsys, "itc", capture, "--channel", "2") == ["channel 2:\t0x0201"]
    rows = [json.loads(line) for line in shown(capsys, "itc", capture, "--json")]
    assert [(row["channel"], row["kind"], row["text"]) for row in rows] == [
        (0, "text", "Hello!"), (0, "text", "bye"), (2, "value", "0x0201"),
    ]  # fmt: skip


def test_nothing_was_written(raw: Path, capsys: pytest.CaptureFixture[str]) -> None:
    raw.write_bytes(EVENTS)
    assert main(["itc", str(raw), "--ntrace", "--elf", ELF, "--quiet"]) == 1
    assert capsys.readouterr().err == (
        "rvtrace: no program wrote anything into this trace: DataAcquisition messages would have it\n"
    )


def test_escapes_of_the_text_do_not_reach_a_terminal(raw: Path, capsys: pytest.CaptureFixture[str]) -> None:
    raw.write_bytes(written(0, b"\x1b]0;title\x07\n"))
    (line,) = shown(capsys, "itc", raw, "--ntrace", "--elf", ELF, "--color", "always")
    assert line == r"channel 0:" "\t" r"\x1b]0;title\x07"


def followed(
    *words: str, data: bytes, told: Sequence[str] = ("--dialect", "sifive")
) -> "subprocess.CompletedProcess[str]":
    """What a command makes of bytes that arrive on standard input."""
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.seek(0)
        return rvtrace(*words, "--follow", "-", "--ntrace", *told, "--elf", ELF, stdin=file.fileno())


def test_lines_come_as_a_probe_delivers_them() -> None:
    done = followed("itc", data=written(0, b"first\n") + written(0, b"second") + EVENTS)
    assert done.stdout.splitlines() == ["channel 0:\tfirst", "channel 0:\tsecond [not ended]"]
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr


def test_events_come_as_a_probe_delivers_them() -> None:
    listed = followed("decode", "--events", data=EVENTS)
    assert [line.split()[1] for line in listed.stdout.splitlines()].count("pc-sample") == 5
    silent = followed("decode", data=EVENTS)
    assert (silent.stdout, silent.returncode) == ("", 0)
    assert "no flow in this stream, but 8 events of harts: --events lists them" in silent.stderr


def test_the_dialect_is_found_in_frames(raw: Path, capture: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And in a stream, of which only the beginning is there when decoding begins: a few bytes at once."""
    framed = raw.with_suffix(".bin")
    framed.write_bytes(naive.packed(random.Random(2), [(0x21, byte) for byte in raw.read_bytes()]))
    told = ["--ntrace", "--frames", "coresight", "--elf", ELF]
    assert main(["import", str(framed), *told, "-o", str(raw.with_name("framed.rvt")), "--quiet"]) == 0
    places = [re.sub("; trace byte .*", "", line) for line in shown(capsys, "events", capture)]
    in_frames = shown(capsys, "events", raw.with_name("framed.rvt"))
    assert [re.sub("; trace byte .*", "", line) for line in in_frames] == places and len(places) == 13
    assert shown(capsys, "itc", framed, *told) == ["channel 0:\tHello!", "channel 0:\tbye", "channel 2:\t0x0201"]
    for words in (["decode", "--events"], ["itc"]):
        plain = followed(*words, "--quiet", data=raw.read_bytes(), told=())
        piped = followed(*words, "--quiet", data=framed.read_bytes(), told=("--frames", "coresight"))
        assert (plain.returncode, piped.returncode, plain.stderr + piped.stderr) == (0, 0, "")
        told_hart = [line.removeprefix("hart 33").lstrip(", \t") for line in piped.stdout.splitlines()]
        assert [re.sub(" offset=.*? ", " ", line) for line in told_hart] == [
            re.sub(" offset=.*? ", " ", line) for line in plain.stdout.splitlines()
        ]
        assert ("Hello!" if words == ["itc"] else "median") in plain.stdout


def test_the_kinds_are_those_of_the_decoder() -> None:
    assert set(HART_EVENTS) == {kind.value for kind in HartEventKind}
    assert set(HART_EVENTS) < set(KINDS)


def test_gdb_shows_the_same(capture: Path) -> None:
    asked = ["trace history", "trace report", "trace itc", "trace explain", "trace goto 1", "trace history +"]
    said = run_gdb(Path(ELF), [SOURCE, f"trace open {capture}", *asked])
    assert NO_FLOW in said["trace history"]
    assert said["trace history"].count("PC sample; trace byte") == 4
    assert "Hart 0: 5 PC samples, no flow: what ran between is not known." in said["trace report"]
    assert said["trace itc"].splitlines()[-3:] == ["channel 0:\tHello!", "channel 0:\tbye", "channel 2:\t0x0201"]
    assert NO_FLOW in said["trace explain"]
    assert NO_FLOW in said["trace goto 1"]
    assert NO_FLOW in said["trace history +"]


def test_python_has_the_same(capture: Path, capsys: pytest.CaptureFixture[str]) -> None:
    printed = [json.loads(line) for line in shown(capsys, "itc", capture, "--json")]
    with Bench(ELF) as bench:
        bench.open(capture)
        assert bench.itc() == printed and len(printed) == 3
        assert bench.itc(channel=2, hart=0) == [row for row in printed if row["channel"] == 2] != []
        with pytest.raises(RvtraceError, match="hart 1 is not in this trace"):
            bench.itc(hart=1)


def test_the_machine_interface_has_the_same(capture: Path) -> None:
    with GdbMi(Path(ELF), GDB, f"trace open {capture}") as mi:
        (row,) = mi.command("-rvtrace-itc --channel 2")["itc"]
        assert (row["kind"], row["text"]) == ("value", "0x0201")
        (report,) = mi.command("-rvtrace-report")["reports"]
        assert (report["sampled"], report["samples"]) == ("1", "5")
        assert [place["name"] for place in report["functions"]] == ["median", "main"]
