"""The methods of the session protocol that count how often instructions ran.

coverage {context, args, ranges, functions, branches}: `trace history` numbers the RANGE *args* ("": everything).
*ranges*: [address, end, address, end, ...] that are asked about, null for all; *functions*, *branches*: not null to
have them.

    {lines, hart, first, last, gaps, elsewhere,    what was counted, see `session.coverage.Part`
     overwritten: whether older trace was overwritten before the first of them,
     counts: [[address, how often it ran], ...],
     branches: [[address, taken, not taken, target, what follows], ...],
     functions: [[start, end, name, instructions, how many of them ran, how often it was entered], ...]}
"""

from collections.abc import Callable, Mapping
from itertools import chain
from typing import Any

from rvtrace_gdb.session.coverage import Coverage
from rvtrace_gdb.session.frames import call_history
from rvtrace_gdb.session.params import BadRequest, Params
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.progress import Progress

_ALL = ((0, 1 << 64),)


def coverage(session: Session, params: Params, progress: Progress) -> Any:
    """See the module."""
    it = session.selected(params.context(), progress)
    calls = call_history(session, it, progress)
    kept = session.kept(Coverage, it.history, lambda: Coverage(it.history, it.program, calls))
    kept.select(params.text("args", ""))
    part = kept.counted(progress)
    ranges = _ranges(params)
    return {
        "lines": it.lines,
        "hart": it.hart,
        **part._asdict(),
        "overwritten": it.overwritten and part.first == 1,
        "counts": list(chain.from_iterable(kept.addresses(*one) for one in ranges)),
        "branches": list(chain.from_iterable(kept.branches(*one) for one in ranges))
        if params.given("branches")
        else [],
        "functions": kept.functions() if params.given("functions") else [],
    }


def _ranges(params: Params) -> tuple[tuple[int, int], ...]:
    """The addresses asked about. Raises BadRequest."""
    if not params.given("ranges"):
        return _ALL
    numbers = params.numbers("ranges")
    if len(numbers) % 2:
        raise BadRequest("coverage: ranges are pairs of addresses")
    return tuple(zip(numbers[::2], numbers[1::2], strict=True))


METHODS: Mapping[str, Callable[[Session, Params, Progress], Any]] = {"coverage": coverage}
