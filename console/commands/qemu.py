"""`rvtrace qemu`: run a program on QEMU, which records its execution for `trace start` in gdb, or in a capture."""

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from rvtrace_gdb.console.commands import CommandParser
from rvtrace_gdb.console.output import OutputOptions
from rvtrace_gdb.console.progress import ProgressLine
from rvtrace_gdb.decode.program.elf import machine
from rvtrace_gdb.session.sources.qemu.run import DEFAULT_BYTES, QemuRun, run_qemu
from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.support.text import printable


class QemuUsage(RvtraceError):
    """Options of `rvtrace qemu` that exclude each other, or are missing."""


def add_arguments(parser: CommandParser) -> None:
    """Define the command line of `rvtrace qemu`."""
    parser.usage = "%(prog)s [options] -- QEMU-ARGUMENTS"
    parser.description = (
        "Runs qemu-system-riscv32 or -riscv64 with the arguments after --, which may begin with the"
        " program's name, and a recorder: `trace start` in a gdb that is connected to it works as on a chip with a"
        " trace encoder. Ends with QEMU, and with its exit status."
    )
    parser.add_argument("--write-target", metavar="FILE", help="write the target description (rvtrace.toml) to FILE")
    parser.add_argument(
        "--program", metavar="QEMU",
        help="the QEMU program (default: the one for the ELF of -kernel or -bios, from $PATH)",
    )  # fmt: skip
    parser.add_argument(
        "--source", choices=("auto", "plugin", "log"), default="auto",
        help="the recorder's source: a plugin (needs gcc once, and QEMU 9.1) or QEMU's log, which is far slower"
        " (default: the plugin if it can be used)",
    )  # fmt: skip
    parser.add_argument(
        "--ring", type=_size_argument, default=DEFAULT_BYTES, metavar="BYTES",
        help="size of the ring for recorded blocks that are not read yet, for each hart: a power of two; four bytes"
        " per block (default 4M)",
    )  # fmt: skip
    parser.add_argument(
        "-o", "--output", metavar="FILE",
        help="record the whole run into a capture (.rvt); QEMU waits for the encoder",
    )  # fmt: skip
    parser.add_argument(
        "--elf", metavar="FILE", help="with -o: the program that runs (default: that of QEMU's -kernel)",
    )  # fmt: skip
    parser.add_argument("--etrace", action="store_true", help="with -o: encode E-Trace, not N-Trace")
    parser.add_argument("--context", action="store_true", help="with -o: also report privilege modes (N-Trace)")
    parser.add_argument("--quiet", action="store_true", help="print only problems")
    parser.add_argument(
        "--json", action="store_true",
        help="a JSON object on standard output when QEMU has started, and another for the file of -o; nothing else but"
        " errors",
    )  # fmt: skip
    parser.set_defaults(run=run, arguments=[])
    parser.prepare = _keep_arguments


def _keep_arguments(parser: argparse.ArgumentParser, words: Sequence[str]) -> None:
    """Take all words after -- for QEMU's arguments."""
    if "--" in words and isinstance(words, list):
        at = words.index("--")
        parser.set_defaults(arguments=words[at + 1 :])
        del words[at:]


def run(args: argparse.Namespace) -> int:
    """Run QEMU to its end; returns its status. Raises QemuError, QemuUsage, BadElf, CaptureError, DescriptionError."""
    kernel = _kernel(args.arguments or ())
    if args.output is not None and args.elf is None and kernel is None:
        raise QemuUsage("-o needs --elf (the program whose instructions are encoded), because no -kernel names it")
    elf = args.elf if args.elf is not None or _is_plain(kernel) else kernel
    if not args.arguments:
        raise QemuUsage("give QEMU's arguments after --, as in `rvtrace qemu -- -M virt -kernel app.elf -S -s`")

    options: dict[str, object] = {"context": args.context}
    if args.etrace:
        options["format"] = "etrace"
    request = QemuRun(
        arguments=tuple(args.arguments), program=args.program, source=args.source, ring_bytes=args.ring,
        write_target=args.write_target, output=args.output, elf=elf, options=options,
    )  # fmt: skip
    return _run(request, OutputOptions.from_arguments(args))


def _run(request: QemuRun, shown: OutputOptions) -> int:
    with ProgressLine(_shows_progress(request, shown)) as progress:

        def say(line: str) -> None:
            if not shown.quiet and not shown.json:
                progress.clear()
                print(f"rvtrace qemu: {printable(line)}", file=sys.stderr, flush=True)

        def tell(what: Mapping[str, object]) -> None:
            if shown.json:
                print(json.dumps(what), flush=True)

        return run_qemu(request, os.environ, say, progress, tell)


def _kernel(arguments: Sequence[str]) -> str | None:
    """Return the file that QEMU's -kernel names; the last one counts, as for QEMU."""
    named = [value for word, value in pairwise(arguments) if word in ("-kernel", "--kernel")]
    return named[-1] if named else None


def _is_plain(file: str | None) -> bool:
    """Return whether a file is there and is no ELF file: an Image of Linux, whose code the recorder has."""
    return file is not None and Path(file).is_file() and machine(file) is None


def _shows_progress(request: QemuRun, shown: OutputOptions) -> bool:
    """Whether to show progress: when a capture is written, unless the program uses the terminal."""
    taken = any(word.lstrip("-") == "nographic" or "stdio" in word for word in request.arguments)
    return request.output is not None and not (shown.quiet or shown.json or taken)


def _size_argument(text: str) -> int:
    units = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
    number, unit = (text[:-1], units[text[-1].upper()]) if text[-1:].upper() in units else (text, 1)
    try:
        size = int(number, 0) * unit
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of bytes") from None
    if size & size - 1 or not 1 << 14 <= size <= 1 << 34:
        raise argparse.ArgumentTypeError(f"{text} is not a power of two from 16K to 16G")
    return size
