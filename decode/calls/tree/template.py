"""What ran above a place of a call tree, wherever that place is: a tree that is added below it, so many times."""

from collections.abc import Hashable

from rvtrace_gdb.decode.history.history import PathPart

TemplateKey = tuple[int, Hashable]
"""The start of a function, and the site of its call: what tells the calls of a function by the same caller apart."""
BASE = None
"""The site of what runs at the place itself: that of the place."""


class Template:
    """A function that runs above a place; or, as the root, the place itself.

    calls     how often it was called there
    own       instructions that ran in it there
    parts     the parts that ran in it, each with its times, by their ids; only where they are kept apart
    children  the functions that it called; of a root, those that ran at the place
    """

    __slots__ = ("calls", "children", "own", "parts")

    def __init__(self) -> None:
        self.calls = self.own = 0
        self.parts: dict[int, tuple[PathPart, int]] | None = None
        self.children: dict[TemplateKey, Template] = {}

    def child(self, key: TemplateKey) -> "Template":
        """Return a child, a new one if there is none."""
        found = self.children.get(key)
        if found is None:
            found = self.children[key] = Template()
        return found

    def ran(self, part: PathPart, times: int, *, apart: bool) -> None:
        """Count a part that ran so many times."""
        self.own += times * len(part)
        if apart:
            if self.parts is None:
                self.parts = {}
            self.parts[id(part)] = part, self.parts.get(id(part), (part, 0))[1] + times

    def add(self, other: "Template", times: int) -> None:
        """Add another one, so many times. It stays as it is."""
        waiting = [(self, other)]
        while waiting:
            into, added = waiting.pop()
            into._add_amounts(added, times)
            for key, child in added.children.items():
                waiting.append((into.child(key), child))

    def absorb(self, other: "Template") -> None:
        """Add another one, which nobody needs any more: what is new here is taken as it is."""
        waiting = [(self, other)]
        while waiting:
            into, added = waiting.pop()
            into._add_amounts(added, 1)
            for key, child in added.children.items():
                mine = into.children.setdefault(key, child)
                if mine is not child:
                    waiting.append((mine, child))

    def moved_up(self, site: Hashable) -> "dict[TemplateKey, Template]":
        """Return the children of a root, as those of the function that called from a site."""
        return {(function, site): child for (function, _), child in self.children.items()}

    def _add_amounts(self, other: "Template", times: int) -> None:
        self.calls += times * other.calls
        self.own += times * other.own
        if other.parts is not None:
            if self.parts is None:
                self.parts = {}
            for key, (part, ran) in other.parts.items():
                self.parts[key] = part, self.parts.get(key, (part, 0))[1] + times * ran
