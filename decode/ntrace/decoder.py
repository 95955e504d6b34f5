"""N-Trace bytes to the history of one hart."""

from rvtrace_gdb.decode.history import History
from rvtrace_gdb.decode.ntrace.memo import MEMO_LIMIT
from rvtrace_gdb.decode.ntrace.options import Options
from rvtrace_gdb.decode.ntrace.streams import StreamDecoder
from rvtrace_gdb.decode.streams import Program
from rvtrace_gdb.support.progress import Progress, silent

__all__ = ["MEMO_LIMIT", "Decoder", "Options", "decode"]


def decode(
    data: bytes, program: Program, options: Options, *, wrapped: bool = False, progress: Progress = silent
) -> History:
    """The history of a whole trace. *wrapped*: it comes from a ring buffer that wrapped, oldest byte first.

    No bytes make it fail: what cannot be decoded is in the history as events and gaps. Raises only what *progress*
    raises.
    """
    decoder = Decoder(program, options, progress, wrapped=wrapped, total=len(data))
    decoder.feed(data)
    return decoder.finish()


class Decoder:
    """Decodes one hart's trace, fed in pieces of any size: that of `Options.src_id`, or whatever there is.

    *total*: bytes to expect, for *progress* only. *memo_limit*: steps to remember at most, 0 for none.
    """

    def __init__(
        self,
        program: Program,
        options: Options,
        progress: Progress = silent,
        *,
        wrapped: bool = False,
        total: int | None = None,
        memo_limit: int = MEMO_LIMIT,
    ) -> None:
        self.options = options
        self._source = options.src_id if options.src_bits else None
        programs = program if self._source is None else {self._source: program}
        self._stream = StreamDecoder(
            programs,
            options,
            progress,
            wrapped=wrapped,
            total=total,
            memo_limit=memo_limit,
            split=self._source is not None,
        )

    def feed(self, data: bytes) -> None:
        """The next bytes of the trace. Raises only what *progress* raises."""
        self._stream.feed(data)

    def finish(self) -> History:
        """The end of the trace: what is left is decoded as far as it is determined; the account is of all bytes."""
        if self._source is not None:
            self._stream.expect(self._source)
        histories, accounting = self._stream.finish()
        (history,) = histories.values()
        history.accounting = accounting
        return history
