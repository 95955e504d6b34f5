"""There is a kernel where there is a compiler, and it is used only if it was made of this source."""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path
from shutil import which

import pytest

from rvtrace_gdb.decode.kernel import loading
from rvtrace_gdb.decode.kernel.source import source_hash
from tests.helpers.amounts import LONG

HOME = Path(__file__).resolve().parents[3]
FLAGS = "-g -fsanitize=address,undefined -fno-sanitize-recover=all"
DAMAGED = [
    *(f"ntrace/test_{name}.py" for name in ("damage", "loss", "growth", "remembered_steps")),
    *(f"ntrace/test_{name}.py" for name in ("repeats", "several_harts")),
    *(f"etrace/test_{name}.py" for name in ("damage", "loss", "growth", "noise", "missing_packets")),
    *(f"kernel/test_{name}.py" for name in ("ntrace", "etrace", "tandem", "walks", "encoders")),
    "test_search.py",
    "test_coverage.py",
    "calls/test_call_history_properties.py",
]


def can_compile() -> bool:
    """Whether setup.py finds what it needs."""
    compiler = str(sysconfig.get_config_var("CC") or "cc").split()[0]
    header = Path(sysconfig.get_path("include"), "Python.h")
    return which(compiler) is not None and header.exists() and not sysconfig.get_config_var("Py_GIL_DISABLED")


@pytest.mark.skipif(os.environ.get("RVTRACE_KERNEL") == "0", reason="tested without the kernel")
def test_there_is_a_kernel_where_there_is_a_compiler() -> None:
    """setup.py forgives a compiler that fails, so that rvtrace can be installed everywhere. Here it must not fail."""
    if can_compile():
        assert loading.kernel() is not None, f"{loading.absence()}: run `pip install --editable .`"


def test_a_kernel_of_another_source_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    if loading.kernel() is None:
        pytest.skip("there is no kernel")
    monkeypatch.setattr(loading, "source_hash", lambda folder: "another")
    loading._built.cache_clear()
    try:
        assert (loading.kernel(), loading.absence()) == (None, "it was built from another source")
    finally:
        loading._built.cache_clear()


def test_a_kernel_for_later_pythons_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is compiled with the headers of Python 3.13 does not run in 3.11, which a checkout may be shared with."""
    built = loading.kernel()
    if built is None:
        pytest.skip("there is no kernel")
    assert sys.hexversion >= built.PYTHON and (built.PYTHON >= 0x030D0000) == (sys.version_info >= (3, 13))
    monkeypatch.setattr(built, "PYTHON", 0x7F010000)
    loading._built.cache_clear()
    try:
        assert (loading.kernel(), loading.absence()) == (None, "it was built for Python 127.1 and later")
    finally:
        loading._built.cache_clear()


def test_it_can_be_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RVTRACE_KERNEL", "0")
    assert (loading.kernel(), loading.absence()) == (None, "RVTRACE_KERNEL is 0")


def test_the_hash_is_another_for_every_source(tmp_path: Path) -> None:
    hashes = {source_hash(tmp_path)}
    for name, text in (("a.c", "1"), ("a.c", "2"), ("b.h", "2"), ("c.txt", "3")):
        (tmp_path / name).write_text(text)
        hashes.add(source_hash(tmp_path))
    assert len(hashes) == 4


@pytest.mark.skipif(not LONG or not can_compile(), reason="takes minutes, and a compiler")
def test_damaged_traces_under_sanitizers(tmp_path: Path) -> None:
    """No byte is read or written that is not the kernel's, whatever the trace contains."""
    flags, objects = {"RVTRACE_KERNEL_FLAGS": FLAGS}, tmp_path / "objects"
    build = [sys.executable, "setup.py", "-q", "build_ext", "--build-lib", str(tmp_path)]
    build += ["--build-temp", str(objects)]
    subprocess.run(build, cwd=HOME, check=True, env={**os.environ, **flags})
    (made,) = tmp_path.glob("**/_kernel*.so")
    library = subprocess.run(["cc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True)
    environ = {
        "LD_PRELOAD": library.stdout.strip(),
        "ASAN_OPTIONS": "detect_leaks=0",  # Python has its own at the end
        "SANITIZED_KERNEL": str(made),
        "RVTRACE_TEST_LONG": "",
    }
    hart = "tests/transport/simulated/hart/test_kernel_blocks.py"
    tests = ["tests/views/test_row_pieces.py", hart, *(f"tests/decode/{name}" for name in DAMAGED)]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-n", "0", "-p", "tests.decode.kernel.sanitized", *tests],
        cwd=HOME, env={**os.environ, **environ}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    assert "kernel that was made of" in done.stdout
