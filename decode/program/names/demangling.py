"""The names that C++ and Rust compilers make, as they stand in the program.

The package `demangle` reads them, in the spelling of GNU, which is gdb's. It is loaded with the first such name.
Without it names stay as they are in the file.

Source: Itanium C++ ABI, 5.1 "External Names (a.k.a. Mangling)"; Rust RFC 2603 (`_R`). Which names end in .constprop.0
and the like: GCC, `clone_function_name`.
"""

import re
from functools import lru_cache
from typing import Any, NamedTuple

_LANGUAGES = ("itanium", "rust")
_SPELLING = "gnu"
_CLONE = re.compile(r"(.+?)((?:\.(?!cold\b)[A-Za-z_]\w*(?:\.\d+)*)+)")
_HASH = re.compile(r"17h[0-9a-f]{16}E(?:\.|$)")


class Name(NamedTuple):
    """A name as it stands in the program.

    full     with all that the linker's name says
    plain    without the result of a template, and without what a copy of the function is for (`[clone .isra.0]`)
    inside   it is in a function: a local class, or a lambda
    rust     it is one of Rust
    """

    full: str
    plain: str
    inside: bool = False
    rust: bool = False


def is_mangled(name: str) -> bool:
    """Return whether the linker has the name in another form than the program."""
    return name.startswith(("_Z", "_R"))


def original(name: str) -> str:
    """Return the name of the function of which a compiler has made this one (`f.constprop.0`); its own, if of none."""
    match = _CLONE.fullmatch(name) if "." in name else None
    return name if match is None else match[1]


@lru_cache(maxsize=1 << 16)
def demangled(name: str) -> Name:
    """Return a name of the linker as it stands in the program; the same one if it is in no such form."""
    demangle = _package()
    if demangle is None or not is_mangled(name):
        return Name(name, original(name))
    full: str = demangle.demangle(name, language=_LANGUAGES, style=_SPELLING)
    if full == name:
        return Name(name, original(name))
    is_rust = name.startswith("_R") or _HASH.search(name) is not None
    plain = full if is_rust else _without_result(demangle, original(name))
    return Name(full, plain, name.startswith(("_ZZ", "_ZNZ", "_ZNKZ")), is_rust)


@lru_cache(maxsize=1)
def _package() -> Any:
    try:
        import demangle
    except ImportError:  # an installation from before it was needed
        return None
    return demangle


def _without_result(demangle: Any, name: str) -> str:
    """Return a C++ function without its result, which names of templates have."""
    tree = demangle.parse(name, language=_LANGUAGES)
    text: str = tree.spell(style=_SPELLING)
    result = getattr(tree, "returns", None)
    if result is None:
        return text
    before = result.spell(style=_SPELLING)
    if text.startswith(f"{before} "):
        return text[len(before) + 1 :]
    begin = text.find(tree.name.spell(style=_SPELLING))  # a pointer to a function: int (*f<int>(int))(char)
    return text if begin < 0 else text[begin : _end_of_parameters(text, begin)]


def _end_of_parameters(text: str, begin: int) -> int:
    depth = 0
    for place in range(begin, len(text)):
        depth += (text[place] == "(") - (text[place] == ")")
        if depth < 0:
            return place
    return len(text)
