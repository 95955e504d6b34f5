"""The construction of the trace encoder and the Control Transfer Records of `rvtrace sim`, beyond their registers.

The options for Control Transfer Records say whether the hart has them, and how they are built.
"""

import argparse
from typing import Any

from rvtrace_gdb.console.commands.sim.request import CtrBuildRequest, EncoderBuildRequest
from rvtrace_gdb.console.options.encoder import CHOICES, FIELDS, dashed, in_their_words
from rvtrace_gdb.decode.ntrace.options import EncoderOptions
from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.transport.simulated.ctr.hart_side import CtrFollower
from rvtrace_gdb.transport.simulated.ctr.recorder import DEPTHS, VERSIONS, CtrBuild, CtrNotBuildable
from rvtrace_gdb.transport.simulated.devices.encoder import OPTIONAL
from rvtrace_gdb.transport.simulated.devices.etrace import ETraceProtocol
from rvtrace_gdb.transport.simulated.devices.filters import COMPARATORS, FILTERS, FilterUnits
from rvtrace_gdb.transport.simulated.devices.ntrace import SET_BY_REGISTERS, NTraceProtocol

SWITCH = {"on": True, "off": False}
FORMATS = {"ntrace": NTraceProtocol.format, "etrace": ETraceProtocol.format}
_NAMES = [name for name in FIELDS if name not in SET_BY_REGISTERS]


class BadEncoderOption(RvtraceError):
    """An unknown option of the encoder, an impossible value, or options that exclude each other."""


def add_arguments(parser: argparse._ArgumentGroup) -> None:
    """Add the options that `built_with`, `filters` and `formats` read."""
    parser.add_argument(
        "--encoder-option", action="append", default=[], metavar="NAME=VALUE",
        help="how the trace encoder is built: icnt-limit=1000, hist-limit=16, full-at-once=off, ... (`rvtrace help"
        " encoder` explains them); may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--formats", default="ntrace,etrace", metavar="FORMAT,FORMAT",
        help="the protocols the trace encoder has (trTeFormat), the one after reset first (default %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--without", action="append", default=[], choices=sorted(OPTIONAL), metavar="FIELD",
        help="a register field that the trace encoder does not implement: trTeContext, trTsEnable, ...; may be"
        " repeated",
    )  # fmt: skip
    parser.add_argument(
        "--filters", type=int, default=0, metavar="N",
        help="how many filters the trace encoder has, 0 to 16 (default %(default)s), for `trace start -function`",
    )  # fmt: skip
    parser.add_argument(
        "--comparators", type=int, metavar="N",
        help="how many comparators its filters have for addresses, 0 to 8 (default: one for each filter)",
    )  # fmt: skip


def filters(request: EncoderBuildRequest) -> FilterUnits:
    """Return the filters that the command line describes. Raises BadEncoderOption."""
    if not 0 <= request.filters <= FILTERS:
        raise BadEncoderOption(f"--filters {request.filters}: give 0 to {FILTERS}")
    if request.comparators is None:
        return FilterUnits(request.filters, min(request.filters, COMPARATORS))
    if not 0 <= request.comparators <= COMPARATORS:
        raise BadEncoderOption(f"--comparators {request.comparators}: give 0 to {COMPARATORS}")
    if request.comparators and not request.filters:
        raise BadEncoderOption(f"--comparators {request.comparators}: only filters use them: give --filters as well")
    return FilterUnits(request.filters, request.comparators)


def built_with(request: EncoderBuildRequest) -> EncoderOptions:
    """Return the encoder's options on the command line. Raises BadEncoderOption."""
    values: dict[str, Any] = {}
    for text in request.options:
        written, _, value = text.partition("=")
        name = written.replace("-", "_")
        if name not in _NAMES or not value:
            names = ", ".join(map(dashed, _NAMES))
            raise BadEncoderOption(f"--encoder-option {text}: give NAME=VALUE; the names are {names}")
        try:
            values[name] = _property_value(name, value)
        except (ValueError, KeyError):
            raise BadEncoderOption(f"--encoder-option {text}: {_range_text(name)}") from None
    try:
        return EncoderOptions(**values)
    except ValueError as error:
        raise BadEncoderOption(f"--encoder-option: {in_their_words(str(error), '')}") from None


def formats(request: EncoderBuildRequest) -> tuple[int, ...]:
    """Return the values of trTeFormat that the encoder supports. Raises BadEncoderOption."""
    words = request.formats.split(",")
    if not set(words) <= set(FORMATS) or len(set(words)) < len(words):
        wanted = " or ".join(FORMATS)
        raise BadEncoderOption(f"--formats {request.formats}: give {wanted}, or both with a comma between")
    return tuple(FORMATS[word] for word in words)


def _property_value(name: str, text: str) -> Any:
    """Raises ValueError or KeyError."""
    if name in CHOICES:
        return CHOICES[name][text]
    if isinstance(FIELDS[name].default, bool):
        return SWITCH[text]
    if isinstance(FIELDS[name].default, tuple):
        return tuple(int(number, 0) for number in text.split(","))
    return int(text, 0)


def _range_text(name: str) -> str:
    """Return the text about the possible values."""
    if name in CHOICES:
        return f"it is one of {', '.join(CHOICES[name])}"
    if isinstance(FIELDS[name].default, bool):
        return "it is on or off"
    return "it is numbers with commas between them" if isinstance(FIELDS[name].default, tuple) else "it is a number"


class BadCtrOption(RvtraceError):
    """An impossible option of Control Transfer Records."""


def add_ctr_arguments(parser: argparse._ArgumentGroup) -> None:
    """Add the options that `built_ctr` reads."""
    parser.add_argument("--ctr", choices=list(VERSIONS), help="the hart has Control Transfer Records of this version")
    parser.add_argument(
        "--ctr-depths", metavar="N,N",
        help=f"the depths they have, of {', '.join(map(str, DEPTHS))} (default: all)",
    )  # fmt: skip
    parser.add_argument(
        "--ctr-without", action="append", default=[], metavar="FIELD",
        help="a field they lack, may be repeated: RASEMU, LCOFIFRZ, EXCINH, TYPE, ...",
    )  # fmt: skip
    parser.add_argument(
        "--ctr-exponent-bits", choices=("none", "0", "1", "2", "3", "4"), metavar="N",
        help="bits of a cycle count's exponent, 0 to 4, or none: no cycle counts (default 4)",
    )  # fmt: skip
    parser.add_argument(
        "--ctr-misp", action="store_true",
        help="they mark transfers that a simple predictor mispredicts (MISP): backward branches are taken, ...",
    )  # fmt: skip


def built_ctr(request: CtrBuildRequest) -> CtrBuild | None:
    """Return the Control Transfer Records on the command line, None for a hart without. Raises BadCtrOption."""
    if request.version is None:
        if request.depths or request.absent or request.exponent_bits or request.mispredictions:
            raise BadCtrOption(f"say which Control Transfer Records the hart has: --ctr {' or '.join(VERSIONS)}")
        return None
    standard = CtrBuild(request.version)
    bits = request.exponent_bits or str(standard.exponent_bits)
    try:
        return CtrBuild(
            request.version,
            depths=_depths(request.depths) if request.depths else standard.depths,
            absent=standard.absent - ({"MISP"} if request.mispredictions else set()) | set(request.absent),
            exponent_bits=None if bits == "none" else int(bits),
        )
    except CtrNotBuildable as error:
        raise BadCtrOption(f"--ctr {request.version}: {error}") from None


def _depths(text: str) -> tuple[int, ...]:
    try:
        return tuple(sorted(int(number, 0) for number in text.split(",")))
    except ValueError:
        raise BadCtrOption(f"--ctr-depths {text}: give numbers with commas between them") from None


def openocd_lines(ctr: CtrFollower) -> str:
    """Return the lines that let OpenOCD 0.12 expose the CSRs, with the names csr_mctrctl and so on."""
    exposed = ",".join(f"{number}={csr.name}" for number, csr in sorted(ctr.csrs.items()))
    return f"riscv expose_csrs {exposed}\n"
