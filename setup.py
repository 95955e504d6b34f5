"""What pyproject.toml cannot say: the compiled kernel, one build for several Pythons, if there is a compiler.

RVTRACE_KERNEL_FLAGS: more arguments of the compiler and the linker, as for a build under sanitizers.
"""

import os
import sys
import sysconfig
from pathlib import Path
from runpy import run_path
from shlex import split

from setuptools import Extension, setup

FOLDER = Path("rvtrace_gdb/decode/kernel")
# What is compiled with the headers of 3.13 and later does not run in earlier Pythons, whatever limited API it asks for:
# `#` of PyArg_ParseTuple is another function there.
OLDEST = (3, 13) if sys.version_info >= (3, 13) else (3, 11)
FLAGS = split(os.environ.get("RVTRACE_KERNEL_FLAGS", ""))

kernel = Extension(
    "rvtrace_gdb.decode.kernel._kernel",
    sorted(map(str, FOLDER.glob("**/*.c"))),
    depends=sorted(map(str, FOLDER.glob("**/*.h"))),
    include_dirs=sorted({str(header.parent) for header in FOLDER.glob("**/*.h")}),
    define_macros=[
        ("KERNEL_SOURCE", f'"{run_path(str(FOLDER / "source.py"))["source_hash"](FOLDER)}"'),
        ("PY_SSIZE_T_CLEAN", None),
        ("Py_LIMITED_API", f"0x{OLDEST[0]:02x}{OLDEST[1]:02x}0000"),
    ],
    extra_compile_args=["-std=c11", "-O3", *FLAGS],
    extra_link_args=FLAGS,
    py_limited_api=True,
    # Where it cannot be compiled, the decoders do without.
    optional=True,
)

setup(
    # A free-threaded Python has no limited API.
    ext_modules=[] if sysconfig.get_config_var("Py_GIL_DISABLED") else [kernel],
    options={"bdist_wheel": {"py_limited_api": f"cp{OLDEST[0]}{OLDEST[1]}"}},
)
