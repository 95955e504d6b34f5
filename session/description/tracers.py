"""The tables [[tracer]] of a target description: TRACERs of NEORV32, which are not of the Trace Control Interface.

[[tracer]]
name = "tracer0"
base = 0xfff30000            # default; where its registers are
hart = 0                     # the hart that `trace start` traces without -harts, 0 or 1; default 0
"""

from collections import Counter
from collections.abc import Sequence

from rvtrace_gdb.controlregs.neorv32.registers import BASE
from rvtrace_gdb.session.description.model import AnyComponent, TandemDescription, TracerDescription
from rvtrace_gdb.session.description.tables import Tables, TomlTable

_TABLE = "[[tracer]]"
_KEYS = ("name", "base", "hart")
HARTS = range(2)
"""Those that a TRACER can trace, one at a time."""


def read_tracers(
    tables: Tables, document: TomlTable, others: Sequence[AnyComponent | TandemDescription]
) -> tuple[TracerDescription, ...]:
    """Return the TRACERs, in the order of the file. *others*: what else has a name. Raises DescriptionError."""
    found = tuple(_tracer(tables, table, number) for number, table in enumerate(tables.tables(document, "tracer"), 1))
    if found and "component" in document:
        raise tables.error("a target has either trace components or a TRACER: remove either [[component]]", _TABLE)
    names = Counter([other.name for other in others] + [tracer.name for tracer in found])
    for tracer in found:
        if names[tracer.name] > 1:
            raise tables.error(f'"{tracer.name}" is used {names[tracer.name]} times', _TABLE, "name")
    return found


def _tracer(tables: Tables, table: TomlTable, number: int) -> TracerDescription:
    name = tables.string(table, f"{_TABLE} {number}", "name")
    where = f'{_TABLE} "{name}"'
    tables.check_keys(table, where, _KEYS)
    base = tables.words(table, where, "base")
    hart = tables.within(table, where, "hart", HARTS)
    return TracerDescription(name, BASE if base is None else base, hart or 0)
