"""A plugin of pytest: the decoders take the kernel that the environment names, in place of the usual one."""

import os
from functools import cache
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_loader

from rvtrace_gdb.decode.kernel import loading

_loader = ExtensionFileLoader("_kernel", os.environ["SANITIZED_KERNEL"])
_spec = spec_from_loader("_kernel", _loader)
assert _spec is not None
_module = module_from_spec(_spec)
_loader.exec_module(_module)
loading._built = cache(lambda: (_module, ""))


def pytest_report_header() -> str:
    """Say which kernel is tested."""
    return f"kernel that was made of {_module.SOURCE}: {_loader.path}"
