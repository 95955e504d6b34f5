"""Compares events of SiFive's captures with what SiFive's decoder prints, line by line where both say the same thing.

    python benchmarks/decoding/sifive_events.py CHECKOUT

CHECKOUT is one of sifive/trace-decoder-tests, which has the captures and the decoder's output; they state no licence,
so they are not part of this repository. Of each message that is an event: its kind, its place, where it led, its
number, its data and its time; of the decoder's files of events also the function and the line; of what programs wrote,
the text. Of the functions of event-ppc the decoder says only `_ftext`, a label at the beginning of the code: they are
not compared. Prints how many lines agree, and those that do not. The exit status is 1 if there are any.
"""

import io
import re
import sys
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path, PurePosixPath

from rvtrace_gdb.decode.history.hart_events import HartEvent, HartEventKind
from rvtrace_gdb.decode.history.history import Event, History
from rvtrace_gdb.decode.ntrace.decoder import decode_streams
from rvtrace_gdb.decode.ntrace.options import SIFIVE, ImplicitReturn, Options
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.program.source.source_lines import SourceLines
from rvtrace_gdb.session.formats.guesses.found_dialect import with_found_dialect
from rvtrace_gdb.session.queries.itc import ConsoleLog, formats_of

EVENTS = ("event-all", "event-call", "event-sample", "event-text", "event-ppc", "pc-sample", "pc-sample-itc",
          "pc-sample-sync", "itc-timestamp")  # fmt: skip
TEXTS = ("nls", "itc_printf")
EVENT_FILES = ("event-text", "event-ppc")

_MESSAGE = re.compile(
    r"Trace: Msg # \d+, (?:Tics: (?P<time>\d+), )?(?:(?:Address|NxtAddr): (?P<pc>\w+),? )?TCode: "
    r"(?:INCIRCUITTRACE(?: WS)? \(3[45]\) ICT Reason: (?P<reason>[\w+/ ]+) \(\d+\)(?P<rest>.*)"
    r"|SYNC \(9\) Reason: \(15\) (?P<sample>PC Sample).*"
    r"|DATA ACQUISITION \(7\) idTag: 0x(?P<tag>\w+) Data: 0x(?P<data>\w+))"
)
Fact = tuple[object, ...]


def printed(output: str) -> Iterator[Fact]:
    """Yield what the decoder prints of each event: kind, place, target, number, data, time."""
    for found in _MESSAGE.finditer(output):
        pc = None if found["pc"] is None else int(found["pc"], 16)
        time = None if found["time"] is None else int(found["time"])
        if found["tag"] is not None:
            yield "written", None, None, None, (int(found["tag"], 16), int(found["data"], 16)), time
        elif found["sample"] is not None:
            yield "sample", pc, None, None, (), time
        else:
            yield (*_in_circuit(found["reason"], found["rest"] or "", pc), time)


def _in_circuit(reason: str, rest: str, pc: int | None) -> Fact:
    if reason == "PPCx8":
        return "counters", None, None, None, tuple(int(it, 16) for it in re.findall(r"\d=0x(\w+)", rest))
    target = re.search(r"PCdest 0x(\w+)", rest)
    number = re.search(r"(?:Trigger ID|Control) (\d+)", rest)
    kind = {"Periodic": "sample", "Inferable Call": "call", "Call/Return": "call"}.get(reason, reason.split(" ")[0])
    led = None if target is None else int(target[1], 16)
    return kind.lower(), pc, led, None if number is None else int(number[1]), ()


_KINDS = {HartEventKind.PC_SAMPLE: "sample", HartEventKind.RETURN: "call", HartEventKind.JUMP: "call"}


def ours(history: History, image: Image) -> Iterator[Fact]:
    """Yield the same of a history. Where the decoder leaves the target to the program, so does this."""
    for event in history.events:
        fact = event.fact
        if not isinstance(fact, HartEvent):
            continue
        inferable = event.last_pc is not None and _is_inferable(event, image)
        data: tuple[int, ...] = (*fact.values, *[0] * (8 - len(fact.values))) if fact.values else ()
        if fact.written is not None:
            data = (4 * fact.written.channel + (4 - fact.written.size), fact.written.value)
        kind = _KINDS.get(fact.kind, fact.kind.value)
        yield kind, event.last_pc, None if inferable else event.next_pc, fact.number, data, event.time


def _is_inferable(event: Event, image: Image) -> bool:
    return image.instruction(event.last_pc or 0).offset is not None


def events_printed(lines: str) -> Iterator[Fact]:
    """Yield what a file of events has: kind, place, target, counters, function, file and line."""
    for line in lines.splitlines():
        found = re.match(r"\[0\] 0 \[(?P<kind>[\w ]+)\](?: PC=0x(?P<pc>\w+))?(?P<rest>.*)", line)
        if found is None:
            continue
        target = re.search(r"PCDest=\[0x(\w+)\]", found["rest"])
        place = re.search(r"ffl:(.*):([^:]*):(\d+)$", found["rest"])
        where = ("", "") if place is None else (place[2], f"{PurePosixPath(place[1]).name}:{place[3]}")
        values = tuple(int(it, 16) for it in re.findall(r"cntr\[\d\]=0x(\w+)", found["rest"]))
        pc = None if found["pc"] is None else int(found["pc"], 16)
        yield found["kind"].lower(), pc, None if target is None else int(target[1], 16), values, *where


_FILE_KINDS = {HartEventKind.PC_SAMPLE: "pc sample", HartEventKind.COUNTERS: "ppcx8"}


def our_events(history: History, image: Image) -> Iterator[Fact]:
    """Yield the same of a history."""
    lines = SourceLines(image)
    for event in history.events:
        if isinstance(fact := event.fact, HartEvent):
            pc = event.last_pc
            symbol = None if pc is None else image.symbol(pc)
            values = (*fact.values, *[0] * (8 - len(fact.values))) if fact.values else ()
            where = ("", "") if pc is None else ("" if symbol is None else symbol[0], lines.line_at(pc))
            yield _FILE_KINDS.get(fact.kind, fact.kind.value), pc, event.next_pc, values, *where


def texts_printed(output: str) -> Iterator[Fact]:
    """Yield each text that the decoder prints."""
    for found in re.finditer(r"^ITC Print: (.*)$", output, re.M):
        yield (found[1],)


class Capture:
    """A capture of a checkout, decoded, and what the decoder prints of it."""

    def __init__(self, checkout: Path, name: str) -> None:
        (self.folder,) = checkout.glob(f"{name}.*test")
        self.name = name
        (elf,), (trace,) = self.folder.glob("*.elf"), self.folder.glob("*.rtd")
        self.image, data = Image.from_elf(elf), trace.read_bytes()
        given = Options(
            timestamps=name == "itc-timestamp", timestamp_bits=40, implicit_return=ImplicitReturn.FULL_STACK
        )
        options = with_found_dialect(given, data) if name != "itc_printf" else replace(given, dialect=SIFIVE)
        (self.history,) = decode_streams(data, self.image, options).histories.values()

    def reference(self, ending: str) -> str:
        """Return the decoder's output with this ending."""
        (packed,) = (self.folder / "reference").glob(f"*.{ending}.zip")
        with zipfile.ZipFile(io.BytesIO(packed.read_bytes())) as found:
            name = next(it for it in found.namelist() if it.endswith(f".{ending}"))
            return found.read(name).decode(errors="replace").replace("\r", "")


def compared(name: str, theirs: Sequence[Fact], found: Sequence[Fact]) -> bool:
    """Print how many lines agree, and the first that do not; return whether all do."""
    wrong = [(n, a, b) for n, (a, b) in enumerate(zip_longest(theirs, found), 1) if a != b]
    print(f"{name:32} {len(theirs) - len(wrong):>7} of {len(theirs):>7} lines agree")
    for number, reference, own in wrong[:5]:
        print(f"    {number}: {reference}\n    {' ' * len(str(number))}  {own}")
    return not wrong and bool(theirs)


def main(checkout: Path) -> int:
    """Compare all captures; return the exit status."""
    agree = True
    for name in EVENTS:
        capture = Capture(checkout, name)
        output = capture.reference("stdout")
        agree &= compared(name, list(printed(output)), list(ours(capture.history, capture.image)))
        if name in EVENT_FILES:
            lines = list(events_printed(capture.reference("events")))
            own = list(our_events(capture.history, capture.image))
            if {line[4] for line in lines} <= {"_ftext", ""}:
                lines, own = ([(*it[:4], *it[5:]) for it in part] for part in (lines, own))
            agree &= compared(f"{name}.events", lines, own)
    for name in TEXTS:
        capture = Capture(checkout, name)
        log = ConsoleLog(0, formats_of(capture.image))
        rows = [(row.text,) for row in (*log.rows(capture.history.events), *log.end())]
        agree &= compared(name, list(texts_printed(capture.reference("stdout"))), rows)
    return 0 if agree else 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
