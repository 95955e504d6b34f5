"""Whether a program was built so that its lines still are the blocks of the compiler's graph.

An optimiser moves, merges and copies code, after which the count of a line is no longer that of its block. The options
here switch off what comes behind the graph, and do not change the graph itself. GCC records them in the debug
information (`-grecord-gcc-switches`, its default).
"""

import posixpath
from collections.abc import Collection, Iterator

from rvtrace_gdb.decode.program import dwarf_file
from rvtrace_gdb.decode.program.elf import Elf

OPTIONS = (
    "-fno-tree-ch", "-fno-tree-pre", "-fno-ivopts", "-fno-schedule-insns", "-fno-schedule-insns2",
    "-fno-tree-loop-im", "-fno-if-conversion", "-fno-if-conversion2", "-fno-tree-sink", "-fno-gcse",
    "-fno-crossjumping", "-fno-tree-tail-merge", "-fno-code-hoisting", "-fno-reorder-blocks",
    "-fno-move-loop-invariants", "-fno-tree-dominator-opts", "-fno-shrink-wrap", "-fno-partial-inlining",
    "-fno-ipa-cp", "-fno-ipa-sra", "-fno-ipa-icf", "--param=max-completely-peel-times=0",
)  # fmt: skip
"""The options of a build whose trace determines arcs, with those of the final build before them."""


def missing_options(elf: Elf, sources: Collection[str]) -> list[str] | None:
    """Return the `OPTIONS` that the units of some source files were built without; None if there is no such unit.
    Raises BadElf, and `dwarf_file.ERRORS` for damaged files.
    """
    producers = list(_producers(elf, sources))
    if not producers:
        return None
    return [option for option in OPTIONS if not all(option in producer for producer in producers)]


def _producers(elf: Elf, sources: Collection[str]) -> Iterator[list[str]]:
    for unit in dwarf_file.open_dwarf(elf).iter_CUs():
        attributes = unit.get_top_DIE().attributes
        folder, name, producer = (
            attributes[f"DW_AT_{it}"].value.decode(errors="replace") if f"DW_AT_{it}" in attributes else ""
            for it in ("comp_dir", "name", "producer")
        )
        if posixpath.normpath(posixpath.join(folder, name)) in sources:
            yield producer.replace("--param ", "--param=").split()
