"""How bytes that arrive were made, from the command line: what a capture of them will say, and who may speak."""

import argparse
from collections.abc import Callable, Sequence
from typing import NamedTuple

from rvtrace_gdb.console import programs, raw, tandem_options
from rvtrace_gdb.decode.image import Image
from rvtrace_gdb.session import following, formats
from rvtrace_gdb.session.captured import Capture, CapturedImage
from rvtrace_gdb.session.following import Source
from rvtrace_gdb.session.formats import How
from rvtrace_gdb.session.importing import Raw, capture_of, with_settings
from rvtrace_gdb.session.importing_tandem import tandem_capture


class Made(NamedTuple):
    """*capture*: of no bytes. *finished*: the capture of these, in which these sources were found."""

    capture: Capture
    source: Source
    finished: Callable[[bytes, Sequence[int]], Capture]


def made(args: argparse.Namespace) -> Made:
    """Raises as `raw.how` and `programs.of_arguments`, and `RawError` where nothing says how."""
    if not raw.is_raw(args):
        raise raw.RawError(
            "--follow: how were the bytes made? Give --ntrace, --etrace or --tandem, or --settings FILE.rvt"
        )
    if args.tandem:
        return _of_tandem(args)
    return _of_settings(args) if args.settings is not None else _of_options(args)


def _of_settings(args: argparse.Namespace) -> Made:
    known, name = raw.settings(args.settings), raw.title(args.capture)

    def finished(data: bytes, found: Sequence[int]) -> Capture:
        return with_settings(known, name, data, wrapped=args.wrapped)

    capture = finished(b"", ())
    return Made(capture, following.source_of(capture), finished)


def _of_tandem(args: argparse.Namespace) -> Made:
    parameters, image = raw.tandem(args), tandem_options.image_of(args)
    name = raw.title(args.capture)

    def finished(data: bytes, found: Sequence[int]) -> Capture:
        return tandem_capture(name, data, parameters, image, wrapped=args.wrapped)

    capture = finished(b"", ())
    return Made(capture, Source(capture.tandem[0].in_force, {0: 0}, alone=True), finished)


def _of_options(args: argparse.Namespace) -> Made:
    raw.how(args)  # what is wrong with the options is said before what is wrong with files
    image, images = programs.of_arguments(args)
    raw.check_xlen(args, image)
    how = raw.how(args, image.xlen)
    return Made(*_capturing(args, how, image, images))


def _capturing(
    args: argparse.Namespace, how: How, image: Image, images: tuple[CapturedImage, ...]
) -> tuple[Capture, Source, Callable[[bytes, Sequence[int]], Capture]]:
    told = formats.tells_sources(how)

    def finished(data: bytes, found: Sequence[int]) -> Capture:
        sources = (args.src,) if args.src is not None else tuple(found) or (0,)
        return capture_of(Raw(raw.title(args.capture), data, how, image, images, args.wrapped, args.src, sources))

    harts = None if args.src is None or not told else {args.src: args.src}
    return finished(b"", ()), Source(how, harts, alone=not told or harts is not None), finished
