"""The sources that came with several packs: which of them are shown, wherever the packs were read."""

from collections.abc import Mapping

from rvtrace_gdb.reports.source_files import source_file
from rvtrace_gdb.support.inputs import use_stand_ins
from rvtrace_gdb.support.text import printable, warning

_NAMED = 3  # of the files that differ


class PackedSources:
    """The sources of packs, each path with the text that the first pack has for it."""

    def __init__(self) -> None:
        self._places: dict[str, str] = {}
        self._from: dict[str, str] = {}
        self._differing: dict[str, str] = {}

    def add(self, name: str, sources: Mapping[str, str]) -> None:
        """Add those of the pack called *name*: where each source is, by its path."""
        for path, place in sources.items():
            first = self._places.setdefault(path, place)
            shown = self._from.setdefault(path, name)
            if first != place and source_file(first) != source_file(place):
                self._differing.setdefault(path, f"{printable(path)} is shown as it is in {printable(shown)}, not as"
                                                 f" in {printable(name)}")  # fmt: skip

    def used(self) -> list[str]:
        """Have them stand for the files of this machine, and return what differs."""
        use_stand_ins(self._places, {})
        lines = [f"sources of the packs differ: {it}" for it in list(self._differing.values())[:_NAMED]]
        more = len(self._differing) - len(lines)
        return [warning(it) for it in [*lines, *([f"{more} more sources of the packs differ"] if more > 0 else [])]]
