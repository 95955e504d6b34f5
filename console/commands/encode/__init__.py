"""`rvtrace encode`: encode the log of another simulator as the trace that an encoder would have sent.

It is for the verification of trace hardware: run the program on an RTL simulation and on Spike or QEMU, encode with the
options of the hardware, and compare the bytes. With `--tandem`, Spike's commit log becomes a tandem trace, in any of
the forms of the protocol.
"""

import argparse
import dataclasses
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from rvtrace_gdb.console import commands, output
from rvtrace_gdb.console.commands import CommandParser
from rvtrace_gdb.console.commands.encode import encoding as encode_encoding
from rvtrace_gdb.console.commands.encode import etrace, ntrace
from rvtrace_gdb.console.commands.encode.encoding import EncodedLog, Encoding
from rvtrace_gdb.console.commands.encode.etrace import ETraceRequest
from rvtrace_gdb.console.commands.encode.ntrace import NTraceRequest
from rvtrace_gdb.console.help_pages import ENCODER, group_of
from rvtrace_gdb.console.options import forms, inputs, tandem
from rvtrace_gdb.console.options.locations import Locations
from rvtrace_gdb.console.output import CommandOutput, OutputOptions
from rvtrace_gdb.decode.coresight.frames import USABLE_IDS, FrameForm
from rvtrace_gdb.decode.executed.execution import READERS, Executed
from rvtrace_gdb.decode.executed.readers import Log
from rvtrace_gdb.decode.program import csrs
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.tandem.encoder import GroupEncoder, Retired
from rvtrace_gdb.decode.tandem.logs.spike import CommitLog
from rvtrace_gdb.decode.tandem.protocol import DIALECTS, SPECIFICATION, TandemDialect, TandemParameters
from rvtrace_gdb.session.capture.model import Capture
from rvtrace_gdb.session.formats import registry
from rvtrace_gdb.session.formats.imports.framed_import import with_tandem_streams
from rvtrace_gdb.session.formats.imports.imported_encoders import ImportedFrames
from rvtrace_gdb.session.formats.imports.raw_import import RawImport, capture_of, tandem_capture
from rvtrace_gdb.session.formats.tandem import GroupItemizer, GroupWording
from rvtrace_gdb.support.errors import Progress, RvtraceError
from rvtrace_gdb.support.files import protect_inputs
from rvtrace_gdb.support.text import counted

_BATCH = 1024  # groups


class EncodeTandemError(RvtraceError):
    """A log that cannot be converted to a tandem trace, or not with these options."""


def add_tandem_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the encoder."""
    group = group_of(parser, ENCODER, "tandem", "Settings of the encoder (docs/tandem.md).")
    forms.add_form_arguments(group, forms=forms.OF_ENCODER)
    tandem.add_own_arguments(group)


@dataclass(frozen=True)
class TandemEncoderRequest:
    """What the command line says of the encoder of a tandem trace; None: the program has it, else the default."""

    dialect: TandemDialect
    forms: str | None
    flen: int | None
    mlen: int | None
    eaddr: int | None
    supervisor: bool

    @classmethod
    def from_arguments(cls, args: argparse.Namespace) -> "TandemEncoderRequest":
        """Return what a command with the options of `add_tandem_arguments` says."""
        return cls(
            dialect=DIALECTS[args.tandem_dialect or SPECIFICATION.name], forms=args.tandem_forms, flen=args.flen,
            mlen=args.mlen, eaddr=args.eaddr, supervisor=not args.no_supervisor,
        )  # fmt: skip

    def parameters(self, image: Image) -> TandemParameters:
        """Return the parameters of the trace of a program. Raises BadElf, BadParameters."""
        elf = TandemParameters.of_elf(image.path, mlen=self.mlen or 0, dialect=self.dialect)
        flen = elf.flen if self.flen is None else self.flen
        return dataclasses.replace(elf, flen=flen, eaddr=self.eaddr or 0, supervisor=self.supervisor)


@dataclass(frozen=True)
class EncodeRequest:
    """What the command line of `rvtrace encode` asks for. *elves*: the program, and other code that ran."""

    elves: tuple[str, ...]
    log: EncodedLog
    encoder: NTraceRequest | ETraceRequest | TandemEncoderRequest


class TandemEncoding:
    """The encoding of a log, with its counts. *starts*: whether an address is the first to be encoded; *limit*: of
    instructions.
    """

    def __init__(
        self, chosen: forms.ChosenForms, limit: int | None, commits: CommitLog, parameters: TandemParameters,
        starts: Callable[[int], bool] | None, progress: Progress,
    ) -> None:  # fmt: skip
        self.instructions = self.traps = self.groups = self.bytes = 0
        self.parameters = parameters
        self._commits, self._starts, self._limit, self._progress = commits, starts, limit, progress
        self._forms = chosen.forms
        self._sent: list[bytes] = []
        self._encoder = GroupEncoder(parameters, self._sent.append, self._forms)

    def pieces(self) -> Iterator[bytes]:
        """Return the trace. Raises LogError, BadElement, EncodeTandemError, and what *progress* raises."""
        for count, retired in enumerate(self._selected_commits()):
            if not count and retired.own is not None:
                self._encoder.begin(retired.own, retired.own_privilege)
            self._checked(retired)
            self._encoder.put(retired)
            trapped = any(number in csrs.TRAP_OF_CAUSE for number, _ in retired.csrs) and retired.privilege is not None
            self.traps += trapped
            self.instructions += not trapped
            if len(self._sent) >= _BATCH:
                self._progress("encoding (instructions)", count + 1)
                yield self._taken_bytes()
        self._encoder.finish()
        yield self._taken_bytes()

    def _selected_commits(self) -> Iterator[Retired]:
        """Return the instructions from the first selected one on."""
        begun, count = self._starts is None, 0
        for retired in self._commits.retired():
            begun = begun or (retired.own is not None and self._starts is not None and self._starts(retired.own))
            if begun:
                count += 1
                yield retired
            if count == self._limit:
                return

    def _checked(self, retired: Retired) -> None:
        """Raise if memory requests need physical addresses that the log does not have: its addresses are virtual."""
        forms = self._forms
        if (forms.memory or forms.fetch) and any(number == csrs.SATP and value for number, value in retired.csrs):
            raise EncodeTandemError(
                f"--forms: memory requests have physical addresses, and the program translates addresses from"
                f" 0x{retired.own or 0:x} on (satp): leave out memory and fetch"
            )

    def _taken_bytes(self) -> bytes:
        self.groups += len(self._sent)
        data = b"".join(self._sent)
        self._sent.clear()
        self.bytes += len(data)
        return data

    def summary(self) -> str:
        """One line."""
        traps = f", {self.traps} trap{'s' if self.traps > 1 else ''}" if self.traps else ""
        return (
            f"{counted(self.instructions, 'instruction')}{traps}: {counted(self.groups, 'group')},"
            f" {counted(self.bytes, 'byte')},"
            f" {8 * self.bytes / max(self.instructions, 1):.3f} bits per instruction"
        )

    def facts(self) -> dict[str, object]:
        """As `summary`, for programs."""
        return {
            "instructions": self.instructions, "traps": self.traps, "items": self.groups, "bytes": self.bytes,
            "bits-per-instruction": round(8 * self.bytes / max(self.instructions, 1), 6),
        }  # fmt: skip


def encode_tandem(
    encoder: TandemEncoderRequest, request: EncodedLog, image: Image, log: Log, shown: CommandOutput
) -> None:  # fmt: skip
    """Encode, and print a summary. Raises as `TandemEncoding`, and OutputError, CaptureError."""
    starts = _starts(request.start, image)
    if request.format not in (None, "spike"):
        raise EncodeTandemError(f"--format {request.format}: a tandem trace is encoded from Spike's commit log")
    parameters = encoder.parameters(image)
    commits = CommitLog(log, image.xlen, image, request.hart)
    chosen = forms.chosen_forms(encoder.forms, "--forms", forms.OF_ENCODER)
    encoding = TandemEncoding(chosen, request.limit, commits, parameters, starts, shown.progress)

    def capture_of(file: str, data: bytes) -> Capture:
        capture = tandem_capture(file, data, parameters, image, hart=request.hart or 0)
        return capture if request.frames is None else with_tandem_streams(capture, request.frames)

    with encode_encoding.destination(request, capture_of) as write:
        pieces = encode_encoding.written(encoding.pieces(), write)
        if request.dump:
            itemizer, wording = GroupItemizer(parameters), GroupWording(parameters)
            shown.rows(encode_encoding.items(pieces, itemizer, wording, json=shown.json))
        else:
            deque(pieces, maxlen=0)
        if not encoding.instructions and not encoding.traps:
            raise EncodeTandemError(f"{log.name}: {_nothing(starts, request.hart)}")
    notes = [commits.mismatch] if commits.mismatch else []
    if shown.json and not request.dump:
        shown.facts({"file": request.output, "format": "tandem", **encoding.facts(), "messages": notes})
    else:
        shown.say([*(f"note: {note}" for note in notes), encoding.summary()])


def _nothing(starts: object, hart: int | None) -> str:
    if starts is not None:
        return "nothing was executed at --start"
    of_hart = "" if hart is None else f" of hart {hart}"
    return f"has no commit lines{of_hart}: a tandem trace needs what `spike -l --log-commits` writes"


_FORMATS = ("--ntrace", "--etrace", "--tandem")


class EncodeError(RvtraceError):
    """Options of `rvtrace encode` that exclude each other."""


EXAMPLES = (
    ("encode --elf app.elf --pcs spike.log -o x.rvt", "a log of Spike, as a capture"),
    ("encode --elf app.elf --pcs spike.log --dump", "the messages an encoder sends"),
)


def add_arguments(parser: CommandParser) -> None:
    """Define the command line of `rvtrace encode`."""
    parser.usage = (
        "%(prog)s --elf FILE --pcs LOG [--ntrace | --etrace | --tandem]\n"
        "                      [-o FILE] [--dump] [options]"
    )
    parser.description = (
        "Encodes the execution in a log: a list of addresses, a log of Spike (-l, --log-commits or both) or"
        " of QEMU (-d exec,nochain,int). Traps are exact where the log names them: Spike's -l, QEMU's int."
    )
    _add_log(parser)
    _add_outputs(parser)
    output.add_arguments(parser, "what was written; with --dump, for each message")
    parser.add_page(ENCODER)
    parser.examples = EXAMPLES
    parser.set_defaults(run=run)
    parser.prepare = _add_options
    parser.variants = ((), ("--etrace",), ("--tandem",))


def _add_log(parser: argparse.ArgumentParser) -> None:
    """Add the log, and what of it is encoded."""
    parser.add_argument(
        "--elf", required=True, action="append", metavar="FILE",
        help="the program that ran; may be repeated for other code that ran, such as a boot loader",
    )  # fmt: skip
    parser.add_argument("--pcs", required=True, metavar="LOG", help='the log; gzip is fine; "-": standard input')
    parser.add_argument(
        "--format", choices=list(READERS), help="the log's format (default: detected from its first lines)",
    )  # fmt: skip
    parser.add_argument("--hart", type=_count_argument, metavar="N", help="the hart to encode, in a log of several")
    parser.add_argument(
        "--start", metavar="PLACE",
        help="address, symbol or FILE:FUNCTION to start at (default: the first instruction in the ELF)",
    )  # fmt: skip
    parser.add_argument("--limit", type=_at_least_one, metavar="N", help="stop after N instructions")


def _add_outputs(parser: argparse.ArgumentParser) -> None:
    """Add the format of the trace, and where it goes."""
    chosen = parser.add_mutually_exclusive_group()
    chosen.add_argument("--ntrace", action="store_true", help="encode N-Trace (the default)")
    chosen.add_argument("--etrace", action="store_true", help="encode E-Trace; its options: --etrace --help-encoder")
    chosen.add_argument(
        "--tandem", action="store_true",
        help="encode a tandem trace from a log of Spike (-l --log-commits); its options: --tandem --help-encoder",
    )  # fmt: skip
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help='file to write; .rvt: a capture, which includes the options; otherwise raw bytes; "-": standard output',
    )
    parser.add_argument("--dump", action="store_true", help="print the messages, as `rvtrace dump` does")
    parser.add_argument(
        "--frames", choices=[form.value for form in FrameForm], metavar="FORM",
        help="put the trace into frames of the CoreSight formatter: coresight, as a buffer has them; tpiu, as they"
        " leave pins",
    )  # fmt: skip
    parser.add_argument(
        "--atb-id", type=inputs.number_from(USABLE_IDS[0], USABLE_IDS[-1]), metavar="ID",
        help="the trace's ID in the frames, 1 to 111 (default 1)",
    )  # fmt: skip


def _add_options(parser: argparse.ArgumentParser, words: Sequence[str]) -> None:
    """Add the options of the encoder that *words*, the command line, choose."""
    chosen = [name for word in words for name in _FORMATS if len(word) > len("--e") and name.startswith(word)]
    if chosen == ["--tandem"]:
        add_tandem_arguments(parser)
    else:
        (etrace if chosen == ["--etrace"] else ntrace).add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Encode.

    Raises EncodeError, EncodeTandemError, BadForm, BadOptions, BadETrace, BadElf,
    ProgramError, LogError, OutputError, CaptureError, CannotCarry.
    """
    if args.dump and args.output == "-":
        raise EncodeError("--dump and -o - would both write to standard output")
    if args.json and args.output == "-":
        raise EncodeError("--json and -o - would both write to standard output")
    protect_inputs(args.output, [args.pcs, *args.elf])
    request = _request(args)
    with CommandOutput(OutputOptions.from_arguments(args), "reading the program") as shown:
        image = Image.from_elf(request.elves[0])
        inputs.add_others(image, request.elves[1:])
        encoder = request.encoder
        if isinstance(encoder, TandemEncoderRequest):
            with Log(request.log.file) as log:
                encode_tandem(encoder, request.log, image, log, shown)
        else:
            _encode(encoder.encoding(image), request, image, shown)
    return 0


def _request(args: argparse.Namespace) -> EncodeRequest:
    if args.frames is None and args.atb_id is not None:
        raise EncodeError(f"--atb-id {args.atb_id:#x}: the trace has an ATB ID in frames alone: add --frames")
    frames = args.frames and ImportedFrames(FrameForm(args.frames), {args.atb_id or USABLE_IDS[0]: None})
    log = EncodedLog(
        file=args.pcs, format=args.format, hart=args.hart, start=args.start, limit=args.limit, output=args.output,
        dump=args.dump, frames=frames,
    )  # fmt: skip
    encoder = TandemEncoderRequest if args.tandem else ETraceRequest if args.etrace else NTraceRequest
    return EncodeRequest(tuple(args.elf), log, encoder.from_arguments(args))


def _encode(encoding: Encoding, request: EncodeRequest, image: Image, shown: CommandOutput) -> None:
    """Encode the log with an encoder, and print a summary. Raises as `run`."""
    wanted = request.log
    with Log(wanted.file) as log:
        executed = Executed(
            log, image, format=wanted.format, hart=wanted.hart, starts=_starts(wanted.start, image),
            limit=wanted.limit, contexts=encoding.contexts, progress=shown.progress,
        )  # fmt: skip

        def made(file: str, data: bytes) -> Capture:
            capture = capture_of(RawImport(file, data, encoding.trace_options, image, frames=wanted.frames))
            return dataclasses.replace(capture, notes=tuple(executed.notes))

        with encode_encoding.destination(wanted, made) as write:
            pieces = encode_encoding.written(encoding.pieces(executed), write)
            if wanted.dump:
                trace_format = registry.format_of(encoding.trace_options)
                itemizer = trace_format.itemizer(encoding.trace_options, image.xlen)
                wording = trace_format.wording(encoding.trace_options)
                shown.rows(encode_encoding.items(pieces, itemizer, wording, json=shown.json))
            else:
                deque(pieces, maxlen=0)
    notes = [*encoding.notes(executed), *executed.notes]
    if shown.json and not wanted.dump:
        form = "etrace" if isinstance(request.encoder, ETraceRequest) else "ntrace"
        shown.facts({"file": wanted.output, "format": form, **encoding.facts(executed), "messages": notes})
    else:
        shown.say([*(f"note: {note}" for note in notes), encoding.summary(executed)])


def _starts(place: str | None, image: Image) -> Callable[[int], bool] | None:
    """Return a test for the address of *place*. Raises EncodeError, LocationError."""
    if place is None:
        return None
    places = frozenset(Locations(image).functions(place))
    if places:
        return places.__contains__
    try:
        address = commands.address(place)
    except commands.Unclear as error:
        raise EncodeError(f"--start {error}") from None
    except ValueError:
        raise EncodeError(f"--start {place}: neither an address nor a symbol of {image.path}") from None
    return lambda pc: pc == address


def _count_argument(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number")
    return int(text)


def _at_least_one(text: str) -> int:
    if not _count_argument(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not at least 1")
    return int(text)
