"""How the encoders of a target were built, as its description says, for raw bytes of them."""

import argparse
from collections.abc import Mapping
from typing import NamedTuple

from rvtrace_gdb.console.options.inputs import RawError
from rvtrace_gdb.session.capture.etrace_settings import SettingValue


class DescribedEncoders(NamedTuple):
    """The encoders of a target, which are all alike. *etrace*: the settings of E-Trace, empty of N-Trace; *version*: of
    the interface, 0 or 1; *repeat_bits*: see `decode.ntrace.options.Options`, None: the default.
    """

    etrace: Mapping[str, SettingValue]
    version: int
    repeat_bits: int | None


NOT_DESCRIBED = DescribedEncoders({}, 1, None)
"""Without a description."""


def add_argument(group: "argparse._ArgumentGroup") -> None:
    """Add --target."""
    group.add_argument(
        "--target", dest="of_target", metavar="TARGET",
        help="the target that sent the bytes, its description or a name of `rvtrace targets`: how its encoders were"
        " built; other options override it",
    )  # fmt: skip


def is_given(args: argparse.Namespace) -> bool:
    """Return whether --target is given, of a command that has it."""
    return getattr(args, "of_target", None) is not None


def described_encoders(args: argparse.Namespace) -> DescribedEncoders:
    """Return what --target says of the encoders. Raises DescriptionError, `RawError`."""
    if not is_given(args):
        return NOT_DESCRIBED
    from rvtrace_gdb.session.description.library import shipped  # only where it is given
    from rvtrace_gdb.session.description.model import EncoderDescription

    components = shipped.load(args.of_target).components
    encoders = [it for it in components if isinstance(it, EncoderDescription)]
    if not encoders:
        raise RawError(f"--target {args.of_target}: it has no trace encoder")
    kinds = [DescribedEncoders(it.etrace, it.version, it.repeat_bits) for it in encoders]
    if any(kind != kinds[0] for kind in kinds):
        raise RawError(f"--target {args.of_target}: its encoders differ: say with options how these bytes were encoded")
    return kinds[0]
