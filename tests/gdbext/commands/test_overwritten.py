"""What is not in the history of a ring that wrapped may have run before it: whoever says "not" says so, too.

The same messages say it only where they are said to be the rest of a longer trace.
"""

from pathlib import Path

import pytest

from tests.console.scripts.script_runs import run_script
from tests.gdbext.commands.test_dump import ELF, STREAM, imported
from tests.gdbext.gdb_process import SOURCE, run_gdb
from tests.helpers.amounts import thorough

NOWHERE = "0x80000ffe did not run in this history"
NONE_BEFORE = "there is none before this place; `trace goto -next ...` goes to those after it"
NONE_AFTER = "there is none after this place; without -next it goes to those before it"
EARLIER = "Older trace was overwritten: it may have happened earlier"
NOT_COUNTED = "Older trace was overwritten: code that ran earlier is not counted."
RING = STREAM[-3:] + STREAM  # it begins in a message
SAYS = {
    "trace find 0x80000ffe": (f"{NOWHERE}.", f"{NOWHERE}. {EARLIER}."),
    "trace goto 0x80000ffe": (f"{NOWHERE}.", f"{NOWHERE}. {EARLIER}."),
    "trace goto main": (NONE_BEFORE, f"{NONE_BEFORE}; o{EARLIER[1:]}"),
}


@pytest.mark.parametrize(("data", "words", "more"), [(STREAM, [], False), (RING, ["--wrapped"], True)])
def test_what_did_not_run(data: bytes, words: list[str], more: bool, tmp_path: Path) -> None:
    capture = imported(tmp_path, data, "--ntrace", *words)
    counted = ["trace coverage main", "trace coverage main 1,5000", "trace coverage main 9,5000"]
    commands = [SOURCE, f"trace open {capture}", "trace replay", "trace goto begin", *SAYS, *counted]
    commands += ["trace goto end", "trace goto -next main"]
    found = run_gdb(ELF, commands)
    assert {it: found[it].strip() for it in SAYS} == {it: says[more] for it, says in SAYS.items()}
    assert found["trace goto -next main"].strip() == NONE_AFTER  # what is overwritten is not there
    assert [NOT_COUNTED in found[command] for command in counted] == [more, more, False]


@thorough("test_what_did_not_run")
@pytest.mark.parametrize(("data", "words", "more"), [(STREAM, [], False), (RING, ["--wrapped"], True)])
def test_what_a_script_expects_of_it(data: bytes, words: list[str], more: bool, tmp_path: Path) -> None:
    """Of what is in the trace, it holds; that this is not all is said."""
    capture = imported(tmp_path, data, "--ntrace", *words)
    text = f"open {capture}\nassert not ran *0x80000ffe\nassert ran *0x80000ffe\nassert calls main == 1\n"
    done = run_script(tmp_path, text, "--elf", ELF)
    assert done.asserts == [True, False, True]
    note = "older trace was overwritten, and what ran before that is not counted"
    assert [check["why"] for check in done.report["asserts"]] == [
        note if more else "",
        f"*0x80000ffe did not run{f'; {note}' if more else ''}",
        note if more else "",
    ]
