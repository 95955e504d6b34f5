"""Raw N-Trace bytes on the command line: how they were made, and the programs that ran.

A capture knows these things; raw bytes (of an RTL simulation, of another tool) do not.
"""

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path, PurePath

from decode.elf import read_elf
from decode.image import Image
from decode.linux import Files, add_kernel_pages, process_image
from decode.maps import Mapping, read_maps
from decode.ntrace.dialect import DIALECTS, RATIFIED
from decode.ntrace.layout import MAX_SRC_BITS
from decode.ntrace.options import ImplicitReturn, Options
from session import capture as capture_file
from session.captured import Capture, CapturedImage
from session.importing import Raw, capture_of, captured_image
from support.errors import RvtraceError

_RETURNS = {
    "off": ImplicitReturn.OFF,
    "counter": ImplicitReturn.COUNTER,
    "partial": ImplicitReturn.PARTIAL_STACK,
    "full": ImplicitReturn.FULL_STACK,
}
_MAX_SRC = (1 << MAX_SRC_BITS) - 1
_PIECE = 1 << 16
_NO_TRACES = {
    b"PK\x03\x04": "is a capture (a ZIP file), not raw bytes: it needs no --ntrace and no `rvtrace import`",
    b"\x7fELF": "is an ELF file, not a trace",
}
"""How files begin that are not raw bytes."""


class RawError(RvtraceError):
    """Options for raw bytes that do not fit together, or bytes that cannot be read."""


def add_arguments(parser: argparse.ArgumentParser, *, capture: bool = True, program: bool = True) -> None:
    """The options. *capture*: the file may be a capture, too. *program*: the command knows the program that ran."""
    when = "With --ntrace: how" if capture else "How"
    group = parser.add_argument_group(
        "raw N-Trace", f"{when} the bytes were made. In parentheses: the registers of the trace encoder that tell."
    )
    if capture:
        group.add_argument("--ntrace", action="store_true", help="the file is raw N-Trace bytes, not a capture")
    group.add_argument(
        "--xlen", type=int, choices=(32, 64), help=f"of the hart (default: {'of the ELF' if program else '64'})"
    )
    group.add_argument(
        "--src-bits", type=number_from(0, MAX_SRC_BITS), metavar="N", help="width of SRC (trTeSrcBits), default 0"
    )
    group.add_argument("--src", type=number_from(0, _MAX_SRC), metavar="N", help="only messages of this SRC")
    group.add_argument("--timestamps", action="store_true", help="messages end with TSTAMP (trTsEnable)")
    group.add_argument(
        "--timestamp-bits", type=number_from(0, 64), metavar="N",
        help="width of the time counter (trTsWidth), 0: it does not wrap (default)",
    )  # fmt: skip
    group.add_argument("--btm", action="store_true", help="Branch Trace Messaging (trTeInstMode 3), not HTM (6)")
    group.add_argument(
        "--implicit-return", choices=list(_RETURNS),
        help="returns that can be told are not reported (trTeInstEnImplicitReturn, trTeInstImplicitReturnMode; all but"
        " off are read alike)",
    )  # fmt: skip
    group.add_argument(
        "--sequential-jump", action="store_true",
        help="nor are jumps whose target the instruction before sets (trTeInstEnSequentialJump)",
    )  # fmt: skip
    group.add_argument(
        "--all-jumps", action="store_true", help="direct jumps and calls are reported, too (trTeInstEnAllJumps)"
    )
    group.add_argument(
        "--extend-addr-msb", action="store_true",
        help="high bits of addresses that are all alike were left out (trTeInstExtendAddrMSB)",
    )  # fmt: skip
    group.add_argument(
        "--address-bits", type=number_from(1, 64), metavar="N", help="addresses were sent with so many bits only"
    )
    group.add_argument(
        "--dialect", choices=sorted(DIALECTS), default=None,
        help="generation of the encoder: 1.0 (default), rc7, or sifive for what came before the standard",
    )  # fmt: skip
    group.add_argument("--wrapped", action="store_true", help="from a ring buffer that wrapped: starts anywhere")


def add_program_arguments(parser: argparse.ArgumentParser, *, capture: bool = True) -> None:
    """Which programs ran: one, or the kernel and processes of Linux."""
    default = " (default: the capture's)" if capture else ""
    parser.add_argument(
        "--elf", action="append", default=[], metavar="FILE",
        help=f"the program that ran{default}; more than one: files the --maps name",
    )  # fmt: skip
    group = parser.add_argument_group("Linux, for raw N-Trace" if capture else "Linux")
    group.add_argument(
        "--maps", action="append", default=[], metavar="[SCONTEXT=]FILE",
        help="a copy of /proc/PID/maps, of the process that runs in this context (may be repeated)",
    )  # fmt: skip
    group.add_argument("--vdso", metavar="FILE", help="what [vdso] in the maps is")
    group.add_argument("--sysroot", metavar="DIR", help="the target's root file system, for the other files")
    group.add_argument("--kernel-pages", metavar="DIR", help="pages of the kernel, in files kmem.0xADDRESS")


def is_raw(args: argparse.Namespace, also_for_captures: Sequence[str] = ()) -> bool:
    """Whether the file is raw bytes, not a capture. Raises `RawError` for options a capture has no use for."""
    if args.ntrace:
        return True
    only_raw = [name for name in _ONLY_RAW if name not in also_for_captures]
    given = [f"--{name.replace('_', '-')}" for name in only_raw if getattr(args, name, None) not in (None, False, [])]
    if given:
        raise RawError(f"{given[0]} is for raw bytes: add --ntrace (a capture knows how it was made)")
    return False


_ONLY_RAW = (
    "xlen", "src_bits", "src", "timestamps", "timestamp_bits", "btm", "implicit_return", "sequential_jump", "all_jumps",
    "extend_addr_msb", "address_bits", "dialect", "wrapped", "maps", "vdso", "sysroot", "kernel_pages",
)  # fmt: skip


def options(args: argparse.Namespace) -> Options:
    """How the bytes were made. Raises `RawError`."""
    if args.src is not None and args.src >> (args.src_bits or 0):
        raise RawError(f"--src {args.src} does not fit SRC: say with --src-bits how wide it is")
    if args.timestamp_bits is not None and not args.timestamps:
        raise RawError(f"--timestamp-bits {args.timestamp_bits}: there are none without --timestamps")
    return Options(
        src_bits=args.src_bits or 0,
        src_id=args.src,
        timestamps=args.timestamps,
        timestamp_bits=args.timestamp_bits or 0,
        btm=args.btm,
        implicit_return=_RETURNS.get(args.implicit_return, ImplicitReturn.OFF),
        sequential_jump=args.sequential_jump,
        all_jumps=args.all_jumps,
        extend_addr_msb=args.extend_addr_msb,
        address_bits=args.address_bits,
        dialect=DIALECTS.get(args.dialect, RATIFIED),
    )


def load(file: str) -> Capture:
    """The capture in *file*, or on standard input for "-". Raises CaptureError."""
    return capture_file.parse(sys.stdin.buffer.read(), title(file)) if file == "-" else capture_file.load(file)


def capture(args: argparse.Namespace, file: str) -> Capture:
    """The raw bytes in *file* as a capture. Raises `RawError`, BadElf, BadMaps, BadMemory."""
    how = options(args)
    image, images = _programs(args)
    if args.xlen not in (None, image.xlen):
        raise RawError(f"--xlen {args.xlen}: {image.path} is an RV{image.xlen} program")
    return capture_of(Raw(title(file), b"".join(pieces(file)), how, image, images, args.wrapped))


def pieces(file: str) -> Iterator[bytes]:
    """The bytes of *file*, or of standard input for "-". Raises `RawError`, also for what cannot be a trace."""
    name = title(file)
    first = True
    try:
        with open(0 if file == "-" else file, "rb", closefd=file != "-") as source:
            while data := source.read1(_PIECE):
                if first:
                    _check_beginning(data, name)
                first = False
                yield data
    except OSError as error:
        raise RawError(f"{name}: cannot be read: {error.strerror}") from None
    if first:
        raise RawError(f"{name}: is empty")


def title(file: str) -> str:
    """What a file is called in messages."""
    return "standard input" if file == "-" else file


def _check_beginning(data: bytes, name: str) -> None:
    for beginning, what in _NO_TRACES.items():
        if data.startswith(beginning):
            raise RawError(f"{name}: {what}")


def _programs(args: argparse.Namespace) -> tuple[Image, tuple[CapturedImage, ...]]:
    """What is there in all contexts, and what in some: an ELF that --maps name is a file of their processes."""
    for option in ("vdso", "sysroot"):
        if getattr(args, option) is not None and not args.maps:
            raise RawError(f"--{option} {getattr(args, option)}: there is nothing to look for without --maps")
    maps = [_maps(text) for text in args.maps]
    named = {PurePath(mapping.name).name for _, _, mappings in maps for mapping in mappings}
    elves = [os.path.abspath(elf) for elf in args.elf]
    mapped = [elf for elf in elves if PurePath(elf).name in named]
    given: dict[str, str | Path] = {PurePath(elf).name: elf for elf in mapped}
    if args.vdso is not None:
        given["[vdso]"] = os.path.abspath(args.vdso)
    image = _base([elf for elf in elves if elf not in mapped], mapped, args)
    files = Files(given, args.sysroot)
    images = tuple(
        captured_image(process_image(mappings, files, image.xlen), name, scontext=scontext)
        for scontext, name, mappings in maps
    )
    return image, images


def _base(elves: Sequence[str], mapped: Sequence[str], args: argparse.Namespace) -> Image:
    if len(elves) > 1:
        raise RawError(f"--elf {elves[1]}: no --maps names it, and there is a program already ({elves[0]})")
    if elves:
        image = Image.from_elf(elves[0])
    elif args.maps or args.kernel_pages:
        image = Image(args.xlen or (read_elf(mapped[0]).xlen if mapped else 64))
    else:
        raise RawError("which program ran? Give its ELF (--elf FILE)")
    if args.kernel_pages is not None:
        add_kernel_pages(image, args.kernel_pages)
    return image


def _maps(text: str) -> tuple[int | None, str, list[Mapping]]:
    """(scontext, name, mappings) of a --maps."""
    context, equals, file = text.partition("=")
    if not equals:
        return None, PurePath(text).name, read_maps(text)
    try:
        return int(context, 0), PurePath(file).name, read_maps(file)
    except ValueError:
        raise RawError(f"--maps {text}: {context} is not a number, the value of scontext is needed") from None


def number_from(least: int, most: int) -> Callable[[str], int]:
    """An argparse type: a number from *least* to *most*."""

    def number(text: str) -> int:
        try:
            value = int(text, 0)
        except ValueError:
            value = -1
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(f"{text!r} is not a number from {least} to {most}")
        return value

    return number
