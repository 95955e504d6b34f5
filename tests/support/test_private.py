"""Folders that nobody else can put anything into."""

import os
import stat
from pathlib import Path

import pytest

from rvtrace_gdb.support import private
from rvtrace_gdb.support.private import NotPrivate
from tests.support.others import given_away


def test_it_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    folder = private.made(tmp_path / "one" / "two")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert private.made(folder) == folder


def test_what_is_ours_is_closed_to_others(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    folder.chmod(0o777)
    private.made(folder)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o755


def test_a_folder_of_somebody_else_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "folder"
    folder.mkdir(0o700)
    given_away(folder, monkeypatch)
    with pytest.raises(NotPrivate, match=rf"{folder}: {folder} belongs to somebody else \(user \d+\)"):
        private.made(folder)


def test_a_folder_whose_name_somebody_else_could_take_is_refused(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    folder = shared / "folder"
    with pytest.raises(NotPrivate, match=f"{folder}: everybody can write to {shared}"):
        private.made(folder)


def test_in_a_folder_like_tmp_everybody_keeps_what_is_theirs(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    private.made(shared / "folder")


def test_a_link_is_as_private_as_what_it_leads_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "target"
    target.mkdir(0o700)
    (tmp_path / "link").symlink_to(target)
    private.made(tmp_path / "link")
    given_away(target, monkeypatch)
    with pytest.raises(NotPrivate, match="belongs to somebody else"):
        private.made(tmp_path / "link")


def test_a_file_others_can_write_to_is_not_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "file"
    file.touch(0o644)
    (tmp_path / "link").symlink_to(file)
    assert private.is_ours(file)
    assert not private.is_ours(tmp_path / "link")
    assert not private.is_ours(tmp_path / "none")
    file.chmod(0o666)
    assert not private.is_ours(file)
    file.chmod(0o644)
    given_away(file, monkeypatch)
    assert not private.is_ours(file)


def test_the_cache_is_where_the_base_directory_specification_says(monkeypatch: pytest.MonkeyPatch) -> None:
    assert private.cache({"XDG_CACHE_HOME": "/a", "HOME": "/b"}) == Path("/a/rvtrace")
    assert private.cache({"XDG_CACHE_HOME": "a", "HOME": "/b"}) == Path("/b/.cache/rvtrace")
    monkeypatch.setattr("tempfile.tempdir", "/tmp")
    assert private.cache({}) == Path(f"/tmp/rvtrace-{os.geteuid()}"), "nobody else's"
