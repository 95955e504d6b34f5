"""What gdb refuses while one of rvtrace's commands asks it is one line, as of gdb's own commands."""

from tests.gdbext.gdb_process import SOURCE, all_gdbs, run_gdb

COMMAND = "python type('Asks', (Command,), {'__doc__': 'Asks.', 'invoke': INVOKED}, name='trace ask')()"
INVOKED = "lambda self, argument, from_tty: gdb.parse_and_eval(argument)"


@all_gdbs
def test_what_gdb_refuses_is_a_line(gdb: str) -> None:
    imported = "python from rvtrace_gdb.gdbext.command import Command"
    defined = COMMAND.replace("INVOKED", INVOKED)
    said = run_gdb(None, [SOURCE, imported, defined, "trace ask nobody", "print nobody"], gdb=gdb)
    assert said["print nobody"].startswith("No symbol")
    assert said["trace ask nobody"] == said["print nobody"]
