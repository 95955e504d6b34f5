"""Captures of real SiFive cores: what their own decoder printed, and what is known of them besides.

SiFive's encoders came before the standard; the reference (*.pcs.gz) is what SiFive's decoder dqr says ran. Where ours
says more or less, the test says which instructions, and why.
"""

import csv
import gzip
import re
from functools import cache
from itertools import accumulate
from pathlib import Path

import pytest

from rvtrace_gdb.decode.history.builder import SourceHistories
from rvtrace_gdb.decode.history.events import EventKind
from rvtrace_gdb.decode.history.hart_events import HartEvent
from rvtrace_gdb.decode.history.history import GAP, History
from rvtrace_gdb.decode.ntrace.decoder import decode_streams
from rvtrace_gdb.decode.ntrace.items import Itemizer
from rvtrace_gdb.decode.ntrace.options import RATIFIED, SIFIVE, Dialect, ImplicitReturn, Options
from rvtrace_gdb.decode.program.context_images import ContextImages
from rvtrace_gdb.decode.program.csrs import ProgramContext
from rvtrace_gdb.decode.program.image import CodeMissing, Image
from rvtrace_gdb.decode.program.linux.user_code import MappedFiles, add_kernel_pages, process_image, read_maps
from tests.decode import assembler as asm
from tests.decode.ntrace.messages import image_of, located, message, of_kind, read, split, started, stopped
from tests.decode.program.elves import gdb_symbols
from tests.helpers.core_captures import sifive

EQUAL = ["propertiesfile", "ca-vector-gemm", "dv-uaddr1", "e31_hello_debug", "itc_printf", "e31_coremark_release"]
GTOD = 738
"""The process that was traced, pid of the program gtod (gtod.settings)."""


@cache
def index() -> dict[str, dict[str, str]]:
    """The rows of index.tsv by capture."""
    with sifive("index.tsv").open() as file:
        return {row["name"]: row for row in csv.DictReader(file, delimiter="\t")}


@cache
def trace(name: str) -> bytes:
    return sifive(f"{name}.rtd").read_bytes()


@cache
def reference(name: str) -> dict[int, list[int]]:
    """The addresses dqr printed, by core."""
    pcs: dict[int, list[int]] = {}
    for line in gzip.decompress(sifive(f"{name}.pcs.gz").read_bytes()).decode().splitlines():
        core, pc = line.split()
        pcs.setdefault(int(core), []).append(int(pc, 16))
    return pcs


def options(name: str) -> Options:
    """As index.tsv and the settings beside the captures have it: all HTM but that of Linux is with implicit return."""
    row = index()[name]
    optimized = row["mode"] == "HTM" and name != "linux-static"
    return Options(
        src_bits=int(row["src_bits"]),
        timestamps=row["timestamps"] != "-",
        timestamp_bits=40,
        btm=row["mode"] == "BTM",
        implicit_return=ImplicitReturn.COUNTER if optimized else ImplicitReturn.OFF,
        dialect=SIFIVE,
    )


@cache
def decoded(name: str) -> SourceHistories:
    return decode_streams(trace(name), Image.from_elf(sifive(f"{name}.elf")), options(name))


def history(name: str) -> History:
    """Of a capture of one core."""
    (found,) = decoded(name).histories.values()
    return found


@pytest.mark.parametrize("name", EQUAL)
def test_the_instructions_are_those_the_reference_decoder_prints(name: str) -> None:
    ran = history(name)
    assert list(ran.pcs()) == reference(name)[0]
    assert ran.instructions == int(index()[name]["reference_instructions"])
    assert (ran.gaps, of_kind(ran, EventKind.MISMATCH, EventKind.LOSS)) == (0, [])


@pytest.mark.parametrize("name", [*EQUAL, "timestamp", "dv-850", "pc-sample-sync"])
def test_every_byte_is_accounted_for(name: str) -> None:
    """Skipped is the beginning of a message at the end."""
    account = decoded(name).accounting
    skipped = {"timestamp": 2, "e31_coremark_release": 1}
    idle = {"dv-uaddr1": 8, "itc_printf": 2, "dv-850": 15}
    assert account.total == int(index()[name]["trace_bytes"]) == account.decoded + account.skipped + account.idle
    assert (account.skipped, account.idle) == (skipped.get(name, 0), idle.get(name, 0))


# Ends that are missing


@pytest.mark.parametrize(
    ("name", "branched", "known"), [("timestamp", 19_835, 20_197), ("e31_coremark_release", 100_849, 109_570)]
)
def test_a_cut_end_yields_the_instructions_it_determines(name: str, branched: int, known: int) -> None:
    """Both buffers end in a row of ResourceFull and a cut message: what these say ran before the branch that would end
    the row is known.
    """
    messages = list(split(trace(name)))
    while read(messages[-1])["name"] == "ResourceFull":
        messages.pop()
    whole = decode_streams(b"".join(messages), Image.from_elf(sifive(f"{name}.elf")), options(name)).histories[0]
    assert (len(whole), len(history(name))) == (branched, known)
    assert list(whole.pcs()) == reference(name)[0][:branched]
    (cut,) = of_kind(history(name), EventKind.NOTE)
    assert (cut.offset, cut.text) == (
        len(trace(name)) - decoded(name).accounting.skipped,
        "the last message is cut off",
    )


def test_a_branch_whose_outcome_was_cut_off_ran() -> None:
    """timestamp: dqr stops before the branch at 0x404001f6. I-CNT was reported far beyond it, so it ran too."""
    ran = list(history("timestamp").pcs())
    assert ran == [*reference("timestamp")[0], 0x4040_01F6]
    assert history("timestamp").gaps == 0


def test_a_trace_that_contradicts_itself_ends_where_it_does() -> None:
    """dv-850: I-CNT counts 440 halfwords, HIST has the outcomes of 5 branches, and the sixth comes after 152.

    dqr prints 91 instructions and stops. The branch itself is the 92nd.
    """
    ran = history("dv-850")
    assert list(ran.pcs()) == [*reference("dv-850")[0], 0x2000_40C6, GAP]
    (mismatch,) = of_kind(ran, EventKind.MISMATCH)
    assert (mismatch.offset, mismatch.position, mismatch.last_pc) == (9, 92, 0x2000_40C6)
    assert "HIST has no bit for the branch" in mismatch.text


# What SiFive's encoders send besides


def test_periodic_samples_of_the_pc_say_where_the_hart_was() -> None:
    """pc-sample-sync holds nothing but ProgTraceSync with SYNC 15, whose F-ADDR is the sample: no flow follows."""
    ran = history("pc-sample-sync")
    samples = [int(read(raw)["faddr"]) << 1 for raw in split(trace("pc-sample-sync"))]
    assert len(samples) == 440
    assert [(event.kind_name, event.text, event.last_pc) for event in ran.events] == [
        ("pc-sample", "PC sample", pc) for pc in samples
    ]
    assert len(ran) == 0


def test_data_a_program_writes_into_its_trace_is_shown() -> None:
    """itc_printf prints the strings that stand in its read-only data."""
    events = of_kind(history("itc_printf"), EventKind.HART_EVENT)
    facts = [event.fact.written for event in events if isinstance(event.fact, HartEvent)]
    written = b"".join(fact.data for fact in facts if fact is not None)
    strings = Image.from_elf(sifive("itc_printf.elf")).read(0x4040_1314, 0xF8)
    assert written == strings.replace(b"\0", b"")
    assert {fact.channel for fact in facts if fact is not None} == {0}
    offsets = [event.offset for event in events]
    assert (len(offsets), offsets) == (63, sorted(offsets))
    assert all(trace("itc_printf")[offset] >> 2 == 7 for offset in offsets)


def test_external_triggers_are_events() -> None:
    events = of_kind(history("ca-vector-gemm"), EventKind.HART_EVENT)
    assert [event.text for event in events] == ["external trigger"] * 5
    assert all(trace("ca-vector-gemm")[event.offset] >> 2 & 63 == 34 for event in events)


def test_events_after_a_flow_have_their_places() -> None:
    """dv-uaddr1: four watchpoints on four instructions in a row, and samples between; dqr knows no address there."""
    events = of_kind(history("dv-uaddr1"), EventKind.HART_EVENT)
    texts = ["PC sample", *(text for n in range(4) for text in (f"watchpoint {n}", "PC sample"))]
    assert [event.text for event in events] == ["control: trace on", *texts, "control: trace off"]
    places = [event.last_pc for event in events if "watchpoint" in event.text]
    assert places == [0x2000_4BF4, 0x2000_4BF8, 0x2000_4BFC, 0x2000_4C00]


def test_branch_messages_that_end_on_a_jump() -> None:
    """ca-vector-gemm reports direct jumps too, which the standard calls all-jumps; its dialect does not need to say so.

    Without either, the first such message, at 0x80000a1a, is a contradiction.
    """
    image, pcs = Image.from_elf(sifive("ca-vector-gemm.elf")), reference("ca-vector-gemm")[0]
    for all_jumps in (True, False):
        chosen = Options(btm=True, all_jumps=all_jumps, dialect=RATIFIED)
        ran = decode_streams(trace("ca-vector-gemm"), image, chosen).histories[0]
        assert (list(ran.pcs()) == pcs) is all_jumps
        mismatches = of_kind(ran, EventKind.MISMATCH)
        assert not mismatches if all_jumps else "0x80000a1a: there is no branch to take" in mismatches[0].text


def test_triggers_mark_the_flow_and_do_not_break_it() -> None:
    """ca-vector-gemm: 24 synchronizing messages because of an external trigger."""
    marks = of_kind(history("ca-vector-gemm"), EventKind.SYNC)
    assert [mark.text for mark in marks] == ["external trigger"] * 24
    assert all(history("ca-vector-gemm").pc(mark.position) == mark.next_pc for mark in marks)


def test_runs_of_outcomes_are_of_this_dialect() -> None:
    """RCODE 9, N branches taken, is the vendor's own in the standard: a decoder of the standard says where it stops."""
    name = "e31_hello_debug"
    standard = Options(implicit_return=ImplicitReturn.COUNTER, dialect=RATIFIED)
    ran = decode_streams(trace(name), Image.from_elf(sifive(f"{name}.elf")), standard).histories[0]
    (loss,) = of_kind(ran, EventKind.LOSS)
    assert (loss.offset, loss.text) == (24, "ResourceFull with RCODE 9, which is not defined")
    assert list(ran.pcs(0, loss.position)) == reference(name)[0][: loss.position]


def test_times_are_the_xor_with_the_one_before() -> None:
    """timestamp: 834 messages, all with one. Read that way, time never goes back."""
    messages = [read(raw) for raw in split(trace("timestamp"))]
    sent = [(int(fields["tstamp"]), "sync" in fields) for fields in messages]
    times = list(accumulate(sent, lambda last, one: one if one[1] else (last[0] ^ one[0], False)))
    expected = [time for time, _ in times]
    assert len(expected) == 834
    assert expected == sorted(expected)
    itemizer = Itemizer(options("timestamp"), 32)
    items = [*itemizer.feed(trace("timestamp")), *itemizer.finish()]
    assert [item.time for item in items if item.message] == expected
    ran = history("timestamp")
    assert {time for _, time in ran.times} < set(expected)
    assert ran.time_at(0) == expected[0]
    assert ran.time_at(len(ran)) == expected[-1]
    assert [ran.time_at(event.position) for event in of_kind(ran, EventKind.TRACE_ON)] == [expected[0], expected[2]]


# Linux on two harts, one of which runs gtod


def linux_programs(*, attached_to: int = GTOD) -> ContextImages:
    """The kernel, of which there are 200 pages, and gtod with its vdso. Firmware and other programs are missing."""
    kernel = Image(64)
    add_kernel_pages(kernel, sifive("linux-static/kmem"))
    files = MappedFiles({"gtod": sifive("linux-static/gtod"), "[vdso]": sifive("linux-static/gtod.vdso")})
    programs = ContextImages(kernel)
    programs.attach(process_image(read_maps(sifive("linux-static/gtod.map")), files), scontext=attached_to)
    return programs


@cache
def linux(attached_to: int = GTOD) -> dict[int, History]:
    programs = linux_programs(attached_to=attached_to)
    return decode_streams(trace("linux-static"), programs, options("linux-static")).histories


def runs(ran: History) -> list[tuple[ProgramContext, list[int]]]:
    """The addresses between changes of the context, without gaps."""
    starts = [position for position, _ in ran.contexts]
    ends = [*starts[1:], len(ran)]
    places = zip(ran.contexts, ends, strict=True)
    return [(context, [pc for pc in ran.pcs(start, end) if pc != GAP]) for (start, context), end in places]


def test_a_process_and_the_kernel_under_it() -> None:
    """dqr shows what hart 1 ran for gtod alone: 143,972 instructions.

    It begins at the first synchronization after gtod was switched to; ours with the Ownership message, 196 instructions
    earlier. Both end with the message that says the next process runs; ours has one more, the branch
    (0xffffffff80bb17ec) that I-CNT had counted by then, though its outcome came later.
    """
    ran = [pc for context, pcs in runs(linux()[1]) if context.scontext == GTOD for pc in pcs]
    assert len(ran) == 196 + 143_972 + 1
    assert ran[196:-1] == reference("linux-static")[1]
    assert ran[-2:] == [0xFFFF_FFFF_80BB_17E8, 0xFFFF_FFFF_80BB_17EC]


def test_the_process_is_known_by_what_linux_writes_to_scontext() -> None:
    """The id of the thread switched to, 0 for the idle thread."""
    contexts = {src: {context.scontext for _, context in ran.contexts} for src, ran in linux().items()}
    assert contexts == {0: {0, 737}, 1: {0, GTOD}}


def test_user_and_kernel_code_run_in_their_privilege_modes(tmp_path: Path) -> None:
    """The kernel is in the upper half of the addresses; firmware, which runs at physical ones, was not supplied."""
    user: set[int] = set()
    for context, pcs in runs(linux()[1]):
        assert {pc >> 63 for pc in pcs} <= {context.prv}
        user |= set(pcs) if context.prv == 0 else set()
    image = linux_programs().image_of(ProgramContext(0, scontext=GTOD))
    names = {symbol[0] for symbol in map(image.symbol, user) if symbol}
    assert {"_start", "main", "gettimeofday", "__vdso_clock_gettime"} <= names
    static = sorted(pc for pc in user if pc < 0x7FFF_98E4_3000)
    assert [image.symbol(pc) for pc in static] == gdb_symbols(
        sifive("linux-static/gtod"), static, tmp_path / "symbols.gdb"
    )


def test_gaps_are_where_code_was_not_supplied() -> None:
    """Firmware, 737's code, kernel pages nobody copied: each is named, and decoding goes on at the next sync."""
    programs = linux_programs()
    for ran in linux().values():
        for event in of_kind(ran, EventKind.MISMATCH, EventKind.LOSS):
            match = re.search(r"at 0x(\w+): there is no code", event.text)
            assert match is not None
            with pytest.raises(CodeMissing):
                programs.image_of(ran.context_at(event.position)).instruction(int(match[1], 16))
    counts = {src: (ran.instructions, ran.gaps) for src, ran in linux().items()}
    assert counts == {0: (14_566, 40), 1: (148_955, 31)}


def test_code_of_one_process_is_not_that_of_another() -> None:
    """With gtod said to be some other process, only the kernel's instructions are left."""
    left = [pc for context, pcs in runs(linux(attached_to=4242)[1]) if context.scontext == GTOD for pc in pcs]
    assert {pc >> 63 for pc in left} == {1}
    assert set(left) < {pc for context, pcs in runs(linux()[1]) if context.scontext == GTOD for pc in pcs}


# An E31 whose two synchronizations in a row both count the branch between them (byte 0xd77 of e31_coremark_debug in
# SiFive's trace-decoder-tests, whose README calls the trace bad there): I-CNT 3 HIST T after F-ADDR two bytes before.


def two_in_a_row(hist: int, icnt: int = 3) -> bytes:
    first = message("IndirectBranchHistSync", sync=2, b_type=0, icnt=4, faddr=0x2310 >> 1, hist=1)
    again = message("IndirectBranchHistSync", sync=2, b_type=0, icnt=icnt, faddr=0x2312 >> 1, hist=hist)
    return started(0x2452) + first + again + stopped(3)


ITS_LOOP = image_of((0x2310, [asm.C_NOP, asm.C_NOP, asm.NOP, asm.C_NOP]), (0x2452, [asm.NOP, asm.beq(0x2310 - 0x2456)]))
ONCE = [0x2452, 0x2456, 0x2310, 0x2312, 0x2314]


def test_a_branch_counted_by_two_synchronizations_ran_once() -> None:
    ran = decode_streams(two_in_a_row(0b11), ITS_LOOP, Options(dialect=SIFIVE)).histories[0]
    assert (list(ran.pcs()), ran.gaps) == (ONCE, 0)
    (note,) = of_kind(ran, EventKind.NOTE)
    assert (note.position, note.offset) == (3, [offset for offset, _ in located(two_in_a_row(0b11))][2])
    assert "the branch at 0x2456 a second time" in note.text


@pytest.mark.parametrize(
    ("stream", "dialect"),
    [(two_in_a_row(0b11), RATIFIED), (two_in_a_row(0b10), SIFIVE), (two_in_a_row(0b11, 4), SIFIVE)],
    ids=["no encoder of the standard does so", "the other outcome", "another count"],
)
def test_what_does_not_fit_that_is_a_contradiction(stream: bytes, dialect: Dialect) -> None:
    ran = decode_streams(stream, ITS_LOOP, Options(dialect=dialect)).histories[0]
    assert of_kind(ran, EventKind.MISMATCH)
