"""A name of a class, or of a type at module level, stands for one thing: a search for it finds one definition."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from tests.repository.test_rooms import modules, statements, tree

FORMATS = re.compile(r"(?<![a-z])(ntrace|etrace|ctr|tandem|stepping)(?![a-z])")
"""Modules whose names differ in this alone are parallels: the same module of another format, or what formats share.
A role has the same name in them (`Options`, `Itemizer`, `StreamDecoder`), and nobody reads two of them at a time.
"""
PACKAGES = re.compile(r"decode\.(?:ntrace|etrace)\.")
"""Where a format has one class of a name, the other may have one, too, in whatever module: `EncoderOptions`."""


def _defined(path: Path) -> Iterator[str]:
    """The names of classes at any depth, and of types at module level, without the underscore of private ones."""
    types = (node.targets[0] for node in tree(path).body if isinstance(node, ast.Assign))
    names = [node.name for node in statements(tree(path)) if isinstance(node, ast.ClassDef)]
    names += [target.id for target in types if isinstance(target, ast.Name)]
    return (name.lstrip("_") for name in names if name.lstrip("_")[:1].isupper() and not name.isupper())


def several(defined: dict[str, set[str]]) -> set[str]:
    """Those *defined* in modules that are no parallels of each other, by name."""
    return {name for name, places in defined.items() if not _are_parallels(places)}


def _are_parallels(places: set[str]) -> bool:
    formats = {place.split(".")[1] for place in places if PACKAGES.match(place)}
    return len(formats) == len(places) or len({FORMATS.sub("FORMAT", place) for place in places}) == 1


def test_a_name_stands_for_one_thing() -> None:
    defined = defaultdict(set)
    for module, path in modules():
        for name in _defined(path):
            defined[name].add(module)
    assert {name: sorted(defined[name]) for name in several(defined)} == {}


def test_parallels_are_the_same_module_of_another_format() -> None:
    assert several({"Options": {"decode.ntrace.options", "decode.etrace.options"}}) == set()
    assert several({"Closing": {"decode.check.ntrace_comparison", "decode.check.etrace_comparison"}}) == set()
    assert several({"EncoderOptions": {"decode.ntrace.options", "decode.etrace.encoder.options"}}) == set()
    assert several({"Arrival": {"decode.etrace.state", "decode.etrace.encoder.state"}}) == {"Arrival"}
    assert several({"Mode": {"decode.ntrace.state", "session.proxy.state"}}) == {"Mode"}
    assert several({"Run": {"decode.ntrace.walk", "decode.history.history"}}) == {"Run"}
