"""Where a debugger would stop for a place: behind the prologue of a function, as gdb's breakpoints do."""

import re

from rvtrace_gdb.decode.program.source.prologues import has_location_lists
from rvtrace_gdb.session.queries.lists.executions import ExecutionQuery
from rvtrace_gdb.session.questions.log.query import LogTools

_LINE = re.compile(r":[0-9]+$")


def breakpoints(where: ExecutionQuery, tools: LogTools) -> ExecutionQuery:
    """Return the search for the executions of the instructions at which breakpoints at the places would be."""
    also = tuple(_breakpoint(one, tools) for one in where.also)
    return _breakpoint(where._replace(also=()), tools)._replace(also=also)


def _breakpoint(where: ExecutionQuery, tools: LogTools) -> ExecutionQuery:
    if where.last is not None or not (where.function or _LINE.search(where.name)):
        return where
    addresses = [_breakpoint_address(address, tools) for address in (where.first, *where.functions)]
    others = [_breakpoint_address(address, tools) if not where.function else address for address in where.others]
    first, *rest = dict.fromkeys([*addresses, *others])
    return ExecutionQuery(where.name, first, others=tuple(rest))


def _breakpoint_address(address: int, tools: LogTools) -> int:
    """Return where a breakpoint is that is set at the first instruction of a function; any other address as it is."""
    scope = tools.evaluator.program.scope_at(address)
    image = tools.evaluator.image
    if image.function(address) != address:
        return address
    has_lists = scope is not None and has_location_lists(scope.unit.unit)
    return tools.prologues.breakpoint(address, has_lists=has_lists)
