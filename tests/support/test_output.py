"""Files that are written: whole or not at all, and nothing else is replaced."""

import os
import stat
import threading
from pathlib import Path

import pytest

from support.output import OutputError, replacing


def write(path: Path | str, content: bytes = b"new") -> None:
    with replacing(str(path)) as file:
        file.write(content)


def test_a_pipe_is_written_to_and_stays_a_pipe(tmp_path: Path) -> None:
    """As devices are: renaming a file over /dev/null would harm the whole machine."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    write(pipe)
    reader.join(30)
    assert read == [b"new"]
    assert stat.S_ISFIFO(pipe.lstat().st_mode)
    assert os.listdir(tmp_path) == ["pipe"]


def test_a_symbolic_link_stays_and_what_it_leads_to_is_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"old")
    for name, target in (("link", "file"), ("dangling", "other")):
        (tmp_path / name).symlink_to(target)
        write(tmp_path / name)
        assert (tmp_path / name).is_symlink()
        assert (tmp_path / target).read_bytes() == b"new"


def test_an_exception_leaves_what_was_there(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"old")
    with pytest.raises(KeyboardInterrupt), replacing(str(tmp_path / "file")) as file:
        file.write(b"half")
        raise KeyboardInterrupt
    assert (tmp_path / "file").read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("", "that is no name of a file"),
        ("nowhere/file", "No such file or directory"),
        ("folder", "Is a directory"),
        ("file/below", "Not a directory"),
        ("n" * 300, "File name too long"),
    ],
)
def test_what_cannot_be_written_is_named(
    name: str, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    with pytest.raises(OutputError) as caught:
        write(name)
    assert str(caught.value) == f"{name}: cannot be written: {problem}"


def test_the_longest_name_there_is(tmp_path: Path) -> None:
    write(tmp_path / ("n" * 255))
    assert os.listdir(tmp_path) == ["n" * 255]
