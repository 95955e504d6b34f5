"""`--parameters FILE`: JSON is read as JSON, TOML as TOML; nothing that a decoder needs is left out in silence."""

import json
from pathlib import Path

import pytest

from rvtrace_gdb.console.commands import NoAddress, address
from rvtrace_gdb.console.main import main, parser
from rvtrace_gdb.console.options import raw
from rvtrace_gdb.console.options.etrace import BadParametersFile
from rvtrace_gdb.console.options.request import EncoderBytes
from rvtrace_gdb.session.capture.etrace_settings import EtraceTraceOptions, etrace_of

WANTED = {"iaddress_width": 39, "cache_size": 5, "jump_target_cache": True, "context_width": 0}
FILES = {
    "one-line.json": '{"iaddress_width_p": 39, "cache_size_p": 5, "jtc": true, "nocontext_p": 1}',
    "nested.json": '{"params":{"iaddress_width_p":39,"cache_size_p":5,"nocontext_p":true},"options":{"jtc":1}}',
    "two-a-line.json": '{"a": {"iaddress_width_p": 39, "cache_size_p": 5,\n "jtc": 1, "nocontext_p": 1}}',
    "in-a-list.json": '{"blocks": [{"iaddress_width_p": "0x27"}, {"cache-size": 5, "jtc": 1, "nocontext": "1"}]}',
    "inline.toml": "parameters = { iaddress_width_p = 39, cache_size_p = 5, nocontext_p = true }\nmodes.jtc = true\n",
    "lines.ucf": "; one\n[codec]\niaddress-width=39\ncache-size = 5\njump-target-cache = true ; on\nnocontext=1\nx y\n",
    "marked.json": '\ufeff{"iaddress_width_p": 39, "cache_size_p": 5, "jtc": true, "nocontext_p": 1}',
}


def said(file: Path, *words: str) -> EtraceTraceOptions:
    """How the bytes of an RV64 program were made, as the file says."""
    request = raw.raw_bytes(parser().parse_args(["dump", "x", "--etrace", "--parameters", str(file), *words]))
    assert isinstance(request, EncoderBytes)
    trace_options = request.trace_options(64)
    assert isinstance(trace_options, EtraceTraceOptions)
    return trace_options


@pytest.mark.parametrize("name", FILES)
def test_every_form_says_the_same(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(FILES[name], encoding="utf-8")
    assert said(tmp_path / name) == etrace_of(WANTED)


@pytest.mark.parametrize(
    ("name", "setting"),
    [
        ("branch_predictor", "branch_prediction"), ("implicit_except", "implicit_exception"),
        ("noaddr", "data_no_address"), ("full_iaddress", "full_address"), ("nodata", "data_no_data"),
        ("no_data", "data_no_data"),
    ],
)  # fmt: skip
def test_names_of_support_packets(name: str, setting: str, tmp_path: Path) -> None:
    """E-Trace 2.0, the fields of ioptions and doptions; the reference models write `no_data`."""
    (tmp_path / "x.json").write_text(json.dumps({"iaddress_width_p": 64, name: 1}))
    assert said(tmp_path / "x.json") == etrace_of({"iaddress_width": 64, setting: True})


def test_any_layout_of_json_says_the_same(tmp_path: Path) -> None:
    document = {"params": {"iaddress_width_p": 39, "cache_size_p": 5, "nocontext_p": 1}, "options": {"jtc": 1}}
    for indent in (None, 0, 1, 4):
        (tmp_path / "x.json").write_text(json.dumps(document, indent=indent))
        assert said(tmp_path / "x.json") == etrace_of(WANTED)


def test_a_mode_counts_more_than_what_there_is_for_it(tmp_path: Path) -> None:
    """sijump_p says that the encoder has it, sijump that it is on, in whichever order they come."""
    for text in ('{"sijump": 1, "sijump_p": 0}', '{"sijump_p": 0, "sijump": 1}', "sijump = 1\nsijump_p = 0\n"):
        (tmp_path / "x").write_text(text)
        assert said(tmp_path / "x") == etrace_of({"iaddress_width": 64, "sijump": True})


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"iaddress_width_p": 39,', "is not JSON: line 1 column 25: "),
        ('{"iaddress_width_p": 39.5}', "iaddress_width_p is 39.5, which is not a number"),
        ('{"iaddress_width_p": [39]}', "iaddress_width_p is [39], which is not a number"),
        ('{"full_address": 3}', "full_address is 3, must be true or false"),
        ('{"a": {"cache_size_p": 5}, "b": {"cache_size_p": 6}}', "cache_size_p is 6, but cache_size_p is 5: leave one"),
        ('{"cache_size_p": -1}', "cache_size is -1, must be a number from 0 to 16"),
        ('{"nothing": 1}', "has neither lines like `iaddress_width_p = 64` nor JSON with such names"),
        ("[a]\niaddress_width_p=39 cache_size_p=5\n", "line 2: `iaddress_width_p=39 cache_size_p=5` is not one "),
        (
            "; x\ncache_size_p = 5\ncache_size_p = 6\n",
            "line 3: cache_size_p is 6, but cache_size_p is 5: leave one out",
        ),
        ("; x\ncache_size_p = -5\n", "cache_size is -5, must be a number from 0 to 16"),
        ("x" * (1 << 20) + "\niaddress_width_p = 64\n", "is longer than 1048576 characters"),
        ('{"a":' * 100_000, "is not JSON"),
        ("", "has neither lines like "),
    ],
)
def test_what_cannot_be_taken_is_refused(
    text: str, problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "x").write_text(text)
    with pytest.raises(BadParametersFile) as wrong:
        said(tmp_path / "x")
    assert str(wrong.value).startswith(f"--parameters {tmp_path / 'x'}: {problem}")


def test_a_folder_is_no_parameters(tmp_path: Path) -> None:
    with pytest.raises(BadParametersFile, match="cannot be read: Is a directory"):
        said(tmp_path)


# Addresses


def test_an_address_may_not_be_read_as_something_else() -> None:
    for text, value in (("0x80000030", 0x80000030), ("0b11", 3), ("0", 0), ("8", 8)):
        assert address(text) == value
    for text, problem in (
        ("80000030", "'80000030': is that hexadecimal? Write 0x80000030, or 0x4c4b41e if that is decimal"),
        ("8000003c", "'8000003c' is not an address; write 0x8000003c"),
        ("-4", "'-4' is not an address"),
        ("main", "'main' is not an address"),
        ("0x10000000000000000", "'0x10000000000000000' is not an address"),
    ):
        with pytest.raises(NoAddress) as wrong:
            address(text)
        assert str(wrong.value) == problem


@pytest.mark.parametrize("option", ["--trap-handler=2=80000030", "--trap-vector=80000030"])
def test_digits_alone_are_asked_about(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["dump", "x", "--etrace", option])
    assert (
        "'80000030': is that hexadecimal? Write 0x80000030, or 0x4c4b41e if that is decimal" in capsys.readouterr().err
    )
