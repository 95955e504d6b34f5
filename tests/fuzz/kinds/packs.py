"""Packs: what pack.json names, and what is unpacked to the cache, which is all that is written."""

from __future__ import annotations

import os
import random

from rvtrace_gdb.session.capture.container import write_members
from rvtrace_gdb.session.capture.file import PACK, description_text, unpack
from rvtrace_gdb.session.capture.json_document import NAME
from rvtrace_gdb.session.packs.contents import PackContents, described, packed_file
from tests.fuzz.damage import containers
from tests.fuzz.exercise import Input
from tests.fuzz.kinds.program_files import InFolder
from tests.session.captures import FULL, SMALL

_FILES = (("/fw/src/a.c", "sources/0"), ("/fw/include/b.h", "sources/1"), ("c/d.c", "sources/2"))


class PackFile(InFolder):
    """An input is unpacked into a folder of its own, beside which nothing may appear."""

    def __init__(self) -> None:
        super().__init__()
        for capture in (SMALL, FULL):
            text, members = description_text(capture)
            data = {member: path.encode() for path, member in _FILES} | {"elf/0.elf": b"ELF", "target.toml": b"[x]"}
            elf = "" if capture.elf is None else capture.elf.path
            contents = PackContents(
                (packed_file(elf, "elf/0.elf", b"ELF"),),
                tuple(packed_file(path, member, data[member]) for path, member in _FILES),
                ("/fw/build",),
                packed_file("board.toml", "target.toml", b"[x]"),
            )
            file = self.folder / "it"
            with file.open("wb") as sound:
                parts = [(NAME, text), *members.items(), (PACK, described(contents, "rvtrace")), *data.items()]
                write_members(sound, parts)
            self.seeds.append(Input("", file.read_bytes()))
            file.unlink()

    def isolate(self) -> None:
        os.environ["RVTRACE_CACHE"] = str(self.folder / "cache")

    def mutated(self, rng: random.Random, data: bytes) -> bytes:
        return containers.mutated_zip(rng, data, PACK if rng.random() < 0.6 else "")

    def run(self, variant: str, data: bytes) -> None:
        try:
            unpacked = unpack(data, "it.rvtz").unpacked
        finally:
            beside = sorted(it.name for it in self.folder.iterdir() if it.name != "cache")
            assert beside == [], beside
        files = [] if unpacked is None else [*unpacked.elfs.values(), *unpacked.sources.values()]
        inside = os.path.join(os.environ.get("RVTRACE_CACHE", ""), "")
        assert all(os.path.realpath(it).startswith(inside) for it in files if inside != os.sep), files
