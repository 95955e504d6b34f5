"""Files that are written whole or not at all, and folders that nobody else can put anything into."""

import contextlib
import errno
import os
import stat
import threading
from pathlib import Path

import pytest

from rvtrace_gdb.support import files
from rvtrace_gdb.support.files import NotPrivate, OutputError, atomic_output, opener_beside
from tests.support.foreign_owner import given_away


def write(path: Path | str, content: bytes = b"new") -> None:
    with atomic_output(str(path)) as file:
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
    with pytest.raises(KeyboardInterrupt), atomic_output(str(tmp_path / "file")) as file:
        file.write(b"half")
        raise KeyboardInterrupt
    assert (tmp_path / "file").read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("", "that is not the name of a file"),
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


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644, 0o666, 0o400])
def test_a_file_that_was_there_keeps_its_mode(mode: int, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"old")
    file.chmod(mode)
    write(file)
    assert file.read_bytes() == b"new"
    assert mode_of(file) == mode


@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664), (0, 0o666)])
def test_a_new_file_is_as_the_umask_says(mask: int, mode: int, tmp_path: Path) -> None:
    before = os.umask(mask)
    try:
        write(tmp_path / "file")
    finally:
        os.umask(before)
    assert mode_of(tmp_path / "file") == mode


def test_nobody_else_reads_what_replaces_a_private_file_while_it_is_written(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch(0o600)
    with atomic_output(str(file)) as writing:
        writing.write(b"new")
        writing.flush()
        assert {mode_of(path) for path in tmp_path.iterdir()} == {0o600}


def test_a_link_to_a_private_file_leads_to_a_private_file(tmp_path: Path) -> None:
    (tmp_path / "file").touch(0o600)
    (tmp_path / "link").symlink_to("file")
    write(tmp_path / "link")
    assert mode_of(tmp_path / "file") == 0o600


def test_what_is_written_beside_a_private_file_is_private(tmp_path: Path) -> None:
    (tmp_path / "file").touch(0o600)
    with atomic_output(str(tmp_path / "file.part"), like=str(tmp_path / "file")) as part:
        part.write(b"new")
    with open(tmp_path / "other", "xb", opener=opener_beside(str(tmp_path / "file"))):
        pass
    with open(tmp_path / "free", "xb", opener=opener_beside(str(tmp_path / "nothing"))):
        pass
    (tmp_path / "plain").touch()
    assert [mode_of(tmp_path / name) for name in ("file.part", "other")] == [0o600, 0o600]
    assert mode_of(tmp_path / "free") == mode_of(tmp_path / "plain")


def test_owner_and_group_stay_where_that_can_be(tmp_path: Path) -> None:
    """Root can give any, unless its container knows nobody else; others have their own."""
    file = tmp_path / "file"
    file.touch()
    with contextlib.suppress(OSError):
        os.chown(file, 1234, 2345)
    file.chmod(0o640)
    before = file.stat()
    write(file)
    found = file.stat()
    assert (found.st_uid, found.st_gid, mode_of(file)) == (before.st_uid, before.st_gid, 0o640)


@pytest.mark.parametrize(("before", "after"), [(0o664, 0o644), (0o660, 0o600), (0o777, 0o777), (0o4755, 0o755)])
def test_a_group_that_cannot_be_kept_gets_no_more_than_everybody(
    before: int, after: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a file that somebody else owns, in a folder of ours."""
    file = tmp_path / "file"
    file.touch()
    own = file.stat()
    others = os.stat_result((stat.S_IFREG | before, 1, 1, 1, own.st_uid + 1, own.st_gid + 1, 0, 0, 0, 0))

    def refused(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "fchown", refused)
    monkeypatch.setattr("rvtrace_gdb.support.files._file_status", lambda path: others)
    write(file)
    assert mode_of(file) == after


def test_what_goes_wrong_meanwhile_is_not_the_files_fault(tmp_path: Path) -> None:
    """An input that cannot be read, a limit of the process."""
    for output in (str(tmp_path / "out"), os.devnull):
        with pytest.raises(FileNotFoundError) as missing, atomic_output(output):
            (tmp_path / "in").read_bytes()
        assert missing.value.filename == str(tmp_path / "in")
        with pytest.raises(OSError, match="Too many open files"), atomic_output(output) as file:
            file.write(b"half")
            raise OSError(errno.EMFILE, "Too many open files")
    assert os.listdir(tmp_path) == []


def test_a_full_disk_is_the_files_fault(tmp_path: Path) -> None:
    """Noticed in the middle, or only when the rest is written."""
    for size in (1, 1 << 20):
        with pytest.raises(OutputError) as caught:
            write("/dev/full", bytes(size))
        assert str(caught.value) == "/dev/full: cannot be written: No space left on device"


def test_a_pipe_nobody_reads_any_more_is_named(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with pytest.raises(OutputError) as caught, atomic_output(str(pipe)) as file:
        os.close(reader)
        file.write(b"new")
    assert str(caught.value) == f"{pipe}: cannot be written: Broken pipe"


def test_it_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    folder = files.private_folder(tmp_path / "one" / "two")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert files.private_folder(folder) == folder


def test_what_is_ours_is_closed_to_others(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    folder.chmod(0o777)
    files.private_folder(folder)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o755


def test_a_folder_of_somebody_else_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "folder"
    folder.mkdir(0o700)
    given_away(folder, monkeypatch)
    with pytest.raises(NotPrivate, match=rf"{folder}: {folder} belongs to somebody else \(user \d+\)"):
        files.private_folder(folder)


def test_a_folder_whose_name_somebody_else_could_take_is_refused(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    folder = shared / "folder"
    with pytest.raises(NotPrivate, match=f"{folder}: everybody can write to {shared}"):
        files.private_folder(folder)


def test_in_a_folder_like_tmp_everybody_keeps_what_is_theirs(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    files.private_folder(shared / "folder")


def test_a_link_is_as_private_as_what_it_leads_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "target"
    target.mkdir(0o700)
    (tmp_path / "link").symlink_to(target)
    files.private_folder(tmp_path / "link")
    given_away(target, monkeypatch)
    with pytest.raises(NotPrivate, match="belongs to somebody else"):
        files.private_folder(tmp_path / "link")


def test_a_file_others_can_write_to_is_not_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "file"
    file.touch(0o644)
    (tmp_path / "link").symlink_to(file)
    assert files.is_ours(file)
    assert not files.is_ours(tmp_path / "link")
    assert not files.is_ours(tmp_path / "none")
    file.chmod(0o666)
    assert not files.is_ours(file)
    file.chmod(0o644)
    given_away(file, monkeypatch)
    assert not files.is_ours(file)


def test_the_cache_is_where_the_base_directory_specification_says(monkeypatch: pytest.MonkeyPatch) -> None:
    assert files.cache_folder({"XDG_CACHE_HOME": "/a", "HOME": "/b"}) == Path("/a/rvtrace")
    assert files.cache_folder({"XDG_CACHE_HOME": "a", "HOME": "/b"}) == Path("/b/.cache/rvtrace")
    monkeypatch.setattr("tempfile.tempdir", "/tmp")
    assert files.cache_folder({}) == Path(f"/tmp/rvtrace-{os.geteuid()}"), "nobody else's"
