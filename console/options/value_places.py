"""Registers and memory that a user names: as `rvtrace why`, `rvtrace who-wrote` and `rvtrace values` take them."""

from typing import NamedTuple

from rvtrace_gdb.console.options.locations import check_data, memory_place
from rvtrace_gdb.decode.expressions.syntax import BadExpression
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.tandem.wording import regno_of
from rvtrace_gdb.session.questions.why.asking import expression_place
from rvtrace_gdb.session.rpc.questions.analysis import SIZE_MOST
from rvtrace_gdb.session.selected_history import SelectedHistory
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import Progress, RvtraceError, silent

WORDS = "$REGISTER, EXPRESSION, ADDRESS or ADDRESS,SIZE"
"""What a user can name, for the help of commands."""
_MARKS = "()[]*&.-> "
_X0, _F0 = 0x1000, 0x1020


class PlaceError(RvtraceError):
    """What the user named is nothing of this trace."""


class PlaceText(NamedTuple):
    """What a user typed for a place of the program *image*. *file*: the trace, for what to type."""

    text: str
    image: Image
    file: str


def value_place(
    session: Session, selected: SelectedHistory, named: PlaceText, position: int, progress: Progress = silent
) -> dict[str, object]:
    """Return what a text means before the instruction at a position, as parameters of the list `why` and of the method
    `who_wrote`: a `register` by its name, or `where`, the address and size of memory. Raises PlaceError, LocationError.
    """
    text, image, file = named
    name = text.removeprefix("$")
    if text.startswith("$") and not any(mark in text for mark in _MARKS):
        if name != "pc" and regno_of(name) is None:
            raise PlaceError(f"there is no register {text}")
        return {"register": name}
    where: tuple[int, int] | int | None
    head, comma, size = text.rpartition(",")
    has_size = bool(comma) and size.isdecimal()
    try:
        where = expression_place(session, selected, head if has_size else text, position, progress)
        if has_size and not isinstance(where, int):
            where = where[0], int(size)
    except BadExpression as error:
        check_data(text, image, file)
        where = memory_place(text, image)
        if where is None and (text == "pc" or regno_of(text) is not None):
            return {"register": text}
        if where is None:
            raise PlaceError(f"{text}: {error}") from None
    if isinstance(where, int):
        return {"register": f"x{where - _X0}" if where < _F0 else f"f{where - _F0}"}
    if not 0 < where[1] <= SIZE_MOST:
        raise PlaceError(f"{text}: SIZE is 1 to {SIZE_MOST}")
    return {"where": list(where)}
