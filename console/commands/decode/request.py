"""What the command line of `rvtrace decode` asks for, as a typed value. Nothing below knows the parsed arguments."""

import argparse
from collections.abc import Mapping
from dataclasses import dataclass, field

from rvtrace_gdb.console.options import raw
from rvtrace_gdb.console.options.inputs import RawError
from rvtrace_gdb.console.options.request import RequestedTrace
from rvtrace_gdb.console.options.threads import threads_asked_for
from rvtrace_gdb.console.output import OutputOptions
from rvtrace_gdb.session.tasks.task_system import AUTO
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
    """*modifiers* and *numbers* are what RANGE says. *times*: from which to which time, None: at any. *hart*: None:
    all. *events*: events instead of instructions. *stream*: the bytes of the trace arrive; None: they are there.
    *threads*: by `PARTS`, what is shown alone; *rtos*: the system that tasks are of.
    """

    trace: RequestedTrace
    output: OutputOptions
    modifiers: Modifiers
    numbers: str
    hart: int | None
    events: bool
    check: bool
    stream: StreamOptions | None
    times: tuple[int, int] | None = None
    threads: Mapping[str, str] = field(default_factory=dict)
    rtos: str = AUTO

    @property
    def is_part(self) -> bool:
        """Whether a part of the history is asked for, of what was not checked; which task ran where is found in all."""
        return bool(self.numbers or self.times) and not self.check and not self.threads

    @property
    def last(self) -> int | None:
        """How many rows at the end are asked for; None: RANGE says something else."""
        return int(self.numbers[1:]) if self.numbers[:1] == "-" and is_number(self.numbers[1:]) else None


def decode_request(args: argparse.Namespace) -> DecodeRequest:
    """Return the request. Raises DecodeError, FollowError, ModifierError, and as `raw.trace_request`."""
    modifiers, numbers = Modifiers.split(" ".join(args.range))
    if args.events and args.range:
        raise DecodeError(f"{' '.join(args.range)}: --events lists all of them")
    times = None if args.time is None else _times_argument(args.time)
    if times is not None and (args.events or numbers or args.follow):
        raise DecodeError(f"--time {args.time}: neither with RANGE, nor with --events or --follow")
    hart, threads = _hart_argument(args.hart), threads_asked_for(args)
    for name, it in threads.items():
        if args.events or args.follow:
            other = "--follow" if args.follow else "--events: `rvtrace events` has it, too"
            raise DecodeError(f"--{name} {it}: not with {other}")
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
    return DecodeRequest(
        trace, options, modifiers, numbers, hart, args.events, args.check, stream, times, threads, args.rtos
    )


def _check_unused(args: argparse.Namespace) -> None:
    """Raise `FollowError` for options that need --follow."""
    for name in ("baud", "output"):
        if getattr(args, name) not in (None, False):
            raise FollowError(f"{'-o' if name == 'output' else '--baud'} is for bytes that arrive: add --follow")


def _times_argument(text: str) -> tuple[int, int]:
    first, comma, last = text.partition(",")
    if not is_number(first) or (comma and not is_number(last)) or len(text) > 64:
        raise DecodeError(f"--time {text}: give a time in ticks, or two: FIRST,LAST")
    times = int(first), int(last if comma else first)
    if times[1] < times[0]:
        raise DecodeError(f"--time {text}: the second time is earlier than the first one")
    return times


def _hart_argument(text: str | None) -> int | None:
    if text is None or text == "all":
        return None
    if not is_number(text):
        raise DecodeError(f"--hart {text}: give the number of a hart, or all")
    return int(text)
