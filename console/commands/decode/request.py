"""What the command line of `rvtrace decode` asks for, as a typed value. Nothing below knows the parsed arguments."""

import argparse
from dataclasses import dataclass

from rvtrace_gdb.console.options import raw
from rvtrace_gdb.console.options.inputs import RawError
from rvtrace_gdb.console.options.request import RequestedTrace
from rvtrace_gdb.console.output import OutputOptions
from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.support.files import protect_inputs
from rvtrace_gdb.support.text import is_number
from rvtrace_gdb.views.text_rows import Modifiers


class DecodeError(RvtraceError):
    """Arguments of `rvtrace decode` that exclude each other."""


class FollowError(RvtraceError):
    """Arguments of `rvtrace decode --follow` that exclude each other, or a stream that is not a trace."""


@dataclass(frozen=True)
class StreamOptions:
    """Options for bytes that arrive: the speed of a serial device, and the capture in which they are saved."""

    baud: int | None
    output: str | None


@dataclass(frozen=True)
class DecodeRequest:
    """*modifiers* and *numbers* are what RANGE says. *hart*: None: all. *events*: events instead of instructions.
    *stream*: the bytes of the trace arrive; None: they are there.
    """

    trace: RequestedTrace
    output: OutputOptions
    modifiers: Modifiers
    numbers: str
    hart: int | None
    events: bool
    check: bool
    stream: StreamOptions | None


def decode_request(args: argparse.Namespace) -> DecodeRequest:
    """Return the request. Raises DecodeError, FollowError, ModifierError, and as `raw.trace_request`."""
    modifiers, numbers = Modifiers.split(" ".join(args.range))
    if args.events and args.range:
        raise DecodeError(f"{' '.join(args.range)}: --events lists all of them")
    hart = _hart_argument(args.hart)
    if args.follow and args.check:
        raise DecodeError("--check needs the whole trace: not with --follow")
    if args.follow and numbers:
        raise FollowError(f"{numbers}: --follow lists everything, without a range")
    if args.follow:
        protect_inputs(args.output, [args.capture, args.settings, *args.elf])
    else:
        _check_unused(args)
    trace = raw.trace_request(args, args.capture, options_first=args.follow)
    if args.follow and trace.raw is None:
        raise RawError(
            "--follow: how were the bytes encoded? Give --ntrace, --etrace or --tandem, or --settings FILE.rvt"
        )
    stream = StreamOptions(args.baud, args.output) if args.follow else None
    options = OutputOptions.from_arguments(args)
    return DecodeRequest(trace, options, modifiers, numbers, hart, args.events, args.check, stream)


def _check_unused(args: argparse.Namespace) -> None:
    """Raise `FollowError` for options that need --follow."""
    for name in ("baud", "output"):
        if getattr(args, name) not in (None, False):
            raise FollowError(f"{'-o' if name == 'output' else '--baud'} is for bytes that arrive: add --follow")


def _hart_argument(text: str | None) -> int | None:
    if text is None or text == "all":
        return None
    if not is_number(text):
        raise DecodeError(f"--hart {text}: give the number of a hart, or all")
    return int(text)
