"""`set trace` / `show trace`, completion, and what gdb's own settings are before, while and after tracing."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from rvtrace_gdb.console.bench.rig import Rig
from tests.gdbext.gdb_process import SOURCE, ask_gdb, every_gdb, run_gdb
from tests.helpers.amounts import thorough
from tests.helpers.cross_compiler import demo


def test_values_are_expressions_and_shown_as_addresses() -> None:
    commands = ["print $block = 0x20000000", "set trace encoder-base $block + 0x1000", "show trace encoder-base"]
    said = ask_gdb(None, [SOURCE, *commands])["show trace encoder-base"]
    assert said.strip() == "The trace encoder-base is 0x20001000."


def test_a_wrong_value_leaves_the_old_one() -> None:
    commands = [SOURCE, "set trace buffer-size 4096", "set trace buffer-size much", "show trace buffer-size"]
    out = ask_gdb(None, commands)
    assert out["set trace buffer-size much"].strip() == "set trace buffer-size: 'much' is not a number or expression."
    assert out["show trace buffer-size"].strip() == "The trace buffer-size is 0x1000."


def test_ranges_of_memory() -> None:
    good, bad = "set trace save-memory 0x80000000,+0x1000 16-32", "set trace save-memory main,+4"
    said = ask_gdb(None, [SOURCE, good, bad, "show trace save-memory"])
    assert said[good] == ""
    assert said[bad].strip() == (
        "set trace save-memory: main,+4 is not a range: give BEGIN-END or BEGIN,+SIZE, as in 0x80000000,+0x10000."
    )
    assert said["show trace save-memory"].strip() == "The trace save-memory is 0x80000000,+0x1000 16-32."


def test_a_value_is_unset_by_auto() -> None:
    commands = [SOURCE, "set trace hart 1", "set trace hart auto", "show trace hart"]
    wrong = ("-1", str(1 << 63))
    said = ask_gdb(None, [*commands, *(f"set trace hart {number}" for number in wrong)])
    assert said["set trace hart auto"] == ""
    assert said["show trace hart"].strip() == "The trace hart is not set."
    for number in wrong:
        assert said[f"set trace hart {number}"].strip() == f"set trace hart: {number} is out of range."


def test_what_is_not_set_says_so() -> None:
    assert ask_gdb(None, [SOURCE, "show trace target"])["show trace target"].strip() == "The trace target is not set."


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("trace st", ["trace stack", "trace start", "trace status", "trace stop"]),
        ("trace start -st", ["trace start -stall", "trace start -stop-on-wrap"]),
        ("set trace buffer", ["set trace buffer-size", "set trace buffer-start"]),
        ("rvtrace hi", ["rvtrace history"]),
        ("set trace target hifive-p", ["set trace target hifive-premier-p550"]),
        ("set trace target spacemit-k3", ["set trace target spacemit-k3"]),
    ],
)
def test_completion(typed: str, offered: list[str]) -> None:
    assert ask_gdb(None, [SOURCE, f"complete {typed}"])[f"complete {typed}"].split("\n")[:-1] == offered


@every_gdb
def test_a_target_by_its_name_or_its_file(gdb: str, tmp_path: Path) -> None:
    """What begins like both is completed to both; `~` is the home folder, as in each name of a file in gdb."""
    for name in ("microblaze.toml", "other.toml"):
        (tmp_path / name).touch()
    commands = ["complete set trace target micro", f"complete set trace target {tmp_path}/oth"]
    show = "show trace target"
    commands += ["set trace target xuantie ", show, "set trace target ~/board.toml", f"{show} "]
    said = ask_gdb(None, [f"cd {tmp_path}", SOURCE, *commands], gdb=gdb)
    names = ["microblaze-v", "microblaze-v-mdm", "microblaze.toml"]
    assert said[commands[0]].splitlines() == [f"set trace target {name}" for name in names]
    assert said[commands[1]].splitlines() == [f"set trace target {tmp_path}/other.toml"]
    assert said[show].strip() == "The trace target is xuantie."
    assert said[f"{show} "].strip() == f"The trace target is {Path.home()}/board.toml."


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    folder = tmp_path_factory.mktemp("settings")
    with Rig(demo(folder), folder / "rig") as rig:
        yield rig


def connect(rig: Rig) -> list[str]:
    return [SOURCE, f"set trace target {rig.target_file}", f"target extended-remote :{rig.gdb_port}"]


def test_the_guessed_os_abi_is_set_aside_while_tracing(rig: Rig) -> None:
    commands = [*connect(rig), "trace start", "show osabi", "trace status", "stepi", "trace stop"]
    commands += ['print $_gdb_setting("osabi")']
    out = run_gdb(rig.elf, commands)
    assert "OS ABI" not in out["trace start"]
    assert "\ngdb:      OS ABI none until `trace stop` (" in out["trace status"]
    assert 'The current OS ABI is "none".' in out["show osabi"]
    assert '"auto"' in out['print $_gdb_setting("osabi")']


@thorough("test_the_guessed_os_abi_is_set_aside_while_tracing")
def test_an_os_abi_the_user_chose_is_left_alone(rig: Rig) -> None:
    commands = [*connect(rig), "set osabi GNU/Linux", "trace start", "stepi", "trace status", "trace stop"]
    commands += ["show osabi"]
    out = run_gdb(rig.elf, commands)
    assert "OS ABI" not in out["trace start"] + out["trace status"]
    assert 'The current OS ABI is "GNU/Linux".' in out["show osabi"]


def test_the_size_of_a_listing_is_gdbs_own_setting(rig: Rig) -> None:
    commands = [*connect(rig), "trace start", "stepi 15", "set record instruction-history-size 3", "trace history"]
    commands += ["set record instruction-history-size unlimited", "trace history -"]
    out = run_gdb(rig.elf, commands)
    assert len(out["trace history"].splitlines()) == 3
    assert len(out["trace history -"].splitlines()) > 10  # which are the default


def test_a_listing_while_the_program_runs(rig: Rig) -> None:
    """gdb 13 ends itself when its disassembler meets memory it cannot read; the code comes from the ELF instead."""
    listings = ["trace history 1,10", "trace history /rs 1,10", "trace history /f 1,10"]
    commands = [*connect(rig), "trace start", "stepi 10", "continue &", "shell sleep 0.2", *listings]
    out = run_gdb(rig.elf, [*commands, "show trust-readonly-sections", "interrupt", "shell sleep 0.3", "print 6 * 7"])
    for listing in listings:
        assert len(re.findall(r"^\d+\t   0x\S+ <\S*>:\t", out[listing], re.M)) == 10
        assert "while the target is running" not in out[listing]
    assert out["show trust-readonly-sections"].strip().endswith("is off.")
    assert out["print 6 * 7"].strip().endswith("= 42")
