"""Tandem traces in capture.json: how they are written and checked. See docs/capture-format.md."""

from collections.abc import Callable
from typing import Any

from rvtrace_gdb.decode.tandem.dialect import DIALECTS
from rvtrace_gdb.decode.tandem.parameters import BadParameters, Parameters
from rvtrace_gdb.session.captured import CapturedTandem, TandemPort
from rvtrace_gdb.session.json_table import Member, Table

_WIDTHS = range(65)  # which of them an encoder can have, Parameters knows


def describe(captured: CapturedTandem, member: str, members: dict[str, bytes]) -> dict[str, Any]:
    """The description of one hart's trace, and the member it refers to."""
    members[member] = captured.data
    told = captured.in_force.parameters
    return {
        "name": captured.in_force.name,
        "hart": captured.hart,
        "dialect": told.dialect.name,
        "xlen": told.xlen,
        "flen": told.flen,
        "mlen": told.mlen,
        "eaddr": told.eaddr,
        "supervisor": told.supervisor,
        "member": member,
        "size": len(captured.data),
        "wrapped": captured.wrapped,
    }


def read(root: Table, fetch: Callable[[Member], bytes]) -> tuple[CapturedTandem, ...]:
    """All of them. Raises `BadDescription` and what *fetch* raises."""
    return tuple(_read(table, fetch) for table in root.tables("tandem"))


def _read(table: Table, fetch: Callable[[Member], bytes]) -> CapturedTandem:
    port = TandemPort(table.text("name"), _parameters(table))
    return CapturedTandem(table.number("hart"), port, fetch(table.member()), table.flag("wrapped"))


def _parameters(table: Table) -> Parameters:
    dialect = DIALECTS.get(table.text("dialect"))
    if dialect is None:
        raise table.bad("dialect")
    try:
        return Parameters(
            table.number("xlen", _WIDTHS),
            table.number("flen", _WIDTHS),
            table.number("mlen", _WIDTHS),
            table.number("eaddr", _WIDTHS),
            dialect,
            table.flag("supervisor"),
        )
    except BadParameters as error:
        raise table.bad(error.name) from None
