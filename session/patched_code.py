"""Code that a program changes while it runs, as kernels do (Linux: alternatives, static keys, ftrace), so that memory
has other instructions than the program's file.

A trace contradicts the file then. `suspects` says which pages that can be because of, `advice` what a user can fetch
them with. What a target has there is compared by `LoadedProgram.compare`.
"""

from collections.abc import Iterator

from rvtrace_gdb.decode.history.events import EventKind, Loss
from rvtrace_gdb.decode.history.history import Event, History
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.session.program import KEPT
from rvtrace_gdb.support.text import hint

PAGE = 4096
_BEFORE = 512  # instructions: a wrong one among them may be what led to the contradiction
_EVENTS = 64
KERNELS_BEGIN = {32: 0xC0000000, 64: 1 << 63}
"""Where a kernel is, by XLEN: in the upper half of the addresses (Linux: Documentation/arch/riscv/vm-layout.rst)."""
_FITS = 100  # instructions for each contradiction: fewer, and it is rather another program


def suspects(history: History, image: Image) -> list[int]:
    """Return the addresses of pages whose code, from a file, may be other than what ran: those in which the trace
    contradicts it, and those where the instructions before that are. The most likely one comes first.
    """
    found = [event for event in history.doubtful_events if event.kind is EventKind.MISMATCH][:_EVENTS]
    pages = [at & -PAGE for event in found for at in _places(event, history)]
    return [page for page in dict.fromkeys(pages) if _is_of_file(image, page)]


def _places(event: Event, history: History) -> Iterator[int]:
    if isinstance(event.fact, Loss) and len(event.fact.detail) > 1 and isinstance(event.fact.detail[1], int):
        yield event.fact.detail[1]
    before = [pc for pc in history.pcs(event.position - _BEFORE, event.position) if pc >= 0]
    yield from reversed(before)


def _is_of_file(image: Image, page: int) -> bool:
    """Return whether a page has code of a file, or of a capture: not what a target has in memory now."""
    ends = [at for at in (page, page + PAGE - 2) if image.knows(at)]
    return any(image.added_from == KEPT or not image.is_of_target(at) for at in ends)


def advice(history: History, image: Image) -> str | None:
    """Return a line that says which page of a kernel to fetch, and how; None where it is rather another program."""
    found = [event for event in history.doubtful_events if event.kind is EventKind.MISMATCH]
    pages = [page for page in suspects(history, image) if page >= KERNELS_BEGIN[image.xlen]]
    if not pages or history.instructions < _FITS * len(found):
        return None
    page, file = pages[0], f"{pages[0]:x}.bin"
    return hint(
        f"a kernel changes its own code (alternatives, static keys): add the page at {page:#x} as it was in memory,"
        f" which gdb's `dump memory {file} {page:#x} {page + PAGE:#x}` writes, with --memory {file}@{page:#x} in the"
        " shell; or the whole kernel with --kernel-pages, from `perf record --kcore` or /proc/kcore"
    )
