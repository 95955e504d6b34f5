"""The command line as a whole."""

import re

import pytest

from console.main import main, parser


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert re.fullmatch(r"rvtrace \d+\.\d+\.\d+\n", capsys.readouterr().out)


@pytest.mark.parametrize("words", ["dump x.nex --ntrace --elf app.elf", "gdb-script --elf app.elf"])
def test_what_a_command_does_not_know_is_its_error(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words.split())
    assert ended.value.code == 2
    command = f"rvtrace {words.split()[0]}"
    said = capsys.readouterr().err
    assert said.startswith(f"usage: {command} ")
    assert said.endswith(f"{command}: error: unrecognized arguments: --elf app.elf\n")


@pytest.mark.parametrize("command", ["", "sim", "decode", "dump", "import", "encode", "gdb-script"])
def test_the_help_fits_80_columns(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit):
        parser().parse_args([*command.split(), "--help"])
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if len(line) > 80] == []
