"""What is kept of a trace is not used any more after the code that it follows from has changed, in whatever folder."""

import os
import sys
from importlib import import_module
from pathlib import Path

import pytest

from rvtrace_gdb.session import kept_files
from rvtrace_gdb.session.kept_files import DECODERS, source_states, sources_of

PACKAGE = Path(kept_files.__file__).resolve().parents[1]


@pytest.fixture
def package(tmp_path: Path) -> Path:
    for name in ("decode/history.py", "decode/format/messages.py", "decode/format/encoder/messages.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("FIRST = 1\n")
    return tmp_path


@pytest.mark.parametrize("name", ["history.py", "format/messages.py", "format/encoder/messages.py", "format/c.abi3.so"])
def test_a_change_in_a_folder_is_seen(name: str, package: Path) -> None:
    before = list(source_states(package, ["decode"]))
    (package / "decode" / name).write_text("SECOND = 22\n")
    assert list(source_states(package, ["decode"])) != before


def test_so_is_a_file_that_has_moved(package: Path) -> None:
    """To a folder in which it comes at the same place: its name, size and time are the same."""
    before = list(source_states(package, ["decode"]))
    os.renames(package / "decode/format/encoder/messages.py", package / "decode/format/decoder/messages.py")
    assert list(source_states(package, ["decode"])) != before


def test_all_code_that_decodes_is_looked_at() -> None:
    for module in ("session.formats.ntrace", "session.formats.etrace", "decode.kernel._kernel"):
        import_module(f"rvtrace_gdb.{module}")
    loaded = {str(module.__file__) for name, module in sys.modules.items() if name.startswith("rvtrace_gdb.decode.")}
    seen = {str(PACKAGE / name) for name, _, _ in sources_of(*DECODERS)}
    assert loaded and {str(Path(file).resolve()) for file in loaded} <= seen
