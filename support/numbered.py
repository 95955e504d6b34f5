"""What is said alike of components whose numbers follow each other, said once: "encoder0 to encoder15"."""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from rvtrace_gdb.support.text import Problem

T = TypeVar("T")
MANY = 3
"""So many are said as one."""
_NAME = re.compile(r"(?P<kind>[A-Za-z_]+)(?P<number>\d+)")
_SAID = re.compile(rf"{_NAME.pattern}(?P<rest>[ :].*)", re.DOTALL)


def folded(texts: Iterable[str]) -> list[str]:
    """Return texts, of which three or more that say the same of components with numbers that follow each other are one,
    in the place of the first: "encoder0 to encoder15: no HTM; using BTM".
    """
    runs: list[list[str]] = []
    newest: dict[tuple[str, int, str], list[str]] = {}
    for text in texts:
        found = None if isinstance(text, Problem) else _SAID.fullmatch(text)
        run = None if found is None else newest.get((found["kind"], int(found["number"]) - 1, found["rest"]))
        if run is None:
            runs.append(run := [])
        run.append(text)
        if found is not None:
            newest[found["kind"], int(found["number"]), found["rest"]] = run
    return [text for run in runs for text in ([_of_several(run)] if len(run) >= MANY else run)]


def _of_several(texts: Sequence[str]) -> str:
    names = [text.partition(" ")[0].rstrip(":") for text in (texts[0], texts[-1])]
    rest = texts[0].partition(" ")[2].removeprefix("has ")
    return f"{names[0]} to {names[1]}: {rest}"


def alike(items: Iterable[T], name: Callable[[T], str], fact: Callable[[T], object]) -> list[list[T]]:
    """Return items in groups. Three or more, one after another, are a group if their names have numbers that follow
    each other, up or down, and one *fact* holds for all; every other item is a group of its own. A group goes up.
    """
    groups: list[list[T]] = []
    step = 0
    for item in items:
        last = groups[-1] if groups else []
        found = _step(name(last[-1]), name(item)) if last and fact(last[-1]) == fact(item) else 0
        if found and (len(last) == 1 or found == step):
            last.append(item)
        else:
            groups.append([item])
        step = found
    parts = [part for group in groups for part in ([group] if len(group) >= MANY else [[item] for item in group])]
    return [part if len(part) == 1 or _step(*map(name, part[:2])) > 0 else part[::-1] for part in parts]


def _step(before: str, after: str) -> int:
    """Return 1 or -1 if the numbers of two names of one kind follow each other up or down, else 0."""
    one, two = _NAME.fullmatch(before), _NAME.fullmatch(after)
    if one is None or two is None or one["kind"] != two["kind"]:
        return 0
    step = int(two["number"]) - int(one["number"])
    return step if abs(step) == 1 else 0


def component_number(name: str) -> int:
    """Return the number of a component, 0 if its name ends with none."""
    found = _NAME.fullmatch(name)
    return 0 if found is None else int(found["number"])


def names_text(names: Sequence[str]) -> str:
    """Return names of components that are alike: "funnel0 to funnel3", or "funnel0, funnel2 and funnel3"."""
    groups = alike(names, str, lambda _: None)
    parts = [group[0] if len(group) == 1 else f"{group[0]} to {group[-1]}" for group in groups]
    return ", ".join(parts[:-1]) + (" and " if parts[1:] else "") + parts[-1]
