"""What `source` loads inside gdb: it finds the folder it lies in and loads the extension from there.

Outside gdb the Python API is `import rvtrace_gdb`.
"""

import gc
import importlib
import importlib.util
import os
import sys

_PACKAGE = "rvtrace_gdb"
_COMMANDS = _PACKAGE + ".gdbext.commands"


def _home() -> str:
    """The folder of this file. `__file__` is the outer file's where gdb sources this one from another Python file."""
    file = _home.__code__.co_filename
    return os.path.dirname(os.path.realpath(file if os.path.isfile(file) else __file__))


def _load_extension() -> None:
    """Load the package from beside this file, without putting this folder on gdb's module path."""
    home = _home()
    folder = os.path.join(home, _PACKAGE)
    if _COMMANDS in sys.modules:  # sourced before
        sys.modules[_COMMANDS].release()
    for name in [name for name in sys.modules if name.partition(".")[0] == _PACKAGE]:
        del sys.modules[name]
    spec = importlib.util.spec_from_file_location(
        _PACKAGE, os.path.join(folder, "__init__.py"), submodule_search_locations=[folder]
    )
    if spec is None or spec.loader is None or not os.path.isdir(os.path.join(folder, "gdbext")):
        print(f"rvtrace: the folder {_PACKAGE} is missing in {home}: source the rvtrace.py of a complete copy.")
        return
    package = importlib.util.module_from_spec(spec)
    sys.modules[_PACKAGE] = package
    collecting = gc.isenabled()
    gc.disable()  # what is loaded stays: to search it for garbage again and again is an eighth of the time
    try:
        spec.loader.exec_module(package)
        importlib.import_module(_COMMANDS).register(home)
    finally:
        if collecting:
            gc.enable()


if "gdb" not in sys.modules:
    raise ImportError("rvtrace.py is what gdb sources; the Python API of rvtrace is `import rvtrace_gdb`")
if sys.version_info < (3, 9):  # noqa: UP036 - gdb's Python is not the project's
    print("rvtrace: gdb was built with Python {}.{}; 3.9 or newer is needed.".format(*sys.version_info[:2]))
else:
    _load_extension()
