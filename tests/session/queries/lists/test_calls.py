"""Pages of functions and of the tree of calls, as gdb's `record function-call-history` numbers them."""

from collections.abc import Sequence
from typing import Any

import pytest

from rvtrace_gdb.decode.history.builder import HistoryBuilder
from rvtrace_gdb.decode.history.events import Accounting
from rvtrace_gdb.decode.history.history import History, Path
from rvtrace_gdb.decode.program.context_images import ContextImages
from rvtrace_gdb.decode.program.csrs import ProgramContext
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.session.errors import NoTrace
from rvtrace_gdb.session.queries.lists.functions import FunctionList
from rvtrace_gdb.session.rpc.protocol import BadRequest
from rvtrace_gdb.session.rpc.server import Methods
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import silent
from tests.decode import assembler as asm
from tests.decode.calls.call_histories import history_of
from tests.decode.calls.test_call_history import CALL, HANDLED, PLAIN, Code
from tests.helpers.gdb_transcripts import FOLDER

PLACES = "main.1 f.0 f.1 g.0 g.1 f.2 - main.1 g.0"


def history() -> History:
    return history_of(PLAIN.pcs(PLACES))


def functions() -> FunctionList:
    return FunctionList(history(), ContextImages(PLAIN.image))


def columns(rows: Sequence[Any], names: str) -> list[tuple[Any, ...]]:
    """These columns of the rows: a new one needs a test of its own."""
    return [tuple(getattr(row, name) for name in names.split()) for row in rows]


def test_rows() -> None:
    main, f, g = (PLAIN.starts[name] for name in ("main", "f", "g"))
    assert columns(functions().rows(1, 99), "number begin end pc level what name addresses") == [
        (1, 1, 1, main + 4, 0, "", "main", []),
        (2, 2, 3, f, 1, "", "f", []),
        (3, 4, 5, g, 2, "", "g", []),
        (4, 6, 6, f + 8, 1, "", "f", []),
        (5, 7, 7, None, None, "lost; trace byte 0x6", None, []),
        (6, 8, 8, main + 4, 0, "", "main", []),
        (7, 9, 9, g, 1, "", "g", []),
    ]
    assert [row.number for row in functions().rows(0, 3)] == [1, 2]
    assert [row.number for row in functions().rows(7, 99)] == [7]


def test_what_led_to_a_handler() -> None:
    """As the trace says it, and where it does not."""
    trap = HANDLED.trap(1, "main.1", "handler.0")
    told = FunctionList(history_of(HANDLED.pcs("main.0 handler.0"), [trap]), ContextImages(HANDLED.image))
    untold = FunctionList(history_of(HANDLED.pcs("main.3 handler.0")), ContextImages(HANDLED.image))
    assert [row.what for row in told.rows(1, 9)] == ["", "interrupt"]
    assert [row.what for row in untold.rows(1, 9)] == ["", "trap"]


def test_addresses_only_if_asked_for() -> None:
    """Each once, however often it ran."""
    code = Code(main=[asm.NOP, CALL], spin=[asm.NOP, asm.jal(-4)])
    found = FunctionList(history_of(code.pcs("main.0 main.1" + 9 * " spin.0 spin.1")), ContextImages(code.image))
    main, spin = code.starts["main"], code.starts["spin"]
    assert [row.addresses for row in found.rows(1, 9, lines=True)] == [[main, main + 4], [spin, spin + 4]]
    assert [row.addresses for row in found.rows(1, 9)] == [[], []]


def test_the_tree() -> None:
    found = functions()
    main, f, g = (PLAIN.starts[name] for name in ("main", "f", "g"))
    whole = [
        (0, main, "main", 0, 8, 2, False, None),
        (1, f, "f", 1, 5, 3, False, None),
        (2, g, "g", 1, 2, 2, False, None),
        (1, g, "g", 1, 1, 1, False, None),
    ]
    names = "level pc name calls instructions own_instructions trap hidden"
    assert found.tree(0) == 4 and columns(found.tree_rows(1, 99), names) == whole
    assert columns(found.tree_rows(2, 3), names) == whole[1:2]
    assert found.tree(2) == 3
    assert columns(found.tree_rows(1, 9), names) == [whole[0], (*whole[1][:-1], 1), whole[3]]


def test_names_that_gdb_does_not_know() -> None:
    """Of a process where the program has something else, and of code that is in no ELF; gdb knows the rest itself."""
    program = ContextImages(PLAIN.image)
    program.attach(Code(other=[asm.NOP] * 2).image, scontext=1)
    builder = HistoryBuilder()
    for scontext in (0, 1):
        builder.context(ProgramContext(0, scontext=scontext))
        builder.append(Path([tuple(PLAIN.pcs("main.1"))]))
    found = FunctionList(builder.finish(Accounting(0, 0, 0, 0)), program)
    assert [row.name for row in found.rows(1, 9)] == ["main", "other"]
    elf = FOLDER / "demo64.elf"
    image = Image.from_elf(elf)
    known = FunctionList(history_of([image.entry, image.entry + 4]), ContextImages(image))
    assert image.symbol(image.entry) and [row.name for row in known.rows(1, 9)] == [None]
    known.tree(0)
    assert [row.name for row in known.tree_rows(1, 9)] == [None]


@pytest.mark.parametrize("what", ["functions", "calls"])
def test_rows_of_nothing(what: str) -> None:
    with pytest.raises(NoTrace):
        Methods(Session()).call("rows", {"what": what, "begin": 1, "end": 2}, silent)
    with pytest.raises(BadRequest):
        Methods(Session()).call("rows", {"what": what, "begin": 1, "end": 100_000}, silent)
