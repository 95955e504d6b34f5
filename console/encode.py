"""`rvtrace encode`: what another simulator executed, as the trace an encoder would have sent.

For people who verify trace hardware: run the program on an RTL simulation and on Spike or QEMU, encode with the options
the hardware has, and compare the bytes.
"""

import argparse
import dataclasses
import sys
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from itertools import islice
from pathlib import PurePath

from console import encode_options
from console.progress import ProgressLine
from decode.executed.log import Log
from decode.executed.reading import READERS, Executed
from decode.history import Context
from decode.image import Image
from decode.ingress import Trap
from decode.ntrace.encoder import Encoder, EncoderOptions
from decode.ntrace.layout import Evcode, Sync
from session import capture as capture_file
from session.importing import Raw, capture_of
from support.errors import RvtraceError
from support.output import replacing
from views import dump

_BATCH = 4096  # blocks and traps
_IDLE = 0xFF


class EncodeError(RvtraceError):
    """Options of `rvtrace encode` that do not fit together."""


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> argparse.ArgumentParser:
    """The command line of `rvtrace encode`."""
    parser = subparsers.add_parser(
        "encode",
        help="make the N-Trace of what Spike, QEMU or another simulator executed",
        usage="%(prog)s --elf FILE --pcs LOG [--ntrace] [-o FILE] [--dump]\n"
        "                      [options]",
        description="Encodes the execution in a log: a list of addresses, a log of Spike (-l, --log-commits or both) or"
        " of QEMU (-d exec,nochain,int). Traps are exact where the log names them: Spike's -l, QEMU's int.",
    )
    parser.add_argument("--elf", required=True, metavar="FILE", help="the program that ran")
    parser.add_argument("--pcs", required=True, metavar="LOG", help='the log; gzip is fine; "-": standard input')
    parser.add_argument("--format", choices=list(READERS), help="of the log (default: as its first lines have it)")
    parser.add_argument("--hart", type=_count, metavar="N", help="which one, in a log of several")
    parser.add_argument(
        "--start", metavar="PLACE", help="address or symbol to start at (default: the first instruction in the ELF)"
    )
    parser.add_argument("--limit", type=_at_least_one, metavar="N", help="stop after N instructions")
    parser.add_argument("--ntrace", action="store_true", help="encode N-Trace (the default, there is no other yet)")
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help='.rvt: a capture, which knows its options; else raw bytes; "-": standard output',
    )
    parser.add_argument("--dump", action="store_true", help="print the messages, as `rvtrace dump` does")
    parser.add_argument(
        "--sync", type=encode_options.one_of(Sync), default=Sync.TRACE_ENABLE, metavar="REASON",
        help=f"SYNC of the first message: {', '.join(encode_options.named(Sync))}, or its value (default trace-enable)",
    )  # fmt: skip
    parser.add_argument(
        "--evcode", type=encode_options.one_of(Evcode), default=Evcode.TRACE_DISABLED, metavar="REASON",
        help=f"EVCODE of the last message: {', '.join(encode_options.named(Evcode))} (default trace-disabled)",
    )  # fmt: skip
    encode_options.add_arguments(parser)
    parser.set_defaults(run=run)
    return parser


def run(args: argparse.Namespace) -> int:
    """Encode. Raises EncodeError, BadOptions, BadElf, LogError, OutputError, CaptureError."""
    if args.dump and args.output == "-":
        raise EncodeError("--dump and -o - would both write to standard output")
    image = Image.from_elf(args.elf)
    options = encode_options.options(args, image.xlen)
    with Log(args.pcs) as log, ProgressLine(not args.dump) as progress:
        executed = Executed(
            log, image, format=args.format, hart=args.hart, starts=_starts(args.start, image), limit=args.limit,
            contexts=options.context, progress=progress,
        )  # fmt: skip
        encoding = _Encoding(executed, options, args.sync, args.evcode)
        with _destination(args, executed, image, options) as write:
            _pass_on(encoding.pieces(), write, options if args.dump else None)
    for note in (*encode_options.without_effect(args, options), *encoding.notes(), *executed.notes):
        print(f"note: {note}", file=sys.stderr)
    print(encoding.summary(), file=sys.stderr)
    return 0


@contextmanager
def _destination(
    args: argparse.Namespace, executed: Executed, image: Image, options: EncoderOptions
) -> Iterator[Callable[[bytes], object]]:
    """What takes the trace: the file it goes to, if any, which is complete when the context ends."""
    if args.output is None:
        yield lambda data: None
    elif not args.output.endswith(".rvt"):
        with replacing(args.output) as file:
            yield file.write
    else:
        data = bytearray()
        yield data.extend
        capture = capture_of(Raw(args.output, bytes(data), encode_options.for_decoder(options), image))
        target = f"no target (encoded from {PurePath(args.pcs).name})"
        capture_file.save(dataclasses.replace(capture, target=target, notes=tuple(executed.notes)), args.output)


def _pass_on(pieces: Iterator[bytes], write: Callable[[bytes], object], shown: EncoderOptions | None) -> None:
    """Writes the pieces of a trace; *shown*: and prints the messages in them, which were made with these options."""

    def written() -> Iterator[bytes]:
        for piece in pieces:
            write(piece)
            yield piece

    if shown is None:
        deque(written(), maxlen=0)
    else:
        for _, _, line in dump.lines(written(), encode_options.for_decoder(shown), shown.xlen):
            print(line)


class _Encoding:
    """A log on its way through the encoder, and what there was in it."""

    def __init__(self, executed: Executed, options: EncoderOptions, sync: Sync, evcode: Evcode) -> None:
        self._executed, self._options, self._sync, self._evcode = executed, options, sync, evcode
        self._traps = self._contexts = self._messages = self._bytes = 0

    def pieces(self) -> Iterator[bytes]:
        """The trace. Raises LogError."""
        messages: list[bytes] = []
        encoder = Encoder(self._options, messages.append)
        encoder.start(self._sync)
        items = self._executed.items()
        while batch := list(islice(items, _BATCH)):
            self._traps += sum(isinstance(item, Trap) for item in batch)
            self._contexts += sum(isinstance(item, Context) for item in batch)
            encoder.retire(batch)
            yield self._counted(messages)
            messages.clear()
        encoder.stop(self._evcode)
        yield self._counted(messages)

    def _counted(self, messages: list[bytes]) -> bytes:
        self._messages += sum(message[0] != _IDLE for message in messages)
        data = b"".join(messages)
        self._bytes += len(data)
        return data

    def notes(self) -> list[str]:
        """What was asked for and is not there."""
        if not self._options.context or self._contexts:
            return []
        return [f"no Ownership messages: no privilege modes are in this log (format {self._executed.format})"]

    def summary(self) -> str:
        """One line."""
        instructions = self._executed.instructions
        traps = f", {self._traps} traps" if self._traps else ""
        return (
            f"{instructions} instructions{traps}: {self._messages} messages, {self._bytes} bytes,"
            f" {8 * self._bytes / max(instructions, 1):.3f} bits per instruction"
        )


def _starts(place: str | None, image: Image) -> Callable[[int], bool] | None:
    """Whether an address is *place*. Raises EncodeError."""
    if place is None:
        return None
    try:
        address = int(place, 0)
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
