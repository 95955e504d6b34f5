"""`rvtrace decode --follow`: files that grow, pipes, sockets and serial lines, and what can be wrong with them."""

import contextlib
import errno
import io
import json
import os
import pty
import random
import signal
import socket
import termios
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

import pytest

from rvtrace_gdb.console.commands.decode import follow
from rvtrace_gdb.console.main import main, parser
from rvtrace_gdb.console.options import raw as raw_options
from rvtrace_gdb.console.options.request import EncoderBytes
from rvtrace_gdb.decode.etrace.decoder import StreamDecoder
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.session.capture import file as capture_file
from rvtrace_gdb.session.capture.etrace_settings import EtraceTraceOptions
from rvtrace_gdb.session.capture.file import load
from rvtrace_gdb.session.formats import registry
from rvtrace_gdb.session.formats.imports.raw_import import with_settings
from rvtrace_gdb.session.formats.stream import Spool, StreamFollower, StreamSource
from tests.console.interruption import meanwhile, stdin
from tests.decode.etrace.vectors import ROOT
from tests.helpers import reference_streams
from tests.helpers.amounts import thorough
from tests.helpers.wait import PATIENCE, until

ELF = str(reference_streams.FOLDER / "median.elf")
STREAM = (reference_streams.FOLDER / "median.1.nex").read_bytes()
MADE = ["--ntrace", "--elf", ELF]


@contextlib.contextmanager
def overheard() -> Iterator[io.StringIO]:
    """Standard error, which another thread may read meanwhile: of that, capfd would lose what is just written."""
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        yield said


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def pieces(data: bytes, seed: int) -> Iterator[bytes]:
    rng, at = random.Random(seed), 0
    while at < len(data):
        size = rng.randint(1, 400)
        yield data[at : at + size]
        at += size


def decoded(capfd: pytest.CaptureFixture[str], file: Path, *words: str) -> str:
    assert main(["decode", str(file), *words]) == 0
    return capfd.readouterr().out


def refused(capfd: pytest.CaptureFixture[str], *words: str) -> str:
    capfd.readouterr()
    assert main(["decode", "--follow", *words]) == 1
    out, err = capfd.readouterr()
    assert out == ""
    return err.splitlines()[-1]


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    """With damage in the middle."""
    file = tmp_path / "raw.bin"
    file.write_bytes(STREAM[:700] + b"\x02\xfe\x03" + STREAM[740:])
    return file


@pytest.fixture
def fifo(tmp_path: Path) -> Path:
    os.mkfifo(tmp_path / "fifo")
    return tmp_path / "fifo"


def written(fifo: Path, data: bytes, seed: int = 0) -> Callable[[], None]:
    def write() -> None:
        with contextlib.suppress(BrokenPipeError), open(fifo, "wb", buffering=0) as file:
            for piece in pieces(data, seed):
                file.write(piece)

    return write


@pytest.mark.parametrize(
    "words", [[], ["--events"], ["/rf"], ["--json"], ["--json", "--events"], ["--stop-at-error"], ["--hart", "0"]]
)
def test_a_pipe_gives_what_decode_gives_of_the_whole(
    words: list[str], raw: Path, fifo: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    expected = decoded(capfd, raw, *MADE, *words)
    with meanwhile(written(fifo, raw.read_bytes(), len(words))):
        assert main(["decode", "--follow", str(fifo), *MADE, *words]) == 0
    out, err = capfd.readouterr()
    if "--json" in words:
        *rows, last = out.splitlines(keepends=True)
        assert json.loads(last)["why"] == "the end of the stream"
        out = "".join(rows)
    assert out == expected
    assert err.splitlines()[0] == f"following {fifo} (named pipe); up to its end or Ctrl-C"
    if "--stop-at-error" in words:
        assert err.splitlines()[-1].startswith("the first loss (--stop-at-error): ")
    else:
        assert err.splitlines()[-1].startswith(f"the end of the stream: {len(raw.read_bytes())} bytes: ")


def test_what_arrives_becomes_a_capture_of_all_harts(
    fifo: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    streams = [reference_streams.from_source(STREAM, 2, src, (1000 + src, 10)) for src in (1, 3)]
    data, file = reference_streams.in_turn(*streams), tmp_path / "x.rvt"
    made = [*MADE, "--src-bits", "2", "--timestamps"]
    with meanwhile(written(fifo, data)):
        assert main(["decode", "--follow", str(fifo), *made, "-o", str(file)]) == 0
    out = capfd.readouterr().out.splitlines()
    (tmp_path / "raw.bin").write_bytes(data)
    for hart in (1, 3):
        alone = decoded(capfd, tmp_path / "raw.bin", *made, "--hart", str(hart)).splitlines()
        assert [line.removeprefix(f"hart {hart}\t") for line in out if line.startswith(f"hart {hart}\t")] == alone
    assert load(file).sinks[0].data == data
    assert sorted(encoder.hart for encoder in load(file).encoders) == [1, 3]
    assert sorted(decoded(capfd, file).splitlines()) == sorted(out)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["fifo", "raw.bin", "x.rvt"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_file_that_grows_appears_is_cut_short_and_replaced(
    number: signal.Signals, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Up to Ctrl-C or kill: what has come is on the output, and in the capture."""
    file, kept = tmp_path / "grows.bin", tmp_path / "x.rvt"
    part = tmp_path / "x.rvt.part"

    def write() -> None:
        until(part.exists)
        file.write_bytes(STREAM[:500])
        until(lambda: part.stat().st_size == 500)
        with file.open("ab") as grows:
            grows.write(STREAM[500:900])
        until(lambda: part.stat().st_size == 900)
        (tmp_path / "next").write_bytes(STREAM[900:1500])
        (tmp_path / "next").rename(file)
        until(lambda: part.stat().st_size == 1500)
        file.write_bytes(STREAM[1500:])
        until(lambda: part.stat().st_size == len(STREAM))
        os.kill(os.getpid(), number)

    with meanwhile(write):
        assert main(["decode", "--follow", str(file), *MADE, "-o", str(kept)]) == 0
    out, err = capfd.readouterr()
    count, _ = reference_streams.golden("median")
    assert len(out.splitlines()) == count
    assert load(kept).sinks[0].data == STREAM
    why = "Ctrl-C" if number == signal.SIGINT else "SIGTERM"
    assert err.splitlines() == [
        f"following {file} (file); Ctrl-C ends",
        f"{file}: is not there yet: waiting for it",
        f"{file}: was replaced by another file: continuing with that",
        f"{file}: was truncated: continuing at its beginning",
        f"Saved {len(STREAM)} bytes of trace to {kept}.",
        f"{why}: {len(STREAM)} bytes: {count} instructions, nothing lost",
    ]


@pytest.mark.parametrize("kind", ["tcp", "host", "unix", "path"])
def test_a_socket(kind: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "socket"
    listener = socket.socket(socket.AF_INET if kind in ("tcp", "host") else socket.AF_UNIX)
    listener.bind(("127.0.0.1", 0) if kind in ("tcp", "host") else str(path))
    listener.listen()
    port = listener.getsockname()[1] if kind in ("tcp", "host") else 0
    name = {"tcp": f"tcp:127.0.0.1:{port}", "host": f"127.0.0.1:{port}", "unix": f"unix:{path}", "path": str(path)}

    def serve() -> None:
        with listener:
            reader, _ = listener.accept()
        with reader:
            for piece in pieces(STREAM, 3):
                reader.sendall(piece)

    with meanwhile(serve):
        assert main(["decode", "--follow", name[kind], *MADE, "--events", "--quiet"]) == 0
    out, err = capfd.readouterr()
    assert (out.splitlines()[-1].split("\t")[1].split()[0], err) == ("trace-off", "")


def test_a_serial_line_delivers_bytes_as_they_are_until_it_is_unplugged(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """With every byte that a terminal would take for something else. Its settings were another's, and are so again."""
    ours, theirs = pty.openpty()
    name, file = os.ttyname(theirs), tmp_path / "x.rvt"
    data = STREAM + bytes(range(256)) * 3

    def deliver() -> None:
        until((tmp_path / "x.rvt.part").exists)
        os.write(ours, b"")
        for piece in pieces(data, 5):
            os.write(ours, piece)
        until(lambda: (tmp_path / "x.rvt.part").stat().st_size == len(data))
        os.close(ours)

    with meanwhile(deliver):
        words = ["decode", "--follow", name, "--baud", "921600", *MADE, "-o", str(file), "--events"]
        assert main(words) == 1
    err = capfd.readouterr().err.splitlines()
    os.close(theirs)
    assert err[0] == f"following {name} (serial line, 921600 baud); up to its end or Ctrl-C"
    assert err[-1] == f"rvtrace: {name}: the device is gone (unplugged?)"
    assert load(file).sinks[0].data == data


def test_a_serial_port_without_a_chip(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    """As Linux has it for the ports a PC could have: it opens, and then every request fails."""
    ours, theirs = pty.openpty()

    def fails(fd: int) -> list[int]:
        raise termios.error(errno.EIO, "Input/output error")

    monkeypatch.setattr(termios, "tcgetattr", fails)
    name = os.ttyname(theirs)
    assert refused(capfd, name, *MADE) == f"rvtrace: {name}: no device is connected to it"
    os.close(ours)
    os.close(theirs)


@thorough("test_a_wrong_program_is_named_after_other_warnings_too")
def test_a_wrong_program_is_named_while_it_is_followed(fifo: Path) -> None:
    """And other options are, that fit better."""
    other = str(reference_streams.FOLDER / "dhrystone.elf")
    with overheard() as said:

        def write() -> None:
            with open(fifo, "wb", buffering=0) as file:
                file.write(STREAM[:300])
                until(lambda: "is this the program" in said.getvalue())

        with meanwhile(write):
            assert main(["decode", "--follow", str(fifo), "--ntrace", "--elf", other]) == 0
    assert "warning: trace does not match dhrystone.elf at 0x" in said.getvalue()


def test_options_that_fit_better_are_named(raw: Path) -> None:
    raw.write_bytes(STREAM[:300])
    with overheard() as said:

        def interrupts() -> None:
            until(lambda: "following" in said.getvalue())
            interrupt()

        with meanwhile(interrupts):
            assert main(["decode", "--follow", str(raw), *MADE, "--src-bits", "2"]) == 0
    err = said.getvalue()
    assert "without a synchronizing message at which decoding can start" in err
    assert "hint:     the trace fits far better without --src-bits" in err


# With the settings of a saved session


@pytest.fixture
def settings(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Path:
    """As `trace save` keeps them where no sink is a buffer."""
    (tmp_path / "some.bin").write_bytes(b"".join(reference_streams.from_source(STREAM, 2, 3)))
    file = tmp_path / "settings.rvt"
    words = ["--elf", ELF, "--src-bits", "2", "--implicit-return", "full", "-o", str(file)]
    assert main(["import", str(tmp_path / "some.bin"), *words]) == 0
    capture = load(file)
    capture_file.save(capture.__class__(**{**vars(capture), "sinks": ()}), file)
    capfd.readouterr()
    return file


def test_the_settings_of_a_session_read_what_a_probe_recorded(
    settings: Path, tmp_path: Path, fifo: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    record, file = tmp_path / "some.bin", tmp_path / "x.rvt"
    said = decoded(capfd, record, *MADE, "--src-bits", "2", "--implicit-return", "full")
    assert decoded(capfd, record, "--settings", str(settings)) == said
    with meanwhile(written(fifo, record.read_bytes())):
        assert main(["decode", "--follow", str(fifo), "--settings", str(settings), "-o", str(file)]) == 0
    assert capfd.readouterr().out == said
    assert decoded(capfd, file) == said
    assert main(["dump", str(record), "--settings", str(settings), "1,3"]) == 0
    assert "SRC=3" in capfd.readouterr().out
    imported = tmp_path / "imported.rvt"
    assert main(["import", str(record), "--settings", str(settings), "-o", str(imported)]) == 0
    assert "history:  15011 instructions, 0 gaps" in capfd.readouterr().out
    assert [encoder.hart for encoder in load(imported).encoders] == [3]


def test_messages_are_read_for_the_harts_the_settings_know(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Of an RV32 hart whose encoder leaves high bits out that are all alike, an address has 32 of them."""
    record, file = tmp_path / "some.bin", tmp_path / "settings.rvt"
    first = STREAM[:7] + bytes([STREAM[7] | 0x80])  # ProgTraceSync; the highest bit of F-ADDR as sent is 1
    record.write_bytes(first)
    assert main(["import", str(record), "--elf", ELF, "--extend-addr-msb", "-o", str(file)]) == 0
    capture = load(file)
    capture_file.save(capture.__class__(**{**vars(capture), "xlen": 32}), file)
    capfd.readouterr()
    assert main(["dump", str(record), "--settings", str(file), "1"]) == 0
    of_bytes = capfd.readouterr().out
    assert main(["dump", str(file), "1"]) == 0
    assert capfd.readouterr().out == of_bytes
    assert "addr=0x80000000 " in of_bytes


def test_a_wrong_program_is_named_after_other_warnings_too(settings: Path, fifo: Path) -> None:
    """Of the encoder that is known; another one speaks before."""
    other = (reference_streams.FOLDER / "dhrystone.1.nex").read_bytes()
    with overheard() as said:

        def write() -> None:
            with open(fifo, "wb", buffering=0) as file:
                file.write(b"".join(reference_streams.from_source(STREAM, 2, 1)[:20]))
                until(lambda: "SRC 1 is also in the stream" in said.getvalue())
                file.write(b"".join(reference_streams.from_source(other, 2, 3)[:100]))

        with meanwhile(write):
            assert main(["decode", "--follow", str(fifo), "--settings", str(settings)]) == 0
    assert "warning: trace does not match median.elf at 0x" in said.getvalue()


def test_encoders_that_feed_a_buffer_did_not_send_what_left_the_chip(settings: Path) -> None:
    known = load(settings)
    names = tuple(encoder.in_force.name for encoder in known.encoders)
    buffered = with_settings(known, "ram", b"x")
    second = known.encoders[0].__class__(7, known.encoders[0].in_force.__class__(**{
        **vars(known.encoders[0].in_force), "name": "other"}))  # fmt: skip
    both = known.__class__(**{**vars(buffered), "encoders": (*known.encoders, second)})
    assert buffered.sinks[0].encoders == names
    assert [encoder.hart for encoder in with_settings(both, "raw", b"").encoders] == [7]


# What is wrong is one line


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("{raw}", "--follow: how were the bytes encoded? Give --ntrace, --etrace or --tandem, or --settings FILE.rvt"),
        ("{raw} {made} 1,5", "1,5: --follow lists everything, without a range"),
        ("/dev/ttyNONE0 {made}", "/dev/ttyNONE0: no such device: is it plugged in?"),
        ("{folder}/no/x.bin {made}", "{folder}/no/x.bin: no such file, and no folder where it could appear"),
        ("{folder} {made}", "{folder}: is a folder"),
        ("unix:{folder}/none {made}", "unix:{folder}/none: cannot connect: no such socket"),
        ("tcp:127.0.0.1:1 {made}", "tcp:127.0.0.1:1: cannot connect: nothing listens there (connection refused)"),
        ("tcp:127.0.0.1 {made}", "tcp:127.0.0.1: give tcp:HOST:PORT"),
        ("{raw} {made} --baud 9600", "{raw}: is not a serial line: it has no speed to set (--baud 9600)"),
        ("{elf} {made}", "{elf}: is an ELF file, not a trace"),
        ("{capture} {made} -o {folder}/y.rvt", "{capture}: is a capture (a ZIP file), not raw bytes: it is read without"
         " --ntrace, --etrace, --tandem, --settings, and needs no `rvtrace import`"),
        ("{raw} {made} -o {folder}/no/x.rvt", "{folder}/no/x.rvt: cannot be written: No such file or directory"),
        ("{raw} {made} -o -", "-: give the name of a file for the capture"),
        ("{raw} --settings {raw}", "{raw}: is not a capture file (.rvt, written by `trace save`; `rvtrace import` makes"
         " one of raw trace bytes)"),
        ("{raw} --settings {capture} --src-bits 2", "--src-bits: the settings of {capture} include this, leave it out"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_one_line(
    words: str, line: str, raw: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    capture = tmp_path / "x.rvt"
    assert main(["import", str(raw), "--elf", ELF, "-o", str(capture)]) == 0
    places = {"raw": raw, "folder": tmp_path, "made": " ".join(MADE), "elf": ELF, "capture": capture}
    assert refused(capfd, *words.format(**places).split()) == f"rvtrace: {line.format(**places)}"
    assert not list(tmp_path.glob("*.part"))
    assert not (tmp_path / "y.rvt").exists()


def test_a_hart_that_is_not_there(fifo: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with meanwhile(written(fifo, STREAM[:300])):
        assert main(["decode", "--follow", str(fifo), *MADE, "--hart", "5", "--quiet"]) == 0
    assert capfd.readouterr() == ("", "warning: hart 5 is not in this stream, which has hart 0\n")


def test_options_of_follow_alone(raw: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for words, name in ((["-o", "x.rvt"], "-o"), (["--baud", "9600"], "--baud")):
        assert main(["decode", str(raw), *MADE, *words]) == 1
        assert capfd.readouterr().err == f"rvtrace: {name} is for bytes that arrive: add --follow\n"


def test_a_capture_that_cannot_be_written_leaves_the_bytes(
    raw: Path, fifo: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "x.rvt"

    def write() -> None:
        written(fifo, STREAM)()

    def spoil() -> None:
        until((tmp_path / "x.rvt.part").exists)
        file.mkdir()
        write()

    with meanwhile(spoil):
        assert main(["decode", "--follow", str(fifo), *MADE, "--quiet", "-o", str(file)]) == 1
    assert f"; the {len(STREAM)} bytes are in {file}.part\n" in capfd.readouterr().err
    assert (tmp_path / "x.rvt.part").read_bytes() == STREAM
    file.rmdir()
    assert "exists, with the bytes of a run that was killed" in refused(capfd, str(fifo), *MADE, "-o", str(file))


@thorough("test_a_pipe_gives_what_decode_gives_of_the_whole")
def test_e_trace_with_its_encapsulation(fifo: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    record = tmp_path / "raw.bin"
    made = (ROOT / "br_j_asm" / "o01_delta_resync16.te_inst_raw").read_bytes()
    record.write_bytes(made[:900] + b"\xff\x01" + made[950:])
    words = ["--etrace", "--encapsulation", "smi", "--ecause-width", "5", "--context-width", "32", "--ecall-retires"]
    words += ["--elf", str(ROOT / "br_j_asm" / "br_j_asm.riscv"), "--hart", "0"]
    expected = decoded(capfd, record, *words)
    with meanwhile(written(fifo, record.read_bytes())):
        assert main(["decode", "--follow", str(fifo), *words]) == 0
    assert capfd.readouterr().out == expected


def test_accesses_are_not_collected_while_it_is_followed() -> None:
    """The history is the one with them, but they take no memory: nobody can ask for them."""
    record = ROOT / "data" / "basic" / "qsort.te_data_raw"
    words = ["dump", str(record), "--etrace", "--encapsulation", "smi", "--data-reference", "--lrid-width", "0"]
    request = raw_options.raw_bytes(
        parser().parse_args([*words, "--parameters", str(ROOT / "data" / "basic" / "hw.scf")])
    )
    assert isinstance(request, EncoderBytes)
    trace_options = request.trace_options(64)
    assert isinstance(trace_options, EtraceTraceOptions)
    image, data = Image.from_elf(ROOT / "qsort" / "qsort.riscv"), record.read_bytes()[:20_000]
    whole = registry.decode(data, image, trace_options).histories[0]
    followed = StreamFollower(StreamSource(trace_options, None, alone=False), image)
    pcs: list[int] = []
    for arrived in [*followed.feed(data[:9001]), *followed.feed(data[9001:]), *followed.finish()]:
        pcs += arrived.piece.history.pcs(arrived.piece.begin, arrived.piece.end)
    assert pcs == list(whole.pcs())
    assert len(whole.accesses) > 1000
    decoder = followed._decoder
    assert isinstance(decoder, StreamDecoder)
    assert len(decoder._harts[0]._data.accesses) < 10


def held_up(file: BinaryIO | None) -> Spool:
    spool = Spool(file)
    spool.held_up = True
    return spool


def test_who_has_to_wait_is_told(
    fifo: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Bytes of a file wait there without harm; those of a probe may not."""
    spool = Spool(limit=1)
    spool.put(b"x")
    assert not spool.held_up
    with meanwhile(lambda: spool.put(b"y")):
        until(lambda: spool.held_up)
        assert (spool.get(0), spool.get(PATIENCE)) == (b"x", b"y")
    monkeypatch.setattr(follow, "Spool", held_up)
    with meanwhile(written(fifo, STREAM)):
        assert main(["decode", "--follow", str(fifo), *MADE, "--quiet"]) == 0
    [line] = capfd.readouterr().err.splitlines()
    assert line.startswith("warning: 64.0 MiB wait to be decoded, and the sender also has to wait")
    with open(reference_streams.FOLDER / "median.1.nex", "rb") as file, stdin(file.fileno()):
        assert main(["decode", "--follow", "-", *MADE, "--quiet"]) == 0
    assert capfd.readouterr().err == ""
