"""A name of a function says of what: modules that have nothing to do with each other do not share it."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator

from tests.repository.test_class_names import FORMATS
from tests.repository.test_rooms import modules, statements, tree

MOST = 5
"""So many modules may have a function of the same name, besides implementations of one interface."""
FILES = {"close", "read", "write", "open", "flush", "run", "main", "add_arguments"}
"""What files, threads and commands of a command line have by convention."""
STILL_SHARED = set(re.findall(r"\w+", """
    _after _lines _piece _request add address addresses after answer ask before begin build changed check clear
    complete connect context decode drain encoders end enter feed fields finish follow forget from_arguments
    halt halted hart harts history idle image instructions invoke last leave legalize lines live load lose lost
    memory memory_writer name nearest note notes number parse part path pieces place position prepare ready
    register registers request reset resume resumed retired rows save select send set size start state status
    step stop store take tell trace_options unknown_accesses unread version words xlen
"""))  # fmt: skip
"""Names that have been shared since before this test: the list only gets shorter."""
BANNED = frozenset(("asked", "found", "it", "known", "made", "said", "there", "told", "wanted", "whole"))
"""Words that say how a thing was come by, not what it is: no parameter, field or function is called so."""
STILL_BANNED = set(re.findall(r"\S+ \w+", """
console.bench.target said
console.commands.encode made
console.gdb_driver.engine there
console.gdb_driver.state known
console.options.etrace found
console.scripts.runner said
controlregs.ctr.hart wanted
controlregs.sifive_v0.encoder_setup wanted
controlregs.trace_control.filters_and_triggers there
decode.calls.edges asked
decode.calls.stacks.frame asked
decode.calls.mismatched_returns found
decode.calls.stacks.stack found
decode.ctr.records known
decode.etrace.items found
decode.history.accesses known
decode.ntrace.items known
decode.reconstruction.window.links found
decode.tandem.group_grammar known
decode.tandem.registers whole
gdbext.commands.coverage asked
gdbext.commands.goto wanted
gdbext.csr_access wanted
gdbext.replay.mode known
rows.answers known
rows.answers made
session.decoded_capture found
session.formats.sinks wanted
session.past.live_stop wanted
session.past.tandem.writers there
session.queries.hardware.info found
session.queries.hardware.registers found
session.replay.unwinder found
session.sources.qemu.encoder wanted
session.trap_causes found
"""))  # fmt: skip
"""Those of before this test, and fields that programs read in JSON: the list only gets shorter."""


def _trees() -> tuple[tuple[str, ast.Module], ...]:
    return tuple((module, tree(path)) for module, path in modules())


def _methods(node: ast.ClassDef | ast.Module) -> set[str]:
    return {each.name for each in node.body if isinstance(each, ast.FunctionDef) and not each.name.startswith("__")}


def _bases(node: ast.ClassDef) -> list[str]:
    dotted = (ast.unparse(base).partition("[")[0] for base in node.bases)
    return [name.rpartition(".")[2] for name in dotted]


def shared(trees: tuple[tuple[str, ast.Module], ...]) -> set[str]:
    """Return names of functions that more than `MOST` modules have, with implementations of an interface as one."""
    classes = [(module, node) for module, tree in trees for node in statements(tree) if isinstance(node, ast.ClassDef)]
    own = {node.name: (_methods(node), _bases(node)) for _, node in classes}
    protocols = {name: methods for name, (methods, bases) in own.items() if "Protocol" in bases and methods}

    def inherited(name: str) -> Iterator[str]:
        yield name
        for base in own[name][1] if name in own else ():
            if base != name:  # a class of another module with the same name
                yield from inherited(base)

    owners: dict[str, set[str]] = defaultdict(set)
    nodes: list[tuple[str, ast.ClassDef | ast.Module]] = [*classes, *trees]
    for module, node in nodes:
        lineage = list(inherited(node.name)) if isinstance(node, ast.ClassDef) else []
        methods = _methods(node).union(*(own[name][0] for name in lineage if name in own))
        interfaces = [*lineage[1:], *(name for name, required in protocols.items() if required <= methods)]
        for method in _methods(node):
            roots = [name for name in interfaces if name in own and method in own[name][0]]
            owners[method].add(min(roots) if roots else FORMATS.sub("FORMAT", module))
    return {name for name, places in owners.items() if len(places) > MOST} - FILES


def banned(module: str, tree: ast.Module) -> Iterator[str]:
    """Yield the functions, parameters and fields of a module that are called by one of the words: `module word`."""
    for node in statements(tree):
        names: list[str] = []
        if isinstance(node, ast.FunctionDef):
            names = [node.name, *(each.arg for each in ast.walk(node.args) if isinstance(each, ast.arg))]
        elif isinstance(node, ast.ClassDef):
            fields = [each.target for each in node.body if isinstance(each, ast.AnnAssign)]
            names = [target.id for target in fields if isinstance(target, ast.Name)]
        yield from (f"{module} {name}" for name in names if name.lstrip("_") in BANNED)


def test_a_function_says_of_what() -> None:
    names = shared(_trees())
    assert names - STILL_SHARED == set()
    assert STILL_SHARED - names == set(), "few modules share these by now"


def test_no_parameter_or_field_is_named_by_how_it_was_come_by() -> None:
    names = {each for module, tree in _trees() for each in banned(module, tree)}
    assert names - STILL_BANNED == set()
    assert STILL_BANNED - names == set(), "these are gone by now"


def test_implementations_of_an_interface_are_one() -> None:
    text = "class Part{0}(Base):\n    def size(self): ...\ndef _value(): ...\n"
    base = ("m", ast.parse("class Base:\n    def size(self): ...\n"))
    trees = (base, *((f"m{n}", ast.parse(text.format(n))) for n in range(MOST + 1)))
    assert shared(trees) == {"_value"}
    assert shared(trees[:-1]) == set()


def test_parameters_fields_and_functions_are_looked_at() -> None:
    tree = ast.parse("class A:\n    found: int\n    def told(self, *, wanted, x): ...\n    def size(self): known = 1\n")
    assert sorted(banned("m", tree)) == ["m found", "m told", "m wanted"]
