"""What to do when a trace does not fit its program: the options it would fit with, in the words of the command line."""

from collections.abc import Iterator

from rvtrace_gdb.console import etrace_options
from rvtrace_gdb.decode.ntrace.options import Options
from rvtrace_gdb.decode.tandem.guess import is_one as is_tandem
from rvtrace_gdb.decode.tandem.parameters import Parameters
from rvtrace_gdb.session.captured import Capture
from rvtrace_gdb.session.etrace import ETrace, values_of
from rvtrace_gdb.session.formats import How
from rvtrace_gdb.session.guess import better_layout, guess
from rvtrace_gdb.session.importing import is_imported
from rvtrace_gdb.session.reading import Decoded
from rvtrace_gdb.session.tandem import advice
from rvtrace_gdb.support.lines import hint, warning
from rvtrace_gdb.support.progress import Progress

_SWITCHES = ("timestamps", "btm", "sequential_jump", "all_jumps", "extend_addr_msb")


def of(capture: Capture, decoded: Decoded, progress: Progress) -> list[str]:
    """A line, or none. Raises only what *progress* raises."""
    if is_imported(capture) and any(is_tandem(sink.data) for sink in capture.sinks):
        return [hint("these are the bytes of a tandem trace: --tandem")]
    found = guess(capture, decoded, progress)
    return [] if found is None else [hint(f"the trace fits far better {_changes(*found)}")]


def of_messages(beginning: bytes, said: How, xlen: int, wrapped: bool) -> list[str]:
    """A line, or none, from the *beginning* of a trace alone, without a program."""
    better = better_layout(beginning, said, xlen, wrapped=wrapped)
    return [] if better is None else [hint(f"the messages make far more sense {_changes(said, better)}")]


def of_groups(beginning: bytes, said: Parameters, wrapped: bool) -> list[str]:
    """A line, or none, from the *beginning* of a tandem trace: whether its parameters are others."""
    text = advice.advice(beginning, said, wrapped=wrapped)
    return [warning(text)] if text else []


def _changes(said: How, better: How) -> str:
    if isinstance(said, ETrace) and isinstance(better, ETrace):
        return " and ".join(etrace_options.words(values_of(said), values_of(better)))
    if isinstance(better, ETrace):
        width = better.options.parameters.iaddress_width
        return " and ".join(["with --etrace", *etrace_options.words({"iaddress_width": width}, values_of(better))])
    if isinstance(said, ETrace):
        return " and ".join(["with --ntrace", *_options(Options(), better)])
    return " and ".join(_options(said, better))


def _options(said: Options, better: Options) -> Iterator[str]:
    if better.dialect != said.dialect:
        yield f"with --dialect {better.dialect.name}"
    if better.src_bits != said.src_bits:
        yield f"with --src-bits {better.src_bits}" if better.src_bits else "without --src-bits"
    if better.implicit_return != said.implicit_return:
        yield "with --implicit-return full" if better.implicit_return else "without --implicit-return"
    for name in _SWITCHES:
        wanted = getattr(better, name)
        if wanted != getattr(said, name):
            yield f"{'with' if wanted else 'without'} --{name.replace('_', '-')}"
