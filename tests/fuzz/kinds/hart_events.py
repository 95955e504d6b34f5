"""What encoders say besides the flow: PC samples, calls, data written, alone and between the messages of a flow."""

from __future__ import annotations

from rvtrace_gdb.decode.ntrace.options import RATIFIED, SIFIVE, Options
from rvtrace_gdb.decode.program.context_images import ContextImages
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.reports.samples import sample_counts
from rvtrace_gdb.session.formats.guesses.found_dialect import with_found_dialect
from rvtrace_gdb.session.queries.itc import ConsoleLog
from tests.decode.ntrace.messages import message, split
from tests.fuzz.kinds.ntrace import ntrace_of
from tests.fuzz.kinds.trace_checks import Trace, Traces, decoded
from tests.helpers.event_traces import ELF, EVENTS, MEDIAN, in_circuit, written

_FORMATS = {0: "%d of %d", 3: "%s %c %5.2x %o"}


class HartEvents(Traces):
    """The traces by name; what each says is put together, too."""

    def __init__(self) -> None:
        super().__init__(_traces())

    def run(self, variant: str, data: bytes) -> None:
        super().run(variant, data)
        trace = self.traces[variant.rpartition(" ")[0]]._replace(data=data)
        assert isinstance(trace.trace_options, Options)
        with_found_dialect(trace.trace_options, data)
        histories = decoded(trace)
        counts = sample_counts(histories, trace.program)
        assert sum(counts.functions.values()) + counts.placeless == counts.samples
        for hart, history in histories.items():
            log = ConsoleLog(hart, _FORMATS)
            rows = [*log.rows(history.events), *log.end()]
            assert all(row.time is None or row.until is None or row.until >= 0 for row in rows)


def _traces() -> dict[str, Trace]:
    program = ContextImages(Image.from_elf(ELF))
    text = written(0, b"some text\n") + written(1, bytes(range(16))) + written(3, b"\x01\x02\x03\x04") * 2
    timed = message("ProgTraceSync", sync=15, icnt=0, faddr=MEDIAN >> 1, tstamp=0x1000)
    timed += in_circuit(15, 3, tstamp=5) + in_circuit(12, 0x1_0005_0003, tstamp=9) + written(0, b"at a time\n", 3)
    other = written(0, b"elsewhere\n") + in_circuit(15, MEDIAN >> 1, full=True)
    return {
        "events": Trace(EVENTS + text, program, Options(dialect=SIFIVE)),
        "timed": Trace(timed, program, Options(dialect=SIFIVE, timestamps=True)),
        "other-dialect": Trace(other, program, Options(dialect=RATIFIED)),
        "in-a-flow": _mixed(next(number for number in range(100) if _is_plain(ntrace_of(number)))),
    }


def _is_plain(trace: Trace) -> bool:
    options = trace.trace_options
    return isinstance(options, Options) and options.dialect is SIFIVE and not (options.src_bits or options.timestamps)


def _mixed(number: int) -> Trace:
    """A flow with events that have no address between its messages."""
    trace, between = ntrace_of(number), (written(0, b"x\n"), in_circuit(12, 7), in_circuit(0, 2))
    data = b"".join(frame + between[at % 3] for at, frame in enumerate(split(trace.data)))
    return trace._replace(data=data)
