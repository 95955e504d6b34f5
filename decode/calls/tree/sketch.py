"""What a part of a history adds to a call tree: templates of what ended in it, and what depends on the stacks.

A call that returns to where it came from does the same on every stack. So a sketch is found once for each part, from
those of the parts in it: the calls that begin and end in it are a template, and what is left of its steps is applied to
stacks as often as the part ran. What may be left out is what `edges.simplify` leaves out.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import NamedTuple

from rvtrace_gdb.decode.calls.call_pairs import begin_index
from rvtrace_gdb.decode.calls.edges import CallEdge, StackOperation
from rvtrace_gdb.decode.calls.pieces.summaries import Summaries, Summary
from rvtrace_gdb.decode.calls.stacks.frame import UNKNOWN, StackOperationKind
from rvtrace_gdb.decode.calls.tree.template import BASE, Template
from rvtrace_gdb.decode.history.history import GAP, RepeatPath

_CALLED = frozenset({StackOperationKind.CALL, StackOperationKind.TAIL})
_COUNTED = _CALLED | {StackOperationKind.TRAP}
_NOTHING = frozenset[StackOperationKind]()
_REMEMBERED = 1 << 15

SiteOf = Callable[[StackOperationKind, int, int, bool], Hashable]
"""The site of a call, by the kind, the return address, the caller and the request of its frame."""


class StackTurn(NamedTuple):
    """An operation on the stack. If it turns out to be of a kind among *counted*, it calls *function*."""

    operation: StackOperation
    counted: frozenset[StackOperationKind]
    function: int


class RepeatedPart(NamedTuple):
    """A part that ran so many *times*, with *edge* in between."""

    inner: Summary
    edge: CallEdge
    times: int


TreeSketchItem = Template | StackTurn | RepeatedPart
TreeSketch = tuple[TreeSketchItem, ...]


def turns(summaries: Summaries, edge: CallEdge, first: int) -> Iterator[StackTurn]:
    """Yield the operations of a step to a *first* instruction. A trap may come before the first instruction of a called
    function: that counts as a call, too.
    """
    operations = edge.operations if edge.begins else ()
    for done, operation in enumerate(operations, 1):
        if done == len(operations):
            yield StackTurn(operation, _COUNTED, summaries.edges.functions.start_of(first))
        else:
            yield StackTurn(operation, _CALLED if operation.to != UNKNOWN else _NOTHING, operation.function)


class TreeSketches:
    """The sketches of all parts that ran in one program. *apart*: each part that ran in a function is kept."""

    def __init__(self, summaries: Summaries, site_of: SiteOf, *, apart: bool) -> None:
        self._summaries, self._site_of, self._apart = summaries, site_of, apart
        self._known: dict[int, TreeSketch] = {}  # by the id of the summary, which is kept
        self._rounds: dict[int, TreeSketch] = {}

    def of(self, summary: Summary) -> TreeSketch:
        """Return the sketch of a part."""
        known = self._known.get(id(summary))
        if known is None:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            known = self._known[id(summary)] = self._new_sketch(summary)
        return known

    def of_round(self, rounds: RepeatedPart) -> TreeSketch:
        """Return the sketch of a repetition and the step into it."""
        known = self._rounds.get(id(rounds.inner))
        if known is None:
            if len(self._rounds) >= _REMEMBERED:
                self._rounds.clear()
            known = self._rounds[id(rounds.inner)] = self._once_more((), rounds.edge, rounds.inner)
        return known

    def _new_sketch(self, summary: Summary) -> TreeSketch:
        part = summary.part
        if not summary.begins:
            return self._of_function(summary)
        if isinstance(part, RepeatPath):
            return self._of_rounds(part)
        if isinstance(part, tuple):
            return self._of_addresses(part)
        builder = self._builder()
        before: Summary | None = None
        for child in self._summaries.children(part):
            if before is not None:
                builder.go_on(turns(self._summaries, self._summaries.between(before, child), child.first))
            builder.add_all(self.of(child))
            before = child
        return builder.sketch

    def _of_function(self, summary: Summary) -> TreeSketch:
        if summary.first == GAP:
            return ()
        template = Template()
        function = self._summaries.edges.functions.start_of(summary.first)
        template.child((function, BASE)).ran(summary.part, 1, apart=self._apart)
        return (template,)

    def _of_addresses(self, part: tuple[int, ...]) -> TreeSketch:
        builder, functions, step = self._builder(), self._summaries.edges.functions, self._summaries.edges.step
        since = 0
        for number in range(1, len(part) + 1):
            edge = step(part[number - 1], part[number]) if number < len(part) else None
            if edge is not None and not edge.begins:
                continue
            node = builder.template.child((functions.start_of(part[since]), BASE))
            node.ran(part[since:number], 1, apart=self._apart)
            if edge is not None:
                since = number
                builder.go_on(turns(self._summaries, edge, part[number]))
        return builder.sketch

    def _of_rounds(self, part: RepeatPath) -> TreeSketch:
        """Return the sketch of repetitions: one of all of them if they leave no more behind than one does."""
        inner = self._summaries.summary_of(part.path)
        edge, once = self._summaries.between(inner, inner), self.of(inner)
        twice = self._once_more(once, edge, inner)
        if any(isinstance(item, RepeatedPart) for item in once) or _shape(twice) != _shape(once):
            return (RepeatedPart(inner, edge, part.times),)
        found, power, left = once, once, part.times - 1
        while left:
            if left & 1:
                found = self._joined_sketches(found, edge, inner.first, power)
            left >>= 1
            if left:
                power = self._joined_sketches(power, edge, inner.first, power)
        return found

    def _once_more(self, before: TreeSketch, edge: CallEdge, inner: Summary) -> TreeSketch:
        return self._joined_sketches(before, edge, inner.first, self.of(inner))

    def _joined_sketches(self, before: TreeSketch, edge: CallEdge, first: int, after: TreeSketch) -> TreeSketch:
        builder = self._builder()
        builder.add_all(before)
        builder.go_on(turns(self._summaries, edge, first))
        builder.add_all(after)
        return builder.sketch

    def _builder(self) -> "_TreeSketchBuilder":
        return _TreeSketchBuilder(self._site_of)


def _shape(sketch: TreeSketch) -> list[TreeSketchItem]:
    return [item for item in sketch if not isinstance(item, Template)]


def _operation(item: TreeSketchItem) -> StackOperation | None:
    return item.operation if isinstance(item, StackTurn) else None


class _TreeSketchBuilder:
    """Puts a sketch together, and makes templates of the calls that end."""

    def __init__(self, site_of: SiteOf) -> None:
        self._site_of = site_of
        self._items: list[TreeSketchItem] = []

    @property
    def sketch(self) -> TreeSketch:
        """Return what was put together."""
        return tuple(self._items)

    @property
    def template(self) -> Template:
        """Return the template of what runs now."""
        last = self._items[-1] if self._items else None
        if not isinstance(last, Template):
            last = Template()
            self._items.append(last)
        return last

    def add_all(self, sketch: TreeSketch) -> None:
        """Go on with another sketch, which stays as it is."""
        for item in sketch:
            if isinstance(item, Template):
                self.template.add(item, 1)
            elif isinstance(item, StackTurn):
                self.go_on((item,))
            else:
                self._items.append(item)

    def go_on(self, steps: Iterable[StackTurn]) -> None:
        """Go on with these operations."""
        for turn in steps:
            if turn.operation.kind is StackOperationKind.BEGIN:
                continue
            begin = begin_index(turn.operation, self._items, Template, _operation)
            if begin is None:
                self._items.append(turn)
                continue
            ended = self._ended(self._items[begin:])
            del self._items[begin:]
            self.template.absorb(ended)

    def _ended(self, items: list[TreeSketchItem]) -> Template:
        """Return the template of what ran between a call, or a trap, and its end, both at the same place."""
        root, top = Template(), None
        for item in items:
            if isinstance(item, Template):
                assert top is not None
                top.absorb(item)
                continue
            assert isinstance(item, StackTurn)
            operation = item.operation
            if operation.kind is not StackOperationKind.SWITCH:
                site = self._site_of(operation.kind, operation.back, operation.origin, operation.asked)
                top = _TemplateCall(operation, site, root, top)
                if operation.kind in item.counted:
                    top.caller.child((item.function, site)).calls += 1
            elif top is not None and top.returns_to(operation.function):
                top = top.below
        return root


class _TemplateCall:
    """A call that is under way, made at a *site*. *below*: the one it was made in, None if it was made at the place
    that *root* stands for.
    """

    def __init__(
        self, operation: StackOperation, site: Hashable, root: Template, below: "_TemplateCall | None"
    ) -> None:
        self._operation, self._site, self._root, self.below = operation, site, root, below

    @property
    def caller(self) -> Template:
        """Return the function that called: a template that has something to be added."""
        missing: list[_TemplateCall] = []
        call: _TemplateCall | None = self
        while call is not None:
            missing.append(call)
            call = call.below
        found, site = self._root, BASE
        for call in reversed(missing):
            found = found.child((call._operation.origin, site))
            site = call._site
        return found

    def absorb(self, template: Template) -> None:
        """Add what ran in the called function."""
        caller = self.caller
        for key, child in template.moved_up(self._site).items():
            mine = caller.children.setdefault(key, child)
            if mine is not child:
                mine.absorb(child)

    def returns_to(self, function: int) -> bool:
        """Return whether a step to a function ends this call: a jump to another one, which has come back."""
        return self._operation.kind is StackOperationKind.TAIL and self._operation.origin == function
