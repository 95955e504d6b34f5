"""Captures of a session: the same rows elsewhere, with code the ELF lacks, and with the wrong ELF."""

import os
import shutil
import struct
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rvtrace_gdb.controlregs.trace_control.encoder_registers import ENCODER_CONTROL, TeFormat
from rvtrace_gdb.decode.history.events import EventKind
from rvtrace_gdb.decode.history.history import GAP
from rvtrace_gdb.session.capture.file import load, save
from rvtrace_gdb.session.capture.model import Capture
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.errors import NoElf, Unsupported
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.transport.simulated.bus import BusError
from tests.helpers.amounts import some_of
from tests.helpers.gdb_transcripts import FOLDER
from tests.session.board import DEMO, Board, board
from tests.session.captures import captures

NOBODY: dict[str, str] = {}
MAIN, LEAF = 0x800000B0, 0x8000004C


@pytest.fixture
def demo(tmp_path: Path, busy_elf: Path) -> Board:
    return board(tmp_path, busy_elf)


def elsewhere() -> Session:
    """A session on a machine that has no target."""

    def connect(host: str, port: int) -> None:
        raise AssertionError("a capture needs no target")

    return Session(connect, NOBODY)  # type: ignore[arg-type]


def saved(demo: Board, ran: int = 3000, context: Context | None = None) -> Path:
    """A capture of *ran* instructions from the start on."""
    session, file = Session(demo.connect, NOBODY), demo.folder / "x.rvt"
    context = context or demo.describe()
    session.start(context)
    demo.run(ran)
    session.save(file, context)
    session.close()
    return file


def text(lines: list[str]) -> str:
    return "\n".join(lines)


def test_a_program_that_is_gone_is_asked_for(tmp_path: Path) -> None:
    elf = tmp_path / "gone.elf"
    shutil.copy(DEMO, elf)
    file = saved(board(tmp_path, elf))
    os.remove(elf)
    hint = r"in gdb: `file app\.elf`, in the shell: --elf app\.elf"
    with pytest.raises(NoElf, match=rf"gone\.elf, which was not found: give the ELF \({hint}\)$"):
        elsewhere().open(file, None)


def patched(elf: Path, folder: Path, address: int, code: bytes) -> Path:
    """A copy of *elf* with other code at *address* (both of the test's programs are loaded at 0x80000000)."""
    data = bytearray(elf.read_bytes())
    at = first_segment(data) + address - 0x8000_0000
    data[at : at + len(code)] = code
    other = folder / "patched.elf"
    other.write_bytes(data)
    return other


def first_segment(data: bytearray) -> int:
    """File offset of the first PT_LOAD of an ELF64."""
    (phoff,) = struct.unpack_from("<Q", data, 32)
    entry, count = struct.unpack_from("<HH", data, 54)
    for at in range(phoff, phoff + entry * count, entry):
        if struct.unpack_from("<I", data, at)[0] == 1:
            return int(struct.unpack_from("<Q", data, at + 8)[0])
    raise AssertionError("no segment")


def test_another_program_is_named_and_used_nevertheless(tmp_path: Path) -> None:
    """Same build-id is same code; so a program that was patched by hand, id and all, is told by the trace only."""
    file = saved(board(tmp_path), 400)
    ret = patched(DEMO, tmp_path, LEAF + 8, b"\x82\x80")  # leaf returns where it had a branch
    session = elsewhere()
    session.open(file, str(ret))
    listing = session.history("", 10, Context(str(ret)))
    assert listing.end > 1
    [line] = listing.lines
    assert line.startswith("warning: trace does not match patched.elf at 0x80000054: ")
    assert line.endswith("is this the program that ran?")
    assert session.history("-", 10, Context(str(ret))).lines == [], "said once"
    assert line in session.status(Context(str(ret)))
    history, _ = session.decoded()
    assert any(event.kind is EventKind.MISMATCH for event in history.events)
    assert GAP in list(history.pcs())


def test_a_program_with_another_build_id_is_named_at_once(tmp_path: Path) -> None:
    file = saved(board(tmp_path), 400)
    data = DEMO.read_bytes()
    build_id = load(file).elf.build_id  # type: ignore[union-attr]
    assert build_id is not None
    other = tmp_path / "other.elf"
    other.write_bytes(data.replace(bytes.fromhex(build_id), bytes(20)))
    [line] = [line for line in elsewhere().open(file, str(other)) if line.startswith("warning")]
    assert line == (
        f"warning: the trace names demo64.elf (build-id {build_id[:12]}) as its program, and is read with this"
        " other.elf (build-id 000000000000): where the code that ran is another, the history is wrong or missing"
    )


def without_main(folder: Path) -> Path:
    """The demo's ELF cut off before main: what is beyond comes from elsewhere, a ROM for instance."""
    data = bytearray(DEMO.read_bytes())
    (phoff,) = struct.unpack_from("<Q", data, 32)
    entry, count = struct.unpack_from("<HH", data, 54)
    for at in range(phoff, phoff + entry * count, entry):
        if struct.unpack_from("<I", data, at)[0] == 1:
            struct.pack_into("<Q", data, at + 32, MAIN - 0x8000_0000)
    other = folder / "without_main.elf"
    other.write_bytes(data)
    return other


def started_without_main(folder: Path) -> tuple[Board, Session, Context]:
    """A session that traces the board, with that ELF."""
    demo = board(folder)
    context = Context(str(without_main(folder)), demo.describe().target_file)
    session = Session(demo.connect, NOBODY)
    session.start(context)
    return demo, session, context


def test_code_the_elf_lacks_is_read_from_the_target_and_kept(tmp_path: Path) -> None:
    demo, session, context = started_without_main(tmp_path)
    file = tmp_path / "x.rvt"
    ran = demo.run(400)
    history, _ = session.decoded(context)
    assert history.instructions == ran
    assert MAIN in list(history.pcs())
    assert "bytes of code that is not in the ELF to" in text(session.save(file, context))
    other = elsewhere()
    other.open(file, None)
    assert list(other.decoded()[0].pcs()) == list(history.pcs())


def test_code_that_is_nowhere_is_asked_for_once(tmp_path: Path) -> None:
    demo, session, context = started_without_main(tmp_path)
    demo.run(400)
    asked: list[int] = []

    def refused(address: int) -> None:
        if address >= 0x8000_0000:
            asked.append(address)
            raise BusError(address)

    demo.broken = refused
    assert "could not be read from the target: bus error" in text(session.history("", 10, context).lines)
    before = len(asked)
    session.history("-", 10, context)
    assert before == len(asked) > 0


def test_a_capture_of_another_protocol_is_kept_though_it_cannot_be_read(demo: Board) -> None:
    file = saved(demo)
    capture = load(file)
    traced = capture.encoders[0]
    control = ENCODER_CONTROL.put(traced.in_force.control, "trTeFormat", TeFormat.E_TRACE)
    foreign = replace(capture, encoders=(replace(traced, in_force=replace(traced.in_force, control=control)),))
    save(foreign, file)
    session, line = elsewhere(), "encoder0 produces E-Trace 1.0, which cannot be decoded yet; `trace save` keeps it"
    assert "E-Trace 1.0 HTM" in text(session.open(file, None))
    with pytest.raises(Unsupported) as caught:
        session.history("", 10, Context())
    assert str(caught.value) == line
    assert session.status(Context())[-1] == f"history:  {line}"
    assert session.save(file, Context())[1] == f"note:     saved without decoding it: {line}"
    assert load(file) == foreign


@given(captures(), st.sampled_from([DEMO, FOLDER / "demo32.elf"]))
@settings(deadline=None, max_examples=some_of(200, 10))
def test_no_capture_does_more_than_be_refused(capture: Capture, elf: Path) -> None:
    """Sound as files, they say anything."""
    session = elsewhere()
    with TemporaryDirectory() as folder:
        save(capture, Path(folder, "x.rvt"))
        for given_elf in (None, str(elf)):
            try:
                lines = session.open(Path(folder, "x.rvt"), given_elf)
                lines += session.status(Context())
                lines += session.history("", 10, Context()).lines
            except RvtraceError as error:
                lines = [str(error)]
            assert all(line.isprintable() for line in lines)


def test_a_path_that_is_no_text_is_kept(demo: Board) -> None:
    file = saved(demo)
    capture = load(file)
    assert capture.elf is not None
    odd = replace(capture, elf=replace(capture.elf, path="/tmp/\udce4\n.elf"))
    save(odd, file)
    assert load(file) == odd
    with pytest.raises(NoElf, match=r"was made with /tmp/\\xe4\\n\.elf, which was not found"):
        elsewhere().open(file, None)
