"""`rvtrace targets`: the list, one target, and its description as a file."""

import json
import re
from pathlib import Path

import pytest

from rvtrace_gdb.console.main import main
from rvtrace_gdb.session.description.file import load
from rvtrace_gdb.session.description.library.shipped import target_names


def test_the_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["targets"]) == main(["targets", "list"]) == 0
    said = capsys.readouterr().out
    assert re.findall(r"^([\w-]+): ", said, re.M) == [*target_names()] * 2
    assert re.search(
        r"^hifive-premier-p550: SiFive HiFive Premier P550 \(ESWIN EIC7700X\)\n"
        r"  trace: 4 harts RV64, .*\n"
        r"  addresses of the encoders and the funnel: from published scripts \(OpenOCD scripts that SiFive .*\)\n"
        r"(  .*\n)+  proved: from published scripts, in the simulator, on silicon: none yet\n",
        said, re.M,
    )  # fmt: skip


def test_one_for_people_and_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["targets", "show", "hifive-premier-p550"]) == 0
    said = capsys.readouterr().out
    assert "\n  limits:\n    no BTM: " in said
    assert "\n  components: 4 encoders, 1 funnel, 1 ram sink\n" in said and '\ninside = "funnel0"\n' in said
    assert main(["targets", "show", "hifive-premier-p550", "--json"]) == 0
    [line] = capsys.readouterr().out.splitlines()
    found = json.loads(line)
    assert (found["components"], found["harts"]) == (6, [0, 1, 2, 3])
    assert found["description"] in said and found["proved"][-1] == "on silicon: none yet"


@pytest.mark.parametrize(
    ("name", "components"),
    [("chipyard-tacit", "1 TACIT encoder"), ("neorv32", "1 TRACER"), ("esp32", "none: the firmware sets them up")],
)
def test_what_is_no_component_of_the_interface(
    name: str, components: str, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    assert main(["targets", "show", name]) == 0
    assert f"\n  components: {components}\n" in capsys.readouterr().out


def test_a_terminal_gets_lines_that_fit(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """But for words that are longer, and for the description, which can be copied."""
    assert main(["targets", "show", "spacemit-k3"]) == 0
    plain = capsys.readouterr().out
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert main(["targets", "show", "spacemit-k3"]) == 0
    folded = capsys.readouterr().out
    about, _, description = folded.partition("\n\n")
    assert max(map(len, about.splitlines())) <= 80 < max(map(len, plain.splitlines()))
    assert description == plain.partition("\n\n")[2]
    assert about.split() == plain.partition("\n\n")[0].split()


def test_the_file_of_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "rvtrace.toml"
    assert main(["targets", "show", "xuantie", "--base", "0x40000000", "-o", str(file)]) == 0
    assert [component.base for component in load(file).components] == [0x4000_0000, 0x4000_1000]
    assert capsys.readouterr().err.endswith("trace components: 1 encoder, 1 ram sink\n")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("show", "show takes the name of a target, one of "),
        ("list xuantie", "list takes no name, no --base and no -o"),
        ("show xuanti", 'there is no file and no shipped target "xuanti", did you mean "xuantie"?'),
        ("show xuantie -o -", "xuantie is a template: say where the components are, --base ADDRESS"),
        ("show esp32 --base 0x1000", "the addresses of the shipped target esp32 are those of the chip: leave out"),
    ],
)
def test_what_is_refused(words: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["targets", *words.split()]) == 1
    assert capsys.readouterr().err.startswith(f"rvtrace: {said}")
