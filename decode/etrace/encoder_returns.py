"""When an E-Trace encoder tells how many calls or returns there were, for returns it does not report.

Source: Efficient Trace for RISC-V 2.0, "Format 2 irreport and irdepth"; the v0.8 extension "Implicit Return", "Format 2
irreport and irets".
"""

from enum import Enum

from rvtrace_gdb.decode.etrace.encoder_models import PUSH, Returns
from rvtrace_gdb.decode.etrace.options import Parameters
from rvtrace_gdb.decode.ingress import BRANCH, Block
from rvtrace_gdb.decode.instructions import IType

_MOST_IRETS = 255


class Reached(Enum):
    """How an instruction was reached, as far as returns go."""

    OTHERWISE = 0
    EXPECTED = 1
    """By a return to the address expected."""
    MISSED = 2
    """By a return to another one, or one too many to leave out."""
    UNKNOWN = 3
    """By a return of which nothing was expected."""


class ReturnCount:
    """The return addresses expected, and what happened since the last report that a decoder may need to know."""

    def __init__(self, parameters: Parameters) -> None:
        self._model = Returns(parameters)
        self._counts_returns = parameters.iret_ext
        self._irets = 0  # left out since the last branch or report
        self._ambiguous = False  # a return since the last call, and no branch since that

    def synchronize(self, *, reset: bool) -> None:
        """A synchronization packet goes out."""
        self._irets = 0
        self._ambiguous = False
        if reset:
            self._model.reset()

    def reported(self) -> None:
        """An address goes out."""
        self._irets = 0
        self._ambiguous = False

    @property
    def is_open(self) -> bool:
        """A synchronization packet alone would leave open which of several returns came before it."""
        return self._irets > 0 if self._counts_returns else self._ambiguous

    def misses(self, block: Block, target: int) -> bool:
        """Whether `follow` would be `Reached.MISSED`."""
        if block.itype is not IType.RETURN:
            return False
        return self._model.misses(target) or (self._is_full() and len(self._model) > 0)

    def follow(self, block: Block, target: int, *, told: bool) -> Reached:
        """*block* has led to *target*, which is *told* by the code."""
        itype = block.itype
        if block.ending == BRANCH:
            self._irets = 0
            self._ambiguous = False
        elif itype in PUSH:
            self._model.call(block.fall)
            self._ambiguous = False
        elif itype is IType.RETURN and told:
            if self._counts_returns:
                self._model.expects(target)
        elif itype is IType.RETURN:
            return self._follow_return(target)
        return Reached.OTHERWISE

    def _follow_return(self, target: int) -> Reached:
        expected = self._model.expects(target)
        self._ambiguous = True
        if expected is None:
            return Reached.UNKNOWN
        if not expected or self._is_full():
            return Reached.MISSED
        self._irets += 1
        return Reached.EXPECTED

    def _is_full(self) -> bool:
        return self._counts_returns and self._irets == _MOST_IRETS

    def fields(self, reached: Reached, *, target: bool) -> dict[str, int]:
        """irreport and what goes with it, for an instruction reached so; *target*: of an uninferable discontinuity."""
        if self._counts_returns:
            return self._irets_fields(reached, target)
        depth = len(self._model)
        if reached is Reached.MISSED:
            return {"irreport": 1, "irdepth": depth}
        if reached is Reached.EXPECTED:
            return {"irreport": 1, "irdepth": depth} if depth else {}
        return {"irreport": 1, "irdepth": depth} if self._ambiguous and not target else {}

    def _irets_fields(self, reached: Reached, target: bool) -> dict[str, int]:
        irets = self._irets - (reached is Reached.EXPECTED)
        if target and reached is Reached.OTHERWISE:
            return {}
        if irets or reached in (Reached.EXPECTED, Reached.MISSED):
            return {"irreport": 1, "irets": irets}
        return {}
