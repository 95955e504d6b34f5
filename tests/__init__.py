"""The tests. What has to be settled before the first module of theirs is compiled stands here."""

import os
import sys
from pathlib import Path

# Tests start some thousand Pythons. Where bytecode is not wanted beside the sources, it is kept elsewhere, so that not
# each of them, and each of pytest's workers, compiles all of rvtrace and of the tests again.
if os.environ.pop("PYTHONDONTWRITEBYTECODE", None):
    os.environ["PYTHONPYCACHEPREFIX"] = str(Path(__file__).resolve().parent.parent / "build" / "pycache")
    sys.dont_write_bytecode, sys.pycache_prefix = False, os.environ["PYTHONPYCACHEPREFIX"]
