"""E-Trace bytes to the history of one hart."""

from rvtrace_gdb.decode.etrace.encapsulation import Encapsulation
from rvtrace_gdb.decode.etrace.hart import MEMO_LIMIT
from rvtrace_gdb.decode.etrace.options import Options
from rvtrace_gdb.decode.etrace.streams import StreamDecoder
from rvtrace_gdb.decode.history import History
from rvtrace_gdb.decode.streams import Program
from rvtrace_gdb.support.progress import Progress, silent

__all__ = ["MEMO_LIMIT", "Decoder", "Options", "decode"]


def decode(
    data: bytes,
    program: Program,
    options: Options,
    encapsulation: Encapsulation,
    *,
    source: int | None = None,
    wrapped: bool = False,
    progress: Progress = silent,
) -> History:
    """The history of a whole trace. *wrapped*: it comes from a ring buffer that wrapped, oldest byte first.

    *source*: whose packets; None: all are taken for one hart's. No bytes make it fail: what cannot be decoded is in the
    history as events and gaps. Raises only what *progress* raises.
    """
    decoder = Decoder(program, options, encapsulation, progress, source=source, wrapped=wrapped, total=len(data))
    decoder.feed(data)
    return decoder.finish()


class Decoder:
    """Decodes one hart's trace, fed in pieces of any size.

    *total*: bytes to expect, for *progress* only. *memo_limit*: steps to remember at most, 0 for none.
    """

    def __init__(
        self,
        program: Program,
        options: Options,
        encapsulation: Encapsulation,
        progress: Progress = silent,
        *,
        source: int | None = None,
        wrapped: bool = False,
        total: int | None = None,
        memo_limit: int = MEMO_LIMIT,
    ) -> None:
        self.options = options
        self._stream = StreamDecoder(
            program,
            options,
            encapsulation,
            progress,
            wrapped=wrapped,
            total=total,
            memo_limit=memo_limit,
            split=False,
            only=source,
        )

    def feed(self, data: bytes) -> None:
        """The next bytes of the trace. Raises only what *progress* raises."""
        self._stream.feed(data)

    def finish(self) -> History:
        """The end of the trace; the account is of all bytes."""
        self._stream.expect(0)
        histories, accounting = self._stream.finish()
        (history,) = histories.values()
        history.accounting = accounting
        return history
