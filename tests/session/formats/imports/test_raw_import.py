"""Raw bytes as captures: all that was said of them is in the capture, in registers where there are registers for it."""

from dataclasses import fields, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rvtrace_gdb.controlregs.trace_control.encoder_registers import ENCODER_CONTROL, ENCODER_IMPL, INST_FEATURES
from rvtrace_gdb.decode.ntrace.options import DIALECTS, RC7, SIFIVE, ImplicitReturn, Options
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.session.capture.file import load, save
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.errors import NoTrace
from rvtrace_gdb.session.formats.imports.raw_import import RawImport, capture_of, captured_image, sources_in
from rvtrace_gdb.session.formats.sinks import feeding, options_of
from rvtrace_gdb.session.queries.lists.pages import RangeError
from rvtrace_gdb.session.session import Session
from tests.decode.ntrace.messages import message, split
from tests.helpers import reference_streams

PLAIN = Options()
ELF = reference_streams.FOLDER / "median.elf"


def imported(data: bytes, options: Options = PLAIN, wrapped: bool = False) -> RawImport:
    return RawImport("raw.bin", data, options, Image.from_elf(ELF), wrapped=wrapped)


_FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "src_bits": st.integers(0, 12),
    "timestamps": st.booleans(),
    "timestamp_bits": st.integers(0, 64),
    "btm": st.booleans(),
    "implicit_return": st.sampled_from(ImplicitReturn),
    "sequential_jump": st.booleans(),
    "all_jumps": st.booleans(),
    "extend_addr_msb": st.booleans(),
    "address_bits": st.none() | st.integers(0, 64),
    "repeat_bits": st.integers(1, 32),
    "dialect": st.sampled_from(list(DIALECTS.values())),
}
_options = st.builds(Options, **_FIELDS)


def test_every_option_is_drawn() -> None:
    """But for what an import does not say: the encoder's own SRC, how often it synchronizes, when to stop."""
    assert {field.name for field in fields(Options)} - _FIELDS.keys() == {"src_id", "sync_period", "stop_at_error"}


@given(_options)
@settings(deadline=None)
def test_what_was_said_of_the_bytes_is_what_the_decoder_is_told(options: Options) -> None:
    """By way of registers, and through the file."""
    with TemporaryDirectory() as folder:
        save(capture_of(imported(b"\xff", options)), Path(folder, "x.rvt"))
        capture = load(Path(folder, "x.rvt"))
    assert options_of(feeding(capture.sinks[0], capture.encoders)) == options


def test_registers_are_those_of_the_trace_control_interface() -> None:
    options = Options(src_bits=3, src_id=5, btm=True, implicit_return=ImplicitReturn.PARTIAL_STACK, all_jumps=True)
    capture = capture_of(imported(b"", options))
    [encoder] = capture.encoders
    assert encoder.hart == 5
    control, features = encoder.in_force.control, encoder.in_force.features
    assert (ENCODER_CONTROL.get(control, "trTeInstMode"), ENCODER_CONTROL.get(control, "trTeFormat")) == (3, 1)
    assert ENCODER_IMPL.get(encoder.in_force.impl, "trTeProtocolMajor") == 1
    fields = {name: value for name, value in INST_FEATURES.unpack(features).items() if value}
    assert fields == {
        "trTeInstEnImplicitReturn": 1,
        "trTeInstImplicitReturnMode": 2,
        "trTeInstEnAllJumps": 1,
        "trTeSrcID": 5,
        "trTeSrcBits": 3,
    }
    assert capture.target == "an unknown target, imported from raw.bin"
    lines = opened(b"\xff", options).status(Context())
    [line] = [line for line in lines if line.startswith("encoder:")]
    on = "implicit return (partial address stack), messages for all jumps"
    assert line == f"encoder:  encoder5, hart 5: N-Trace 1.0 BTM, {on}"


def test_sources_are_those_decoding_can_start_at() -> None:
    options = Options(src_bits=4)
    data = message("ProgTraceSync", (4, 9), sync=3, icnt=0, faddr=0x80)
    data += message("DirectBranch", (4, 2), icnt=5) + message("ProgTraceSync", (4, 1), sync=3, icnt=0, faddr=0x80)
    assert sources_in(data, options) == [1, 9]
    assert sources_in(data, Options()) == [0]
    assert sources_in(b"\x0c\x03", options) == [0], "at least one"


def test_only_sifives_dialect_starts_at_its_own_messages() -> None:
    """InCircuitTraceWS (35) has a full address there, and is a reserved TCODE elsewhere."""
    data = bytes([35 << 2, 0x01, 0x03]) + bytes([35 << 2, 0x05, 0x03])
    assert sources_in(data, Options(src_bits=4, dialect=SIFIVE)) == [0, 1]
    assert sources_in(data, Options(src_bits=4, dialect=RC7)) == [0]


# Several harts in one stream


def harts(*modes: int, times: list[tuple[int, int]] | None = None) -> bytes:
    """The median program on several harts, each encoded in another mode, SRC 1 on."""
    streams = [(reference_streams.FOLDER / f"median.{mode}.nex").read_bytes() for mode in modes]
    return reference_streams.in_turn(
        *(reference_streams.from_source(raw, 3, n + 1, times[n] if times else None) for n, raw in enumerate(streams))
    )


def opened(data: bytes, options: Options) -> Session:
    session = Session()
    session.open_capture(capture_of(imported(data, options)), "raw.bin", None)
    return session


def test_a_listing_is_of_the_hart_that_is_meant_and_pages_of_its_own() -> None:
    session = opened(harts(1, 2), Options(src_bits=3))
    first, second, unknown = (Context(hart=hart) for hart in (1, 2, 7))
    one = session.history("", 10, first)
    assert session.history("", 10, second)[:2] == one[:2]
    assert session.history("-", 10, first).end == one.begin
    assert session.history("-", 10, second).end == one.begin, "the other's page was not turned"
    assert session.history("1,5", 10, Context())[:2] == (1, 6), "the first hart, when none is meant"
    assert session.rows(1, 3, 2) == session.rows(1, 3, 1)
    debugged, other = (session.history("1,2", 10, Context(thread_hart=hart)) for hart in (2, 5))
    assert (debugged.hart, debugged.lines) == (2, [])
    assert (other.hart, other.lines) == (1, ["note:     hart 5 is not in this trace: this is hart 1"])
    which = session.history("1,2", 10, Context(candidates=2)).lines
    assert which == [
        "note:     which of OpenOCD's 2 targets gdb is connected to is not known: this is hart 1; `set trace hart N`"
        " shows another one"
    ]
    with pytest.raises(NoTrace, match=r"^hart 7 is not in this trace, which has harts 1, 2$"):
        session.history("", 10, unknown)


def test_a_hart_of_which_there_is_nothing_is_said_to_have_nothing() -> None:
    session = opened(harts(1) + message("ProgTraceSync", (3, 6), sync=3, icnt=0, faddr=0x80), Options(src_bits=3))
    with pytest.raises(NoTrace, match="this trace has nothing of hart 6 that can be decoded, only of other harts"):
        session.history("", 10, Context(hart=6))


def test_one_hart_of_several_can_be_taken_alone() -> None:
    session = opened(harts(1, 2), Options(src_bits=3, src_id=2))
    found = session.harts().harts
    assert list(found.histories) == [2]
    assert found.histories[2].instructions == reference_streams.golden("median")[0]
    [note] = found.notes
    assert note.startswith("warning: 15011 instructions of SRC 1 are also in the trace, but no known encoder has")


def test_an_encoder_alone_may_not_know_its_source() -> None:
    capture = capture_of(imported(harts(1), Options(src_bits=3)))
    [encoder] = capture.encoders
    features = INST_FEATURES.put(encoder.in_force.features, "trTeSrcID", 0)
    for base, instructions in (
        (0x2000_0000, reference_streams.golden("median")[0]),
        (0, 0),
    ):  # with base 0, a user said it
        unaware = replace(encoder, hart=0, in_force=replace(encoder.in_force, base=base, features=features))
        session = Session()
        session.open_capture(replace(capture, encoders=(unaware,)), "raw.bin", None)
        assert session.decoded()[0].instructions == instructions


def test_decoding_can_stop_at_the_first_loss() -> None:
    stream = (reference_streams.FOLDER / "median.1.nex").read_bytes()
    data = stream + b"\x02\x03" + stream
    for stop, histories in ((False, 2), (True, 1)):
        session = Session()
        session.open_capture(capture_of(imported(data)), "raw.bin", None, stop_at_error=stop)
        assert session.decoded()[0].instructions == histories * reference_streams.golden("median")[0]


# Code that is there in some contexts


def test_a_program_in_some_contexts_only_is_in_the_capture_with_all_its_code(tmp_path: Path) -> None:
    """Without any ELF: the code of the image is enough; its symbols are those of the file, if that is the same."""
    process = Image.from_elf(ELF)
    stream = (reference_streams.FOLDER / "median.1.nex").read_bytes()
    first, *rest = split(stream)
    data = first + message("Ownership", process=0b10 | 1 << 2 | 738 << 5) + b"".join(rest)
    images = (captured_image(process, "maps.738", scontext=738),)
    raw = RawImport("raw.bin", data, Options(), Image(process.xlen), images)
    save(capture_of(raw), tmp_path / "x.rvt")
    session = Session()
    assert "image:    maps.738 for scontext 738: " in "\n".join(session.open(tmp_path / "x.rvt", None))
    decoded = session.harts()
    history = decoded.harts.histories[0]
    assert reference_streams.fingerprint(history.pcs()) == reference_streams.golden("median")[1]
    image = decoded.program.image_of(history.context_at(0))
    assert image.symbol(process.entry) == process.symbol(process.entry)
    other = replace(load(tmp_path / "x.rvt"), images=(captured_image(process, "maps.739", scontext=739),))
    save(other, tmp_path / "y.rvt")
    session.open(tmp_path / "y.rvt", str(ELF))
    empty = session.harts(Context(str(ELF))).harts.histories[0]
    assert empty.instructions == 0, "the code of another process, whatever program the debugger has loaded"


# Messages by number


def test_messages_are_numbered_and_found_by_their_bytes() -> None:
    session = opened(harts(1, 2), Options(src_bits=3))
    listing = session.dump("", 10, Context())
    rows = session.messages(listing.begin, listing.end)
    assert [number for number, _, _ in rows] == list(range(listing.begin, listing.end))
    everything = session.messages(1, listing.end)
    assert everything[-10:] == rows
    for number, offset, text in everything[::7]:
        found = session.dump("", 10, Context(), offset + 1)
        assert found.begin == number
        assert session.messages(number, number + 1) == [(number, offset, text)]
    assert session.dump("-", 10, Context()).end == found.begin
    assert "RAW=" in session.messages(1, 2, raw=True)[0][2]
    with pytest.raises(RangeError, match=r"^Range out of bounds: bytes go from 0x0 to 0x[0-9a-f]+\.$"):
        session.dump("", 10, Context(), 1 << 20)


def test_messages_need_no_program_and_no_history() -> None:
    with pytest.raises(NoTrace, match="there is no trace"):
        Session().dump("", 10, Context())
    session = opened(b"", Options())
    with pytest.raises(NoTrace, match=r"^the trace is empty: it has 0 bytes$"):
        session.dump("", 10, Context())
    session = opened(b"\x02\x03" * 3, Options())
    session.dump("", 10, Context())
    assert [text for _, _, text in session.messages(1, 4)] == ["NoMessage BYTES=2 # reserved MSEO value 10"] * 3
