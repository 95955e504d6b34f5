"""`--frames`: raw bytes in CoreSight frames, in every command that reads raw bytes; and SpacemiT's own messages."""

import json
import os
import random
from pathlib import Path

import pytest

from rvtrace_gdb.console.main import main
from rvtrace_gdb.session.capture.file import load
from tests.console.interruption import meanwhile
from tests.decode.coresight import k3, naive, opencsd
from tests.decode.coresight.k3 import FRAMES, MESSAGES
from tests.helpers import reference_streams
from tests.helpers.amounts import crossed
from tests.session.formats.imports.test_framed import funnel, sent

K3 = ("--ntrace", "--btm", "--timestamps", "--src-bits", "12")
ELF = str(reference_streams.FOLDER / "median.elf")
GUIDE = """
0 ProgTraceSync SYNC=5 I-CNT=0 TSTAMP=13685094512 0xffffffff80b63e34
21 Ownership hcontext=0 prv=1 v=0 TSTAMP=0
26 Ownership scontext=1717 prv=1 v=0 TSTAMP=0
33 Idle
34 IndirectBranch B-TYPE=0 I-CNT=22 U-ADDR=0x35c5 TSTAMP=3 0xffffffff80b655be
43 IndirectBranch B-TYPE=0 I-CNT=23 U-ADDR=0x4c7 TSTAMP=0 0xffffffff80b65c30
51 IndirectBranch B-TYPE=0 I-CNT=14 U-ADDR=0x1e78f TSTAMP=0 0xffffffff80b5932e
59 DirectBranch I-CNT=16 TSTAMP=1
64 IndirectBranch B-TYPE=0 I-CNT=39 U-ADDR=0x5e TSTAMP=0 0xffffffff80b59392
72 IndirectBranch B-TYPE=0 I-CNT=15 U-ADDR=0x4a0615 TSTAMP=5 0xffffffff80219fb8
81 IndirectBranch B-TYPE=0 I-CNT=37 U-ADDR=0x64fb12 TSTAMP=0 0xffffffff80e8699c
91 DirectBranch I-CNT=9 TSTAMP=0
96 DirectBranch I-CNT=18 TSTAMP=1
101 DirectBranch I-CNT=70 TSTAMP=0
107 IndirectBranch B-TYPE=0 I-CNT=1 U-ADDR=0x64e4cf TSTAMP=0 0xffffffff8021a002
116 DirectBranch I-CNT=3 TSTAMP=0
"""
"""Byte offset, name, fields and address of each message, as the guide prints them: an address is the start of a block
in its listing. SRC is 5 in each; TSTAMP is 0 where the guide prints none.
"""
_SHOWN = ("SYNC", "hcontext", "scontext", "prv", "v", "B-TYPE", "I-CNT", "U-ADDR", "TSTAMP")


def shown(capsys: pytest.CaptureFixture[str], *words: object) -> list[str]:
    assert main(list(map(str, words))) == 0
    return capsys.readouterr().out.splitlines()


def followed(capsys: pytest.CaptureFixture[str], file: Path, *words: object) -> list[str]:
    """What is listed of the bytes of a file as they come through a pipe."""
    fifo = file.parent / "fifo"
    if not fifo.exists():
        os.mkfifo(fifo)

    def write() -> None:
        fifo.write_bytes(file.read_bytes())

    with meanwhile(write):
        assert main(["decode", "--follow", str(fifo), *map(str, words)]) == 0
    return capsys.readouterr().out.splitlines()


def refused(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    assert main(list(map(str, words))) == 1
    out, err = capsys.readouterr()
    assert out == ""
    [line] = err.splitlines()
    return line


@pytest.fixture
def k3_frames(tmp_path: Path) -> Path:
    (tmp_path / "k3.bin").write_bytes(bytes.fromhex(FRAMES))
    return tmp_path / "k3.bin"


@pytest.fixture
def framed(tmp_path: Path) -> Path:
    """Two harts; the funnel switches between them at any byte."""
    (tmp_path / "framed.bin").write_bytes(funnel({0x31: sent(5, 2), 0x11: sent(2, 1)}))
    return tmp_path / "framed.bin"


def facts(lines: list[str]) -> list[str]:
    """Offset, name, fields and address of the messages in lines of JSON."""
    rows = [json.loads(line) for line in lines]
    assert {row["fields"]["SRC"] for row in rows if row["name"] != "Idle"} == {k3.SRC}
    return [
        " ".join([
            str(row["trace-byte"]), row["name"],
            *(f"{name}={row['fields'][name]}" for name in _SHOWN if name in row["fields"]),
            *([row["fields"]["addr"]] if "addr" in row["fields"] else []),
        ])
        for row in rows
    ]  # fmt: skip


def test_the_guides_messages_in_frames_and_not(
    k3_frames: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain = tmp_path / "plain.bin"
    plain.write_bytes(bytes.fromhex("".join(MESSAGES)))
    assert facts(shown(capsys, "dump", plain, *K3, "--json")) == GUIDE.split("\n")[1:-1]
    framed = shown(capsys, "dump", k3_frames, *K3, "--frames", "coresight", "--json")
    assert facts(framed) == GUIDE.split("\n")[1:-1]
    places = [byte.offset for byte in naive.data_of(bytes.fromhex(FRAMES)) if byte.atb_id == k3.ATB_ID]
    assert [json.loads(line)["frame-byte"] for line in framed] == [
        places[json.loads(line)["trace-byte"]] for line in framed
    ]
    assert {json.loads(line)["sink"] for line in framed} == {f"{k3_frames}, ATB ID 0x10"}
    first, *_ = shown(capsys, "dump", k3_frames, *K3, "--frames", "coresight")
    assert first.startswith("1\t0x00000000 0x10@0x00000001 ProgTraceSync ")
    assert {json.loads(line)["atb-id"] for line in framed} == {k3.ATB_ID}


def test_opencsd_finds_the_guides_messages(tmp_path: Path) -> None:
    assert opencsd.unpacked(tmp_path, bytes.fromhex(FRAMES))[k3.ATB_ID].hex() == "".join(MESSAGES)


def test_every_way_to_read_frames_gives_the_same(
    framed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = ("--ntrace", "--src-bits", "3", "--elf", ELF, "--frames", "coresight")
    file, saved = tmp_path / "x.rvt", tmp_path / "followed.rvt"
    [told] = shown(capsys, "import", framed, *made, "-o", file, "--json")
    [sink] = json.loads(told)["sinks"]
    assert (sink["frames"], sink["atb-ids"]) == ("coresight", {"encoder2": 0x11, "encoder5": 0x31})
    line = next(line for line in shown(capsys, "status", file) if line.startswith("sink:"))
    assert line.endswith(" bytes, CoreSight frames (ATB IDs: encoder2 0x11, encoder5 0x31)")
    for hart in (2, 5):
        listing = shown(capsys, "decode", framed, *made, "--hart", hart)
        assert len(listing) == reference_streams.golden("median")[0]
        assert shown(capsys, "decode", file, "--hart", hart) == listing
        assert followed(capsys, framed, *made, "--hart", hart, "-o", saved) == listing
    assert [sink.data for sink in load(saved).sinks] == [framed.read_bytes()]
    assert [(it.hart, load(saved).sinks[0].atb_ids[it.in_force.name]) for it in load(saved).encoders] == [
        (2, 0x11), (5, 0x31),
    ]  # fmt: skip
    messages = shown(capsys, "dump", framed, *made[:3], *made[5:], "--atb-id", "0x31")
    assert [line for line in shown(capsys, "dump", file) if " 0x31@" in line] == messages


def test_what_a_stream_lost_is_said(framed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A buffer that wrapped: its first frame without its ID, 15 bytes of layout and data of an unknown source."""
    made = ("--ntrace", "--src-bits", "3", "--elf", ELF, "--frames", "coresight")
    wrapped, frames = tmp_path / "wrapped.bin", framed.read_bytes()
    wrapped.write_bytes(bytes(range(0, 30, 2)) + b"\0" + frames)
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    for file, end in ((wrapped, "15 bytes lost"), (framed, "nothing lost")):

        def write(data: bytes = file.read_bytes()) -> None:
            fifo.write_bytes(data)

        with meanwhile(write):
            assert main(["decode", "--follow", str(fifo), *map(str, made)]) == 0
        said = capsys.readouterr().err
        assert f" instructions, {end}\n" in said and (file is framed or "15 bytes of an unknown ATB ID" in said)


def test_frames_without_an_id(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The middle of what one source sent alone, whose ID came before."""
    (tmp_path / "middle.bin").write_bytes((bytes(range(0, 30, 2)) + b"\x55") * 8)
    wrong = refused(capsys, "decode", tmp_path / "middle.bin", "--ntrace", "--elf", ELF, "--frames", "coresight")
    assert "middle.bin: no frame says which trace source sent its 128 bytes (no ATB ID): is it all of" in wrong


def test_whose_an_id_is(framed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = ("--ntrace", "--src-bits", "3", "--elf", ELF, "--frames", "coresight", "--atb-id", "0x31=7")
    assert len(shown(capsys, "decode", framed, *made, "--hart", 7)) == reference_streams.golden("median")[0]
    assert len(followed(capsys, framed, *made, "--hart", 7)) == reference_streams.golden("median")[0]


def test_saved_settings(framed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The bytes of a probe, with the registers that were saved: harts by SRC, whatever their IDs are."""
    plain, settings = tmp_path / "plain.bin", tmp_path / "settings.rvt"
    plain.write_bytes(sent(5, 2) + sent(2, 1))
    shown(capsys, "import", plain, "--ntrace", "--src-bits", "3", "--elf", ELF, "-o", settings)
    made = ("--settings", settings, "--frames", "coresight", "--hart", 5)
    assert len(shown(capsys, "decode", framed, *made)) == reference_streams.golden("median")[0]
    assert len(followed(capsys, framed, *made)) == reference_streams.golden("median")[0]


def test_what_cannot_be(framed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = ("dump", framed, "--ntrace")
    assert refused(capsys, *made, "--atb-id", "3").endswith("ATB IDs in frames alone: add --frames coresight, or tpiu")
    for text, why in (
        ("0x70", "a trace source has an ID of 0x1 to 0x6f"), ("0", "a trace source has an ID of 0x1 to 0x6f"),
        ("one", "give an ID, or ID=HART, as numbers"), ("1=", "give an ID, or ID=HART, as numbers"),
        ("1=-1", "there is no such hart"),
    ):  # fmt: skip
        assert refused(capsys, *made, "--frames", "coresight", "--atb-id", text) == f"rvtrace: --atb-id {text}: {why}"
    wrong = refused(capsys, *made, "--frames", "coresight", "--atb-id", "0x12")
    assert wrong.endswith(f"nothing of the ATB IDs given in {framed.stat().st_size} bytes: are these CoreSight frames?")
    assert "for raw bytes" in refused(capsys, "dump", framed, "--frames", "coresight")
    noise = tmp_path / "noise.bin"
    noise.write_bytes(bytes(64))
    bad = ("import", noise, "--ntrace", "--elf", ELF, "-o", tmp_path / "no.rvt", "--frames")
    for form in ("coresight", "tpiu"):
        assert refused(capsys, *bad, form) == (
            f"rvtrace: {noise}: no trace source has sent any of its 64 bytes: are these CoreSight frames of this form?"
        )
    noise.write_bytes(random.Random(1).randbytes(4000))
    wrong = refused(capsys, *bad, "coresight")
    assert wrong.startswith(f"rvtrace: {noise}: of the ATB ID with most of its bytes: cannot be read as N-Trace: of ")


def executed(folder: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """The addresses of a part of a run, for `rvtrace encode`."""
    run = folder / "pcs.txt"
    main(["decode", str(reference_streams.FOLDER / "median.1.nex"), "--ntrace", "--elf", ELF, "1,+3000", "--json"])
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    run.write_text("".join(f"{row['addr']}\n" for row in rows if "addr" in row))
    return run


@pytest.mark.parametrize(
    ("form", "words"), crossed(["coresight", "tpiu"], [("--ntrace", "--src-bits", "3"), ("--etrace",)])
)
def test_encoded_frames_are_what_opencsd_takes_apart(
    form: str, words: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The bytes in the frames are those that are encoded without; a capture of them decodes to the same."""
    run = executed(tmp_path, capsys)
    made = ("encode", "--elf", ELF, "--pcs", run, *words)
    plain, framed, capture = (tmp_path / name for name in ("plain.bin", "framed.bin", "x.rvt"))
    shown(capsys, *made, "-o", plain)
    shown(capsys, *made, "-o", framed, "--frames", form, "--atb-id", "0x42")
    shown(capsys, *made, "-o", capture, "--frames", form, "--atb-id", "0x42")
    options = () if form == "coresight" else ("-tpiu",)
    assert opencsd.unpacked(tmp_path / "judge", framed.read_bytes(), *options)[0x42] == plain.read_bytes()
    assert load(capture).sinks[0].data == framed.read_bytes()
    listing = shown(capsys, "decode", capture)
    assert len(listing) == 3000
    assert shown(capsys, "decode", framed, *words, "--frames", form, "--elf", ELF) == listing


def test_ids_that_cannot_be_encoded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = ("encode", "--elf", ELF, "--pcs", tmp_path / "pcs.txt", "-o", tmp_path / "x.bin")
    assert refused(capsys, *made, "--atb-id", "3").endswith("the trace has an ATB ID in frames alone: add --frames")
    with pytest.raises(SystemExit):
        main([*map(str, made), "--frames", "tpiu", "--atb-id", "0x70"])
    assert "argument --atb-id: " in capsys.readouterr().err


def test_options_that_fit_better(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They are looked for in the bytes of an ATB ID."""
    file = tmp_path / "btm.bin"
    file.write_bytes(funnel({0x31: sent(5, 0), 0x11: sent(2, 0)}))
    made = ("--ntrace", "--src-bits", "3", "--elf", ELF, "--frames", "coresight")
    main(["import", str(file), *made, "-o", str(tmp_path / "x.rvt")])
    assert "the trace fits far better with --btm" in capsys.readouterr().out


def hint_of(form: str, part: str) -> str:
    return f"hint:     the bytes look like frames of {part} CoreSight: --frames {form}"


@pytest.mark.parametrize(("form", "options"), crossed(["coresight", "tpiu"], [("--ntrace",), ("--etrace",)]))
def test_bytes_in_frames_that_were_not_said_to_be(
    form: str, options: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What `encode` frames; a trace that is in none has no such hint, and what is said to be in frames neither."""
    run, plain, framed = executed(tmp_path, capsys), tmp_path / "plain.bin", tmp_path / "framed.bin"
    in_frames = ("--frames", form)
    shown(capsys, "encode", "--elf", ELF, "--pcs", run, *options, "-o", plain)
    shown(capsys, "encode", "--elf", ELF, "--pcs", run, *options, *in_frames, "--atb-id", "0x10", "-o", framed)
    expected = hint_of(form, {"coresight": "a buffer of", "tpiu": "the pins of"}[form])
    for words in (["dump"], ["decode", "--elf", ELF], ["import", "--elf", ELF, "-o", str(tmp_path / "x.rvt")]):
        for file, more, hinted in ((plain, [], 0), (framed, [], 1), (framed, [*in_frames], 0)):
            main([*words, str(file), *options, *more])
            said = "".join(capsys.readouterr()).splitlines()
            assert said.count(expected) == hinted, (words, file.name, more)


def test_the_guides_frames_are_told(k3_frames: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dump", str(k3_frames), *K3]) == 0
    assert hint_of("coresight", "a buffer of") in capsys.readouterr().err
