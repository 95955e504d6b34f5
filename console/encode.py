"""`rvtrace encode`: what another simulator executed, as the trace an encoder would have sent.

For people who verify trace hardware: run the program on an RTL simulation and on Spike or QEMU, encode with the options
the hardware has, and compare the bytes.
"""

import argparse
import dataclasses
from collections import deque
from collections.abc import Callable, Sequence
from functools import cache

from rvtrace_gdb.console import addresses, encode_etrace, encode_ntrace, encode_output, encode_tandem, output, programs
from rvtrace_gdb.console.commands import CommandParser
from rvtrace_gdb.console.encoding import Encoding
from rvtrace_gdb.console.output import Output
from rvtrace_gdb.decode.executed.log import Log
from rvtrace_gdb.decode.executed.reading import READERS, Executed
from rvtrace_gdb.decode.image import Image
from rvtrace_gdb.session import formats
from rvtrace_gdb.session.captured import Capture
from rvtrace_gdb.session.importing import Raw, capture_of
from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.support.output import keep

_FORMATS = ("--ntrace", "--etrace", "--tandem")


class EncodeError(RvtraceError):
    """Options of `rvtrace encode` that do not fit together."""


def add_arguments(parser: CommandParser) -> None:
    """The command line of `rvtrace encode`."""
    parser.usage = (
        "%(prog)s --elf FILE --pcs LOG [--ntrace | --etrace | --tandem]\n"
        "                      [-o FILE] [--dump] [options]"
    )
    parser.description = (
        "Encodes the execution in a log: a list of addresses, a log of Spike (-l, --log-commits or both) or"
        " of QEMU (-d exec,nochain,int). Traps are exact where the log names them: Spike's -l, QEMU's int."
    )
    parser.add_argument(
        "--elf", required=True, action="append", metavar="FILE",
        help="the program that ran; more than one: others that are there too, such as a boot loader",
    )  # fmt: skip
    parser.add_argument("--pcs", required=True, metavar="LOG", help='the log; gzip is fine; "-": standard input')
    parser.add_argument("--format", choices=list(READERS), help="of the log (default: as its first lines have it)")
    parser.add_argument("--hart", type=_count, metavar="N", help="which one, in a log of several")
    parser.add_argument(
        "--start", metavar="PLACE", help="address or symbol to start at (default: the first instruction in the ELF)"
    )
    parser.add_argument("--limit", type=_at_least_one, metavar="N", help="stop after N instructions")
    chosen = parser.add_mutually_exclusive_group()
    chosen.add_argument("--ntrace", action="store_true", help="encode N-Trace (the default)")
    chosen.add_argument("--etrace", action="store_true", help="encode E-Trace; its options: --etrace --help")
    chosen.add_argument(
        "--tandem", action="store_true",
        help="make a tandem trace of a log of Spike (-l --log-commits); its options: --tandem --help",
    )  # fmt: skip
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help='.rvt: a capture, which knows its options; else raw bytes; "-": standard output',
    )
    parser.add_argument("--dump", action="store_true", help="print the messages, as `rvtrace dump` does")
    output.add_arguments(parser, "what was written; with --dump, for each message")
    parser.set_defaults(run=run)
    parser.prepare = _add_options


def _add_options(parser: argparse.ArgumentParser, words: Sequence[str]) -> None:
    """The options of the encoder that *words*, the command line, choose."""
    chosen = [name for word in words for name in _FORMATS if len(word) > len("--e") and name.startswith(word)]
    if chosen == ["--tandem"]:
        encode_tandem.add_arguments(parser)
    else:
        (encode_etrace if chosen == ["--etrace"] else encode_ntrace).add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Encode.

    Raises EncodeError, EncodeTandemError, BadForm, BadOptions, BadETrace, BadElf,
    ProgramError, LogError, OutputError, CaptureError, CannotCarry.
    """
    if args.dump and args.output == "-":
        raise EncodeError("--dump and -o - would both write to standard output")
    if args.json and args.output == "-":
        raise EncodeError("--json and -o - would both write to standard output")
    keep(args.output, [args.pcs, *args.elf])
    with Output(args, "reading the program") as shown:
        image = Image.from_elf(args.elf[0])
        programs.add_others(image, args.elf[1:])
        if args.tandem:
            with Log(args.pcs) as log:
                encode_tandem.encode(args, image, _starts(args.start, image), log, shown)
            return 0
        encoding = (encode_etrace if args.etrace else encode_ntrace).encoding(args, image)
        with Log(args.pcs) as log:
            executed = Executed(
                log, image, format=args.format, hart=args.hart, starts=_starts(args.start, image), limit=args.limit,
                contexts=encoding.contexts, progress=shown.progress,
            )  # fmt: skip

            def made(data: bytes) -> Capture:
                capture = capture_of(Raw(args.output, data, encoding.how, image))
                return dataclasses.replace(capture, notes=tuple(executed.notes))

            with encode_output.destination(args, made) as write:
                pieces = encode_output.written(encoding.pieces(executed), write)
                if args.dump:
                    itemizer, wording = formats.itemizer(encoding.how, image.xlen), formats.wording(encoding.how)
                    shown.rows(encode_output.items(pieces, itemizer, wording, json=shown.json))
                else:
                    deque(pieces, maxlen=0)
        notes = [*encoding.notes(executed), *executed.notes]
        if shown.json and not args.dump:
            shown.facts(_facts(args, encoding, executed, notes))
        else:
            shown.say([*(f"note: {note}" for note in notes), encoding.summary(executed)])
    return 0


def _facts(args: argparse.Namespace, encoding: Encoding, executed: Executed, notes: Sequence[str]) -> dict[str, object]:
    form = "etrace" if args.etrace else "ntrace"
    return {"file": args.output, "format": form, **encoding.facts(executed), "messages": notes}


def _starts(place: str | None, image: Image) -> Callable[[int], bool] | None:
    """Whether an address is *place*. Raises EncodeError."""
    if place is None:
        return None
    try:
        address = addresses.address(place)
    except addresses.Unclear as error:
        raise EncodeError(f"--start {error}") from None
    except ValueError:
        if not any(symbol.name == place for elf, _ in image.elves for part in elf.sections for symbol in part.symbols):
            raise EncodeError(f"--start {place}: neither an address nor a symbol of {image.path}") from None
        return cache(lambda pc: image.symbol(pc) == (place, 0))
    return lambda pc: pc == address


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number")
    return int(text)


def _at_least_one(text: str) -> int:
    if not _count(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not at least 1")
    return int(text)
