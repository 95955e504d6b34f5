"""Where the trace that `rvtrace encode` makes goes: a file of raw bytes, a capture, the listing of `--dump`."""

import argparse
import dataclasses
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import PurePath

from rvtrace_gdb.session import capture as capture_file
from rvtrace_gdb.session.captured import Capture
from rvtrace_gdb.support.output import replacing
from rvtrace_gdb.views import dump, json_rows


@contextmanager
def destination(
    args: argparse.Namespace, capture_of: Callable[[bytes], Capture]
) -> Iterator[Callable[[bytes], object]]:  # fmt: skip
    """What takes the trace: the file it goes to, if any, which is complete when the context ends."""
    if args.output is None:
        yield lambda data: None
    elif not args.output.endswith(".rvt"):
        with replacing(args.output) as file:
            yield file.write
    else:
        data = bytearray()
        yield data.extend
        target = f"no target (encoded from {PurePath(args.pcs).name})"
        capture_file.save(dataclasses.replace(capture_of(bytes(data)), target=target), args.output)


def written(pieces: Iterator[bytes], write: Callable[[bytes], object]) -> Iterator[bytes]:
    """The pieces of a trace, as they are written."""
    for piece in pieces:
        write(piece)
        yield piece


def items(
    pieces: Iterator[bytes], itemizer: dump.TakesApart[dump.One], wording: dump.Words[dump.One], *, json: bool
) -> Iterator[str]:
    """What is in the pieces of a trace, as `rvtrace dump` shows it."""
    for number, item, line in dump.lines_of(pieces, itemizer, wording):
        yield json_rows.message("", number, item.offset, line.partition(" ")[2]) if json else line
