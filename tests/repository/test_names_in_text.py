"""Docstrings and comments name what there is: modules, files, classes, private names, parameters.

Renames leave names behind, and readers follow them first.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.repository.test_files import HOME
from tests.repository.test_rooms import ROOMS

FOLDERS = (*ROOMS, "tests", "benchmarks", "scripts")
SOURCES = [path for folder in FOLDERS for path in sorted((HOME / folder).rglob("*.py"))]

TEXT = re.compile(r'(^ *)?"""(.*?)"""|(?:^|  )#+ (.*?)$', re.M | re.S)
MODULE = re.compile(rf"(?<![\w./-])(?:rvtrace_gdb\.)?((?:{'|'.join(FOLDERS)})(?:\.\w+)+)")
ENDINGS = "py|md|c|S|toml|json|sh|rvts"
FILE = re.compile(rf"(?<![\w./-])((?:{'|'.join((*FOLDERS, 'docs', 'examples'))})/[\w./-]*\w\.(?:{ENDINGS}))\b")
PRIVATE = re.compile(r"(?<![\w.\"'-])(_[A-Za-z]\w+)")
CLASS = re.compile(r"`([A-Z][a-z]\w+)(?:\.(\w+))?[`(]")
SYMBOLS = frozenset({"_start", "_exit"})
"""Names of programs, not of Python."""
IMPORT = re.compile(r"^ *from rvtrace_gdb\.([\w.]+) import ([\w, ]+)$", re.M)
PARAMETER = re.compile(r"(?<!\*)\*([a-z_]\w*)\*(?!\*)")
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@cache
def source(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@cache
def names_in(path: Path) -> frozenset[str]:
    """The words of a file outside its comments and docstrings."""
    return frozenset(re.findall(r"\w+", TEXT.sub("", source(path))))


@cache
def classes() -> dict[str, list[Path]]:
    """Where each class of the repository is defined."""
    found: dict[str, list[Path]] = {}
    for path in SOURCES:
        for name in re.findall(r"^ *class (\w+)|^(\w+) = ", source(path), re.M):
            found.setdefault("".join(name), []).append(path)
    return found


def is_there(dotted: str) -> bool:
    """Whether a dotted name leads to a module, and to names in it."""
    path, words = HOME, dotted.split(".")
    while words and (path / words[0]).is_dir():
        path /= words.pop(0)
    module = [path / f"{words[0]}{suffix}" for suffix in (".py", ".pyi")] if words else []  # .pyi: of a compiled one
    found = next(filter(Path.is_file, module), None)
    if found is not None:
        path = found
        words.pop(0)
    elif words:
        path /= "__init__.py"
    return not words or (path.is_file() and set(words) <= names_in(path))


def is_member(name: str, member: str) -> bool:
    """Whether a class of that name has the member, as far as its modules know; not asked of a class of others."""
    paths = classes().get(name, [])
    return not paths or not member or any(member in names_in(path) for path in paths)


def gone(path: Path) -> Iterator[str]:
    """What a file names that is not there."""
    for found in TEXT.finditer(source(path)):
        text = (found[2] if found[1] is not None else found[3]) or ""
        yield from (name for name in MODULE.findall(text) if not is_there(name))
        yield from (name for name in FILE.findall(text) if not (HOME / name).exists())
        yield from (name for name in PRIVATE.findall(text) if name not in names_in(path) | SYMBOLS)
        yield from (f"{name}.{member}" for name, member in CLASS.findall(text) if not is_member(name, member))
    if any(map(names_more_than_its_header, TEXT.finditer(source(path)))):
        yield from gone_parameters(ast.parse(source(path)))


def names_more_than_its_header(text: re.Match[str]) -> bool:
    """Whether a docstring has parameters that are neither in the `def` before it nor in the class that it describes.

    Few files have one, and need to be parsed.
    """
    parameters = set(PARAMETER.findall(text[2] or ""))
    if not parameters:
        return False
    before, behind = text.string[: text.start()], text.string[text.end() :]
    of_class, of_function = before.rfind("class "), before.rfind("def ")
    around = before[max(of_class, of_function) :]
    if of_class > of_function and text[1]:
        around += re.split(rf"^(?! {{{len(text[1])}}}|$)", behind, maxsplit=1, flags=re.M)[0]
    return not parameters <= set(re.findall(r"\w+", around))


def gone_parameters(node: ast.AST, around: tuple[Definition, ...] = ()) -> Iterator[str]:
    """Parameters in docstrings that neither the function nor what is around it has."""
    for inner in ast.iter_child_nodes(node):
        if isinstance(inner, Definition):
            known = (*around, inner)
            for name in PARAMETER.findall(ast.get_docstring(inner) or ""):
                if not any(name in names for names in map(all_names_of, known)):
                    yield f"*{name}* of {inner.name}"
            yield from gone_parameters(inner, known)
        elif not isinstance(inner, ast.expr):
            yield from gone_parameters(inner, around)


@cache
def all_names_of(definition: Definition) -> frozenset[str]:
    return frozenset(names_of(definition))


def names_of(definition: Definition) -> Iterator[str]:
    """What its docstring can mean: parameters, fields of a request, what is in a class, in its bases, in the result."""
    types: list[ast.AST] = []
    for node in ast.walk(definition):
        if isinstance(node, ast.arg | ast.ClassDef | ast.FunctionDef):
            yield node.arg if isinstance(node, ast.arg) else node.name
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        if isinstance(definition, ast.ClassDef) and isinstance(node, ast.Name | ast.Attribute):
            yield node.id if isinstance(node, ast.Name) else node.attr
    types += definition.bases if isinstance(definition, ast.ClassDef) else [definition.returns or definition]
    for name in {node.id for part in types for node in ast.walk(part) if isinstance(node, ast.Name)}:
        for path in classes().get(name, []):
            yield from names_in(path)


def test_what_is_named_is_there() -> None:
    found = {str(path.relative_to(HOME)): names for path in SOURCES if (names := list(gone(path)))}
    assert found == {}


def gone_imports(text: str) -> list[str]:
    """What is imported from modules, or as names, that are not there."""
    names = (f"{module}.{name.split()[0]}" for module, names in IMPORT.findall(text) for name in names.split(","))
    return [name for name in names if not is_there(name)]


def test_programs_in_strings_and_pages_import_what_is_there() -> None:
    """mypy does not see them."""
    pages = [HOME / "README.md", *sorted((HOME / "docs").rglob("*.md"))]
    found = {str(path.relative_to(HOME)): names for path in (*SOURCES, *pages) if (names := gone_imports(source(path)))}
    assert found == {}
    text = "    from rvtrace_gdb.session.session import Session, Gone\n    from rvtrace_gdb.session.gone import x\n"
    assert gone_imports(text) == ["session.session.Gone", "session.gone.x"]


def test_names_that_are_gone_are_found(tmp_path: Path) -> None:
    path = tmp_path / "x.py"
    path.write_text(
        '''"""See `session.rpc.server.Methods`, `session.rpc.gone`, `session/rpc/gone.py`, `History.never`."""


def _kept(here: int) -> str:
    """Of *here* and *there*."""
    return "_in_a_string *elsewhere*"  # not _removed, but _kept
'''
    )
    named = ["session.rpc.gone", "session/rpc/gone.py", "History.never", "_removed", "*there* of _kept"]
    assert list(gone(path)) == named
