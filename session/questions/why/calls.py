"""Calls of functions without source lines, as one step: what they were made of is what they took from outside."""

from typing import NamedTuple

from rvtrace_gdb.decode.calls.stacks.frame import StackOperationKind
from rvtrace_gdb.decode.program.csrs import X
from rvtrace_gdb.session.questions.why.frames import Activations
from rvtrace_gdb.session.questions.why.links import Origin, UseRole, ValueLink, ValueLinks
from rvtrace_gdb.session.questions.why.names import ProgramNames
from rvtrace_gdb.session.questions.why.steps import ChainSteps, Use, ValueMaker
from rvtrace_gdb.support.errors import Progress, silent

_ARGUMENTS = range(X + 10, X + 18)
_NO_REASONS = frozenset({X + 2, X + 3, X + 4})
_MOST = 20_000
"""Instructions of a call that are looked at."""


class FoldedCall(NamedTuple):
    """A call of a function without source lines. *position*: of the call; so many of its *instructions* had a part
    in the value; *is_whole*: all were looked at.
    """

    position: int
    instructions: int
    uses: list[Use]
    is_whole: bool


class FoldedCalls:
    """The calls of functions without source lines in a history."""

    def __init__(
        self, links: ValueLinks, activations: Activations, names: ProgramNames, steps: ChainSteps, *, thin: bool
    ) -> None:
        self._links, self._activations, self._names, self._steps = links, activations, names, steps
        self._thin = thin

    def around(self, position: int) -> int | None:
        """Return the call, in code with source lines, of the function without any in which an instruction ran, or of
        what that was called by; None: there is none.
        """
        if self._names.is_own(position):
            return None
        found: int | None = None
        for made, kind in self._activations.makers(position):
            if kind is not StackOperationKind.CALL or self._names.is_own(made + 1):
                break
            found = made
        return found if found is not None and self._names.is_own(found) else None

    def folded(self, maker: ValueMaker, call: int, progress: Progress = silent) -> FoldedCall:
        """Return what a value that was made in a call is made of: arguments, and memory that was written before."""
        found: dict[tuple[object, ...], Use] = {}
        seen, waiting = {maker.position}, [(maker.position, maker.result)]
        while waiting and len(seen) < _MOST:
            user, result = waiting.pop()
            progress("following a call (instructions)", len(seen), _MOST)
            for link in self._links.links_of(user, result):
                if link.register in _NO_REASONS or (self._thin and link.role is UseRole.ADDRESS):
                    continue
                at = link.position if link.origin is Origin.INSTRUCTION else None
                if at is not None and at > call:
                    if at not in seen:
                        seen.add(at)
                        waiting.append((at, link.register))
                elif self._is_given(link):
                    use = self._steps.use(link, user)
                    found.setdefault((link.register, link.address, use.maker), use)
        return FoldedCall(call, len(seen), list(found.values()), not waiting)

    def _is_given(self, link: ValueLink) -> bool:
        """Return whether a link out of the call is one of its reasons: not what the library itself had before."""
        if link.register is not None:
            return link.register in _ARGUMENTS
        if link.origin is not Origin.INSTRUCTION or link.position is None:
            return link.origin is not Origin.CONSTANT
        return self._names.is_own(link.position) or self.around(link.position) is not None
