"""The public Python API, as `help()` shows it: everything is documented, with its units and its errors."""

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import pytest

import rvtrace_gdb

UNITS = {"float": "second", "timeout": "second", "within": "second", "size": "byte|instruction", "offset": "byte"}
"""An annotation, or the name of a parameter or of a field, and the unit that the text beside it has to name."""


def functions(exported: object) -> Iterator[tuple[str, Callable[..., Any]]]:
    """What a class has of its own or inherits from ours, or the function itself."""
    if not inspect.isclass(exported):
        yield from [(exported.__name__, exported)] if inspect.isfunction(exported) else []
        return
    for part in exported.__mro__:
        if part.__module__.startswith("rvtrace_gdb"):
            for name, member in vars(part).items():
                function = _function(member)
                if not name.startswith("_") and function is not None:
                    yield f"{part.__name__}.{name}", function


def _function(member: object) -> Callable[..., Any] | None:
    if isinstance(member, property):
        return member.fget
    if isinstance(member, cached_property):
        return member.func
    member = getattr(member, "__func__", member)
    return member if inspect.isfunction(member) else None


PUBLIC = [name for name in rvtrace_gdb.__all__ if name != "GAP"]  # a number, documented where it is defined
FUNCTIONS = dict(pair for name in PUBLIC for pair in functions(getattr(rvtrace_gdb, name)))


def text(function: Callable[..., Any]) -> str:
    return " ".join((function.__doc__ or "").split())


@pytest.mark.parametrize("name", PUBLIC)
def test_what_is_exported_is_documented(name: str) -> None:
    exported = getattr(rvtrace_gdb, name)
    assert exported.__doc__ and not exported.__doc__.startswith(f"{name}("), "which is what a NamedTuple says by itself"


def test_all_members_are_documented() -> None:
    assert [name for name, function in FUNCTIONS.items() if not text(function)] == []
    assert len(FUNCTIONS) > 50


def raises(function: Callable[..., Any]) -> bool:
    """Whether it raises an error itself."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    return any(isinstance(node, ast.Raise) and node.exc is not None for node in ast.walk(tree))


def test_errors_are_in_the_text() -> None:
    silent = [
        name for name, function in FUNCTIONS.items() if raises(function) and not re.search("Raises? ", text(function))
    ]
    assert silent == []


def kind(annotation: object) -> str:
    """The name of the type, or of the first of several."""
    return annotation.__name__ if isinstance(annotation, type) else str(annotation).split(" ")[0]


def test_units_are_in_the_text() -> None:
    unclear = [
        f"{name}: {parameter}"
        for name, function in FUNCTIONS.items()
        for parameter, annotation in inspect.get_annotations(function).items()
        for unit in [UNITS.get(parameter) or UNITS.get(kind(annotation))]
        if unit is not None and not re.search(unit, f"{parameter} {text(function)}")
    ]
    assert unclear == []


def test_fields_have_their_units() -> None:
    """Those of the rows that lists are made of."""
    unclear = [
        f"{name}.{field}"
        for name in PUBLIC
        for field in getattr(getattr(rvtrace_gdb, name), "_fields", ())
        for unit in [UNITS.get(field)]
        if unit is not None and not re.search(unit, getattr(rvtrace_gdb, name).__doc__)
    ]
    assert unclear == []
