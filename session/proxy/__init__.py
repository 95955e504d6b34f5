"""The proxy between gdb and the stub, which gives gdb the past of the target."""

from rvtrace_gdb.session.proxy.errors import ListenFailed, StubAbsent, StubGone
from rvtrace_gdb.session.proxy.extension import Asking, Extension
from rvtrace_gdb.session.proxy.proxy import Proxy

__all__ = ["Asking", "Extension", "ListenFailed", "Proxy", "StubAbsent", "StubGone"]
