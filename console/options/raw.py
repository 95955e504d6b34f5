"""Options for raw trace bytes, which say how they were encoded: a capture says that itself, raw bytes (of an RTL
simulation, of another tool) do not. `trace_request` makes a typed request of them.
"""

import argparse
from collections.abc import Iterable, Mapping, Sequence

from rvtrace_gdb.console.help_pages import RAW, group_of
from rvtrace_gdb.console.options import described, logs, perf
from rvtrace_gdb.console.options import etrace as options_etrace
from rvtrace_gdb.console.options import tandem as options_tandem
from rvtrace_gdb.console.options.described import NOT_DESCRIBED, DescribedEncoders, described_encoders
from rvtrace_gdb.console.options.inputs import Programs, RawError, check_file, number_from
from rvtrace_gdb.console.options.request import (
    BranchBytes,
    EncoderBytes,
    RawBytes,
    RequestedTrace,
    SettingsBytes,
    TandemBytes,
    is_core_dump_file,
)
from rvtrace_gdb.console.options.tandem import TandemOptions
from rvtrace_gdb.controlregs.encoder_features import NTRACE, RAW_NTRACE, EncoderFeature
from rvtrace_gdb.decode.branches import READERS
from rvtrace_gdb.decode.etrace.options import Dialect
from rvtrace_gdb.decode.ntrace.messages import MAX_REPEAT_BITS, MAX_SRC_BITS
from rvtrace_gdb.decode.ntrace.options import DIALECTS, RATIFIED, REPEAT_BITS, SIFIVE, ImplicitReturn, Options
from rvtrace_gdb.decode.tandem.protocol import DIALECTS as TANDEM_DIALECTS
from rvtrace_gdb.session.capture.etrace_settings import SettingValue
from rvtrace_gdb.session.formats.imports.imported_encoders import ImportedFrames

_RETURNS = {
    "off": ImplicitReturn.OFF,
    "on": ImplicitReturn.FULL_STACK,
    "counter": ImplicitReturn.COUNTER,
    "partial": ImplicitReturn.PARTIAL_STACK,
    "full": ImplicitReturn.FULL_STACK,
}
_LEAST_ENTRIES, _MOST_ENTRIES = 1, 1 << 20
_MAX_SRC_BITS = 16
_MAX_SRC = (1 << _MAX_SRC_BITS) - 1
_HARTS = range(1 << 32)
_ETRACE_DIALECTS = [dialect.value for dialect in Dialect]


def add_arguments(parser: argparse.ArgumentParser, *, capture: bool = True, program: bool = True) -> None:
    """Add the options. *capture*: whether the file may be a capture. *program*: whether the command has the program."""
    when = "With --ntrace, --etrace or --tandem: how" if capture else "How"
    formats = parser.add_argument_group(
        "raw trace", "For bytes that are not in a capture: --help-raw has the options that say how they were encoded."
    ).add_mutually_exclusive_group()
    group = group_of(
        parser, RAW, "how a raw trace was encoded",
        f"{when} the bytes were encoded. In parentheses: the encoder's registers with these settings.",
    )  # fmt: skip
    _add_formats(formats, capture=capture)
    if not capture:
        logs.add_arguments(formats)
    _add_shared(group, program=program)
    if not capture:
        described.add_argument(group)
    _add_ntrace(group_of(parser, RAW, "raw N-Trace", "With --ntrace." if capture else ""))
    options_etrace.add_arguments(parser)
    options_tandem.add_own_arguments(group_of(parser, RAW, "raw tandem trace", "With --tandem." if capture else ""))


def _add_formats(formats: "argparse._MutuallyExclusiveGroup", *, capture: bool) -> None:
    """Add the options of which one says what the file is."""
    rest = ", not a capture" if capture else " (the default)"
    formats.add_argument("--ntrace", action="store_true", help=f"the file is raw N-Trace bytes{rest}")
    rest = ", not a capture" if capture else ""
    formats.add_argument("--etrace", action="store_true", help=f"the file is raw E-Trace bytes{rest}")
    formats.add_argument("--tandem", action="store_true", help=f"the file is a raw tandem trace (.tvt){rest}")
    formats.add_argument(
        "--settings", metavar="FILE.rvt",
        help=f"the file is raw bytes{rest}, encoded with the settings that `trace save` has kept in FILE.rvt",
    )  # fmt: skip


def _add_shared(group: "argparse._ArgumentGroup", *, program: bool) -> None:
    """Add the formats that few people have, and the options that several formats have."""
    _add_transfers(group)
    _add_encoding(group, program=program)
    group.add_argument("--wrapped", action="store_true", help="from a ring buffer that wrapped: starts anywhere")
    group.add_argument(
        "--frames", choices=("coresight", "tpiu"), metavar="FORM",
        help="the bytes are in frames of the CoreSight formatter: coresight, those of a buffer (ETB, ETF, ETR); tpiu,"
        " those of pins, with synchronization packets",
    )  # fmt: skip
    group.add_argument(
        "--atb-id", action="append", default=[], metavar="ID[=HART]",
        help="with --frames: only the trace with this ATB ID, and whose it is (default: that of SRC or srcID, else the"
        " ID); may be repeated",
    )  # fmt: skip


def _add_transfers(group: "argparse._ArgumentGroup") -> None:
    """Add the formats whose entries are transfers of control."""
    group.add_argument(
        "--neorv32", action="store_true",
        help="the file has pairs of NEORV32's TRACER, DELTA_SRC and DELTA_DST, as bytes or text (docs/branches.md)",
    )  # fmt: skip
    group.add_argument("--tacit", action="store_true", help="the file is raw TACIT bytes (docs/branches.md)")
    group.add_argument(
        "--tacit-predictor", type=number_from(_LEAST_ENTRIES, _MOST_ENTRIES), metavar="ENTRIES",
        help="TACIT's encoder predicted branches, with so many entries (Chipyard: 1024), and its packets do not say so",
    )  # fmt: skip
    group.add_argument("--ctxp", action="store_true", help="the file is CTXP, text or binary (docs/branches.md)")
    group.add_argument(
        "--gem5", action="store_true", help="the file is E-Trace as gem5 writes it, .pb or .pb.gz (docs/branches.md)"
    )


def _add_encoding(group: "argparse._ArgumentGroup", *, program: bool) -> None:
    """Add what several formats have to be told of the hart and its encoder."""
    group.add_argument(
        "--xlen", type=int, choices=(32, 64),
        help=f"XLEN of the hart (default: {'that of the ELF' if program else '64'})",
    )  # fmt: skip
    group.add_argument(
        "--src-bits",
        type=number_from(0, _MAX_SRC_BITS),
        metavar="N",
        help="width of SRC or srcID (trTeSrcBits), default 0",
    )
    group.add_argument("--src", type=number_from(0, _MAX_SRC), metavar="N", help="only messages of this SRC")
    for feature in NTRACE:
        if feature.etrace:
            _add_feature(group, feature)
    group.add_argument(
        "--dialect", choices=[*sorted(DIALECTS), *_ETRACE_DIALECTS, *TANDEM_DIALECTS], default=None, metavar="NAME",
        help="generation of the encoder. N-Trace: 1.0 (default), rc7, or sifive for what came before the standard,"
        " the default of bytes that have nothing but its events;"
        f" E-Trace: {', '.join(_ETRACE_DIALECTS)} (default standard). Tandem: {', '.join(TANDEM_DIALECTS)}",
    )  # fmt: skip


def _add_ntrace(group: "argparse._ArgumentGroup") -> None:
    """Add the options that only N-Trace has."""
    group.add_argument("--timestamps", action="store_true", help="messages end with TSTAMP (trTsEnable)")
    group.add_argument(
        "--timestamp-bits", type=number_from(0, 64), metavar="N",
        help="width of the time counter (trTsWidth), 0: it does not wrap (default)",
    )  # fmt: skip
    group.add_argument("--btm", action="store_true", help="Branch Trace Messaging (trTeInstMode 3), not HTM (6)")
    for feature in RAW_NTRACE:
        if not feature.etrace:
            _add_feature(group, feature)
    group.add_argument(
        "--address-bits", type=number_from(1, 64), metavar="N", help="addresses were sent with so many bits only"
    )
    group.add_argument(
        "--repeat-bits", type=number_from(REPEAT_BITS.start, REPEAT_BITS.stop - 1), metavar="N",
        help=f"bits of the greatest HREPEAT and B-CNT that are believed (default {MAX_REPEAT_BITS})",
    )  # fmt: skip


def _add_feature(group: "argparse._ArgumentGroup", feature: EncoderFeature) -> None:
    """Add the option for a feature of N-Trace. What E-Trace calls it is a second name."""
    names = dict.fromkeys(f"--{name.replace('_', '-')}" for name in (feature.ntrace, feature.etrace) if name)
    text = f"{feature.meaning} ({feature.field})"
    if feature.words:
        group.add_argument(*names, choices=list(_RETURNS), help=f"{text}; all but off are read alike")
    else:
        group.add_argument(*names, action="store_true", help=text)


def trace_request(
    args: argparse.Namespace, file: str, *, options_first: bool = False, also_for_captures: Sequence[str] = ()
) -> RequestedTrace:
    """Return the request of a command for the trace in *file*.

    *options_first*: errors in the options are reported before the file is looked at; else it must not begin as what is
    no trace. *also_for_captures*: options that the command has for captures, too.

    Raises `RawError`, BadETrace, BadParametersFile.
    """
    raw = None
    if is_raw(args, also_for_captures):
        if not options_first:
            check_file(file)
        raw = raw_bytes(args)
    return RequestedTrace(file, raw, Programs.from_arguments(args), getattr(args, "stop_at_error", False))


def import_request(args: argparse.Namespace, file: str, hart: int) -> RequestedTrace:
    """Return the request of a command to which *file* is never a capture: raw bytes, N-Trace by default, perf.data, a
    log, or a core dump. *hart*: that of a tandem trace. Raises as `trace_request`.
    """
    programs = Programs.from_arguments(args)
    if perf.is_wanted(args):
        for name in _given(args, _FRAMED):
            raise RawError(f"{name} is for raw bytes: a perf.data says whether its trace is in frames, leave it out")
        return RequestedTrace(file, raw_bytes(args), programs, perf=perf.PerfTrace(args.pid))
    if args.log is not None or (not _has_format(args) and logs.is_log_file(file)):
        return RequestedTrace(file, None, programs, log=_logged(args))
    if not _has_format(args) and is_core_dump_file(file):
        return RequestedTrace(file, None, programs)
    check_file(file)  # first: for a capture, a missing program is not the problem
    return RequestedTrace(file, raw_bytes(args, hart), programs)


def raw_bytes(args: argparse.Namespace, hart: int = 0) -> RawBytes:
    """Return what the command line says of raw bytes. *hart*: that of a tandem trace. Raises as `trace_request`."""
    frames = _frames(args)
    if described.is_given(args) and (_is_of_transfers(args) or args.tandem or args.settings is not None):
        raise RawError("--target says how encoders of N-Trace and E-Trace were built: leave it out here")
    if _is_of_transfers(args):
        return _branches(args, hart)
    if args.tandem:
        return TandemBytes(_tandem(args), args.wrapped, hart, frames)
    if args.settings is not None:
        return SettingsBytes(args.settings, args.wrapped, frames)
    built = described_encoders(args)
    is_etrace = args.etrace or (bool(built.etrace) and not args.ntrace)
    settings = _etrace(args, built) if is_etrace else _ntrace(args, built)
    asked = args.dialect is None and built is NOT_DESCRIBED
    return EncoderBytes(settings, args.xlen, args.src, args.wrapped, frames, finds_dialect=asked)


def _frames(args: argparse.Namespace) -> ImportedFrames | None:
    """Return how the bytes are in frames. Raises `RawError`."""
    if args.frames is None:
        for text in args.atb_id:
            raise RawError(f"--atb-id {text}: the bytes have ATB IDs in frames alone: add --frames coresight, or tpiu")
        return None
    from rvtrace_gdb.decode.coresight.frames import FrameForm  # few traces are in frames

    return ImportedFrames(FrameForm(args.frames), dict(map(_atb_id, args.atb_id)))


def _atb_id(text: str) -> tuple[int, int | None]:
    """Return an ATB ID, and whose it is. Raises `RawError`."""
    from rvtrace_gdb.decode.coresight.frames import USABLE_IDS

    atb_id, given, hart = text.partition("=")
    try:
        found = int(atb_id, 0), int(hart, 0) if given else None
    except ValueError:
        raise RawError(f"--atb-id {text}: give an ID, or ID=HART, as numbers") from None
    if found[0] not in USABLE_IDS:
        raise RawError(f"--atb-id {text}: a trace source has an ID of {USABLE_IDS[0]:#x} to {USABLE_IDS[-1]:#x}")
    if found[1] is not None and found[1] not in _HARTS:
        raise RawError(f"--atb-id {text}: there is no such hart")
    return found


def _logged(args: argparse.Namespace) -> logs.LoggedTrace:
    """Return what the command line says of a log. Raises `RawError`."""
    names = (*_ONLY_NTRACE, *options_etrace.own_options(), *_EITHER, *_FRAMED, "dialect", "wrapped")
    for name in _given(args, names):
        raise RawError(f"{name} is for raw bytes, not for a log")
    if described.is_given(args):
        raise RawError("--target is for raw bytes, not for a log")
    return logs.LoggedTrace(
        None if args.log in (None, logs.AUTO) else args.log, TandemOptions.from_arguments(args), args.of_hart
    )


def _has_format(args: argparse.Namespace) -> bool:
    return args.ntrace or args.etrace or args.tandem or args.settings is not None or _is_of_transfers(args)


def _is_of_transfers(args: argparse.Namespace) -> bool:
    return any(getattr(args, kind) for kind in READERS)


def is_raw(args: argparse.Namespace, also_for_captures: Sequence[str] = ()) -> bool:
    """Whether the file is raw bytes, not a capture. Raises `RawError` for options that do not apply to a capture."""
    if args.settings is not None:
        known = (*_ONLY_NTRACE, *options_etrace.own_options(), *options_tandem.OWN, *options_tandem.SHARED, *_EITHER)
        for name in _given(args, [name for name in known if name not in (*also_for_captures, "wrapped", *_FRAMED)]):
            raise RawError(f"{name}: the settings of {args.settings} include this, leave it out")
    if _has_format(args):
        return True
    found = (
        (_ONLY_NTRACE, "--ntrace"),
        (options_etrace.own_options(), "--etrace"),
        (options_tandem.OWN, "--tandem"),
        ((*options_tandem.SHARED, *_FRAMED), "--ntrace, --etrace or --tandem"),
        (_ONLY_TACIT, "--tacit"),
        (_EITHER, "--ntrace or --etrace"),
    )
    for names, formats in found:
        given = _given(args, [name for name in names if name not in also_for_captures])
        if given:
            raise RawError(f"{given[0]} is for raw bytes: add {formats} (a capture includes its settings)")
    return False


_ONLY_NTRACE = (
    "timestamps", "timestamp_bits", "btm", *(it.ntrace for it in RAW_NTRACE if not it.etrace), "address_bits",
    "repeat_bits",
)  # fmt: skip
_FRAMED = ("frames", "atb_id")
_ONLY_TACIT = ("tacit_predictor",)
_EITHER = (
    "src_bits", "src", *(it.ntrace for it in NTRACE if it.etrace), "maps", "vdso", "sysroot",
)  # fmt: skip


def _given(args: argparse.Namespace, names: Iterable[str]) -> list[str]:
    """Return those of these options that the user gave, as users write them."""
    return [f"--{name.replace('_', '-')}" for name in names if getattr(args, name, None) not in (None, False, [])]


def _etrace(args: argparse.Namespace, built: DescribedEncoders) -> Mapping[str, SettingValue]:
    """Return the settings of E-Trace. Raises `RawError`, BadETrace, BadParametersFile."""
    for name in _given(args, _ONLY_NTRACE):
        raise RawError(f"{name} is an option of N-Trace, not of E-Trace")
    for name in _given(args, options_tandem.OWN):
        raise RawError(f"{name} is an option of tandem traces, not of E-Trace")
    if args.dialect is not None and args.dialect not in _ETRACE_DIALECTS:
        raise RawError(f"--dialect {args.dialect} {_whose(args)}; E-Trace has {', '.join(_ETRACE_DIALECTS)}")
    settings = {**built.etrace, **options_etrace.GivenSettings.from_arguments(args).settings()}
    found = options_etrace.trace_options(settings, args.xlen)
    if args.src is not None and not found.has_sources:
        raise RawError(f"--src {args.src}: packets do not say their source: say with --src-bits how wide srcID is")
    if args.src is not None and found.encapsulation.src_bits and args.src >> found.encapsulation.src_bits:
        raise RawError(f"--src {args.src} does not fit srcID: say with --src-bits how wide it is")
    return settings


def _ntrace(args: argparse.Namespace, built: DescribedEncoders) -> Options:
    """Return how N-Trace bytes were encoded. Raises `RawError`."""
    for name in _given(args, options_etrace.own_options()):
        raise RawError(f"{name} is an option of E-Trace, not of N-Trace")
    for name in _given(args, options_tandem.OWN):
        raise RawError(f"{name} is an option of tandem traces, not of N-Trace")
    if args.dialect is not None and args.dialect not in DIALECTS:
        raise RawError(f"--dialect {args.dialect} {_whose(args)}; N-Trace has {', '.join(sorted(DIALECTS))}")
    if (args.src_bits or 0) > MAX_SRC_BITS:
        raise RawError(f"--src-bits {args.src_bits}: SRC of N-Trace has at most {MAX_SRC_BITS} bits")
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
        address_bits=args.address_bits,
        repeat_bits=args.repeat_bits or built.repeat_bits or MAX_REPEAT_BITS,
        dialect=DIALECTS.get(args.dialect, RATIFIED if built.version else SIFIVE),
        **{feature.ntrace: getattr(args, feature.ntrace) for feature in RAW_NTRACE},
    )


def _whose(args: argparse.Namespace) -> str:
    """Return the format of a dialect, as the end of a sentence."""
    if args.dialect in DIALECTS:
        return "belongs to N-Trace"
    return "belongs to E-Trace" if args.dialect in _ETRACE_DIALECTS else "belongs to tandem traces"


def _branches(args: argparse.Namespace, hart: int) -> BranchBytes:
    """Return what the command line says of a trace of transfers. Raises `RawError`."""
    kinds = [kind for kind in READERS if getattr(args, kind)]
    settings = (
        "ntrace", "etrace", "tandem", *kinds[1:], *_ONLY_NTRACE, *options_etrace.own_options(), *options_tandem.OWN,
        "dialect", *_EITHER,
    )  # fmt: skip
    for name in _given(args, settings):
        raise RawError(f"{name} is an option of other formats, not of --{kinds[0]}")
    if args.tacit_predictor is None:
        return BranchBytes(kinds[0], args.xlen, args.wrapped, hart)
    if kinds[0] != "tacit":
        raise RawError(f"--tacit-predictor is an option of --tacit, not of --{kinds[0]}")
    from rvtrace_gdb.decode.branches.tacit.reader import predicting  # few traces are

    return BranchBytes("tacit", args.xlen, args.wrapped, hart, predicting(args.tacit_predictor))


def _tandem(args: argparse.Namespace) -> TandemOptions:
    """Return the options of a raw tandem trace. Raises `RawError`."""
    for names, whose in ((_ONLY_NTRACE, "N-Trace"), (options_etrace.own_options(), "E-Trace"), (_EITHER, "encoders")):
        for name in _given(args, names):
            raise RawError(f"{name} is an option of {whose}, not of tandem traces")
    if args.dialect is not None and args.dialect not in TANDEM_DIALECTS:
        there = ", ".join(TANDEM_DIALECTS)
        raise RawError(f"--dialect {args.dialect} {_whose(args)}; tandem traces have {there}")
    return TandemOptions.from_arguments(args)
