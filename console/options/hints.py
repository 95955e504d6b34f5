"""Hints about options with which a trace would fit its program, or itself, better than with those that were given."""

from collections.abc import Iterator

from rvtrace_gdb.console.options import etrace as options_etrace
from rvtrace_gdb.controlregs.encoder_features import RAW_NTRACE
from rvtrace_gdb.decode.coresight.frames import FrameForm
from rvtrace_gdb.decode.history.events import EventKind, Loss, LossCause
from rvtrace_gdb.decode.ntrace.options import Options
from rvtrace_gdb.decode.tandem.plausibility import is_tandem_trace as is_tandem
from rvtrace_gdb.decode.tandem.protocol import TandemParameters
from rvtrace_gdb.session.capture.etrace_settings import EtraceTraceOptions, values_of
from rvtrace_gdb.session.capture.model import Capture, Captured, CapturedRecords, CapturedSink
from rvtrace_gdb.session.decoded_capture import Decoded
from rvtrace_gdb.session.formats import tandem as formats_tandem
from rvtrace_gdb.session.formats.guesses.detect_options import better_layout, guess
from rvtrace_gdb.session.formats.guesses.likely_frames import frames_that_make_sense
from rvtrace_gdb.session.formats.imports.raw_import import EncoderTraceOptions, is_imported, why_unreadable
from rvtrace_gdb.session.formats.sinks import feeding, options_of
from rvtrace_gdb.support.errors import Progress
from rvtrace_gdb.support.text import hint, printable, warning

_FILES = 3  # that a hint names
_SWITCHES = ("timestamps", "btm", *(feature.ntrace for feature in RAW_NTRACE))


def hints_of_history(capture: Capture, decoded: Decoded, progress: Progress, *, raw: bool = False) -> list[str]:
    """Return a hint about better options for a decoded trace, or none. *raw*: its bytes are not those of a capture,
    though its settings may be. Raises only what *progress* raises.
    """
    if is_imported(capture) and any(is_tandem(sink.data) for sink in capture.sinks):
        return [hint("these are the bytes of a tandem trace: --tandem")]
    if (raw or is_imported(capture)) and _is_doubtful(decoded):
        framed = [line for sink in capture.sinks for line in _hints_of_frames(sink, capture, decoded)]
        if framed:
            return framed[:1]
    found = guess(capture, decoded, progress)
    if found is not None:
        return [hint(f"the trace fits far better {_changes(*found)}")]
    return _hint_of_other_format(capture, decoded, progress) if raw or is_imported(capture) or capture.branches else []


def hints_of_missing_files(decoded: Decoded) -> list[str]:
    """Return a hint about how to give the files of processes whose code ran and was not found, or none."""
    events = (event for history in decoded.harts.histories.values() for event in history.events)
    absent = {str(fact.detail[1]): None for event in events
              if isinstance(fact := event.fact, Loss) and fact.cause is LossCause.ABSENT_CODE}  # fmt: skip
    files = [name for name in absent if name.startswith("/")]
    found = []
    if files:
        more = f" and {len(files) - _FILES} more" if len(files) > _FILES else ""
        names = printable(", ".join(files[:_FILES]))
        found.append(f"{names}{more}: --sysroot DIR, the target's root file system, or --elf FILE")
    if "[vdso]" in absent:
        found.append("[vdso]: --vdso FILE, a copy of it")
    return [hint(f"code ran whose file was not found, {it}") for it in found]


def _hint_of_other_format(capture: Capture, decoded: Decoded, progress: Progress) -> list[str]:
    """Return a hint if bytes that are not of the given format are of another one."""
    if len(decoded.sinks) != 1 or why_unreadable(capture, decoded.harts) is None:
        return []
    from rvtrace_gdb.session.formats.guesses.likely_format import likely_format  # few traces are of other formats

    [sink] = decoded.sinks
    xlen, wrapped = decoded.program.xlen, not isinstance(sink, CapturedRecords) and sink.wrapped
    if capture.branches:
        form = frames_that_make_sense(sink.data, Options(), xlen, wrapped)
        if form is not None:
            return [hint(f"the bytes look like frames of CoreSight: --frames {form}, with --ntrace or --etrace")]
    option = likely_format(sink.data, decoded.program, xlen, progress, wrapped=wrapped)
    return [] if option is None else [hint(f"the trace fits far better with {option}")]


def hints_of_messages(beginning: bytes, options: EncoderTraceOptions, xlen: int, wrapped: bool) -> list[str]:
    """Return a hint about better options, or none, from the *beginning* of a trace alone, without a program."""
    form = frames_that_make_sense(beginning, options, xlen, wrapped)
    if form is not None:
        return [_hint_of_frames(form)]
    better = better_layout(beginning, options, xlen, wrapped=wrapped)
    return [] if better is None else [hint(f"the messages make far more sense {_changes(options, better)}")]


def _is_doubtful(decoded: Decoded) -> bool:
    """Return whether bytes could not be decoded, or contradict the program, or nothing ran."""
    histories = decoded.harts.histories.values()
    return (
        decoded.harts.accounting.skipped > 0
        or not any(history.instructions for history in histories)
        or any(history.kind_counts.get(EventKind.MISMATCH) for history in histories)
    )


def _hints_of_frames(sink: Captured, capture: Capture, decoded: Decoded) -> Iterator[str]:
    """Yield a hint if the bytes of a buffer are in frames, which they were not said to be."""
    if not isinstance(sink, CapturedSink) or sink.frames is not None:
        return
    options = options_of(feeding(sink, capture.encoders))
    if isinstance(options, EncoderTraceOptions):
        form = frames_that_make_sense(sink.data, options, decoded.program.xlen, sink.wrapped)
        if form is not None:
            yield _hint_of_frames(form)


def _hint_of_frames(form: FrameForm) -> str:
    where = {FrameForm.MEMORY: "a buffer of", FrameForm.PINS: "the pins of"}[form]
    return hint(f"the bytes look like frames of {where} CoreSight: --frames {form}")


def hints_of_groups(beginning: bytes, parameters: TandemParameters, wrapped: bool) -> list[str]:
    """Return a warning, or none, if the *beginning* of a tandem trace shows that its parameters are others."""
    text = formats_tandem.advice(beginning, parameters, wrapped=wrapped)
    return [warning(text)] if text else []


def _changes(options: EncoderTraceOptions, better: EncoderTraceOptions) -> str:
    if isinstance(options, EtraceTraceOptions) and isinstance(better, EtraceTraceOptions):
        return " and ".join(options_etrace.words(values_of(options), values_of(better)))
    if isinstance(better, EtraceTraceOptions):
        width = better.options.parameters.iaddress_width
        return " and ".join(["with --etrace", *options_etrace.words({"iaddress_width": width}, values_of(better))])
    if isinstance(options, EtraceTraceOptions):
        return " and ".join(["with --ntrace", *_changed_options(Options(), better)])
    return " and ".join(_changed_options(options, better))


def _changed_options(options: Options, better: Options) -> Iterator[str]:
    if better.dialect != options.dialect:
        yield f"with --dialect {better.dialect.name}"
    if better.src_bits != options.src_bits:
        yield f"with --src-bits {better.src_bits}" if better.src_bits else "without --src-bits"
    if better.address_bits != options.address_bits:
        yield f"with --address-bits {better.address_bits}" if better.address_bits else "without --address-bits"
    if better.implicit_return != options.implicit_return:
        yield "with --implicit-return full" if better.implicit_return else "without --implicit-return"
    for name in _SWITCHES:
        wanted = getattr(better, name)
        if wanted != getattr(options, name):
            yield f"{'with' if wanted else 'without'} --{name.replace('_', '-')}"
