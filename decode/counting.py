"""What the kernel counts in the parts of a history (decode/kernel/counts/counts.c): for searches, and for coverage.

It numbers the parts that the entries consist of, each after everything it contains. Then one pass upwards finds how
many matches each part has, and one downwards how often each ran. Python does the same without it (decode/search.py,
decode/coverage.py), in some fifty times the time.
"""

from array import array
from collections.abc import Container, Iterator, Sequence
from types import ModuleType
from typing import TYPE_CHECKING

from rvtrace_gdb.decode.calls.states import NOTHING, CallStep, Tally
from rvtrace_gdb.decode.history.history import AnyPath, Path, RepeatPath
from rvtrace_gdb.support.errors import Progress

if TYPE_CHECKING:
    from rvtrace_gdb.decode.kernel._kernel import Executions

# What is said of an address, as in decode/kernel/counts/counts.h.
_WANTED, _EXCLUDES_NEXT = 1, 2

_SLICE = 1 << 14  # steps, parts or entries between two calls of the progress


class NumberedParts:
    """The parts of what *steps* lead to, which may become more; and of other entries. *module* has the kernel."""

    def __init__(self, module: ModuleType, steps: Sequence[CallStep]) -> None:
        self.module, self._steps = module, steps
        self.parts = module.Parts(Path, RepeatPath)
        self._known: list[int] = []

    def follow(self, progress: Progress) -> None:
        """Number the parts of all steps there are. Raises what *progress* raises, and can be called again then."""
        _, _, done = self.parts.size()
        add = self.parts.add_step
        while done < len(self._steps):
            progress("preparing to count (parts)", done, len(self._steps))
            for step in self._steps[done : done + _SLICE]:
                last = step.origin.last
                add(step.unit.part, None if last == NOTHING else last, step.unit.trapped)
            _, _, done = self.parts.size()

    def addresses(self) -> list[int]:
        """Return the address of each number."""
        if len(self._known) != self.parts.size()[0]:
            self._known = self.parts.addresses()
        return self._known


class KernelMatches:
    """The matches of a query in the steps of a history, counted by the kernel: as `StepMatches` of decode/search.py.

    *addresses*, *not_after*: those of the `AddressQuery`. *entered*: it has one.
    """

    def __init__(
        self,
        numbered: NumberedParts,
        addresses: Container[int],
        not_after: Container[int],
        progress: Progress,
        *,
        entered: bool,
    ) -> None:
        self._parts, self._entered = numbered.parts, entered
        known = numbered.addresses()
        flags = bytes(map(addresses.__contains__, known))
        if not_after:
            before = self._parts.before(flags)
            flags = bytes(
                flag | (mark and pc in not_after and _EXCLUDES_NEXT)
                for flag, mark, pc in zip(flags, before, known, strict=True)
            )
        self._flags = flags
        count = self._parts.size()[1]
        self._inner, self._ends = bytearray(8 * count), bytearray(count)
        for at in range(0, count, _SLICE):
            progress("searching the history (parts)", at, count)
            self._parts.match(flags, self._inner, self._ends, at, min(at + _SLICE, count))

    def totals(self, tallies: Sequence[Tally], progress: Progress) -> Iterator[int]:
        """Yield the number of matches in each span."""
        for number, (steps, times) in enumerate(tallies):
            progress("searching the history (parts)", number, len(tallies))
            yield self._parts.total(self._flags, self._inner, self._ends, self._entered, steps, times)

    def counts(self, steps: Sequence[CallStep]) -> list[int]:
        """Return the number of matches in the entry that each step leads to."""
        numbers = array("I", [step.number for step in steps])
        return list(array("Q", self._parts.counts(self._flags, self._inner, self._ends, self._entered, numbers)))

    def excluded(self, steps: Sequence[CallStep]) -> list[CallStep]:
        """Return those of all *steps* whose entry begins with a match, were it not for the instruction before."""
        return [steps[number] for number in self._parts.excluded(self._flags)]


class PartTallies:
    """How often each instruction of some entries ran, and each step was made. What was done when it was interrupted is
    not done again.
    """

    def __init__(self, numbered: NumberedParts) -> None:
        self._numbered = numbered
        self._counted: Executions = numbered.module.Executions(numbered.parts)
        self._done = 0

    def add_steps(self, tallies: Sequence[Tally], progress: Progress) -> None:
        """Add the entries that steps led to. Raises what *progress* raises, and can be called again then."""
        for steps, times in tallies[self._done :]:
            progress("adding up (parts)", self._done, len(tallies))
            self._counted.add_steps(steps, times)
            self._done += 1

    def add_entries(self, entries: Sequence[AnyPath], progress: Progress) -> None:
        """Add consecutive entries, once. Raises what *progress* raises, and can be called again then."""
        listed = entries if isinstance(entries, list) else list(entries)
        while self._done < len(listed):
            progress("counting (parts)", self._done, len(listed))
            end = min(self._done + _SLICE, len(listed))
            self._counted.add_entries(listed, self._done, end)
            self._done = end

    def result(self, progress: Progress) -> tuple[dict[int, int], dict[tuple[int, int], int]]:
        """Return how often each instruction ran, and how often each step was made. Raises what *progress* raises."""
        total = self._numbered.parts.size()[1]
        progress("counting instructions (parts)", 0, total)
        while left := self._counted.spread(_SLICE):
            progress("counting instructions (parts)", total - left, total)
        ran, made = self._counted.result()
        addresses = self._numbered.addresses()
        counts = zip(addresses, array("Q", ran), strict=False)  # parts of other entries may have come meanwhile
        return (
            {pc: count for pc, count in counts if count},
            {(addresses[source], addresses[target]): count for source, target, count in made if source and target},
        )

