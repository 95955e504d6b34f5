"""gdb's commands, backward and forward, where registers and memory are known and gdb's own unwinder makes the frames.

They lead where the model of `tests.endtoend.reverse.walk_model` says, as where pc alone is known. The addresses that
ran are those of the trace, which other tests hold against the hart and against Spike.
"""

from pathlib import Path

import pytest

from tests.endtoend.tandem.random_walk import check_walk
from tests.gdbext.gdb_process import GDB, GDB16, GDB18
from tests.helpers.amounts import long_only

COMMANDS = 150


@pytest.mark.parametrize("gdb", [GDB18 or GDB, *long_only(GDB16 or GDB)])
def test_random_commands_end_where_the_model_says(gdb: str, tmp_path: Path) -> None:
    check_walk(gdb, tmp_path, COMMANDS)
