"""What the package leaves out: memory, floating-point registers, the privilege mode.

They are reached through the C++ objects behind the package's Python ones, and through functions of its library. The
addresses of the objects come from pybind11, which looks at their types before it tells them (`_pybind11_conduit_v1_`).
"""

import ctypes
import re
from ctypes import c_char, c_char_p, c_void_p, py_object
from typing import Any

_INTERNALS = re.compile(rb"__pybind11_internals_v\d+_(\w+?)__\0")


class Unusable(Exception):
    """The package cannot be used: why."""


class Inside:
    """*library*: Spike's; *extension*: the package's module. Raises Unusable where they are not as they were."""

    def __init__(self, library: str, extension: str) -> None:
        self._library = ctypes.CDLL(library)
        with open(extension, "rb") as file:
            found = _INTERNALS.search(file.read())
        if found is None:
            raise Unusable("it is built in another way than the versions that are known")
        self._abi = found[1]
        self._kept: list[Any] = []  # what pybind11 may look at again
        python = ctypes.pythonapi
        self._capsule = python.PyCapsule_New
        self._capsule.restype, self._capsule.argtypes = py_object, [c_void_p, c_char_p, c_void_p]
        self._pointer = python.PyCapsule_GetPointer
        self._pointer.restype, self._pointer.argtypes = c_void_p, [py_object, c_char_p]
        self._name = python.PyCapsule_GetName
        self._name.restype, self._name.argtypes = c_char_p, [py_object]

    def address(self, thing: Any, type_name: bytes) -> int:
        """Of the object behind *thing*, which is of the type `std::type_info::name` gives this name."""
        capsule = self._capsule(self._type_info(type_name), b"St9type_info", None)
        found = thing._pybind11_conduit_v1_(self._abi, capsule, b"raw_pointer_ephemeral")
        if found is None:
            raise Unusable(f"its {type_name.decode()} is not what it was")
        return int(self._pointer(found, self._name(found)))

    def _type_info(self, type_name: bytes) -> int:
        """A `std::type_info` as C++ lays it out: a table of functions, any type's, and the name it is compared by."""
        table = c_void_p.from_address(ctypes.addressof(c_char.in_dll(self._library, "_ZTI5sim_t"))).value
        name = ctypes.create_string_buffer(type_name)
        info = (c_void_p * 2)(table, ctypes.addressof(name))
        self._kept += [name, info]
        return ctypes.addressof(info)

    def function(self, name: str, result: Any, *arguments: Any) -> Any:
        """Of the library, by its mangled name."""
        try:
            found = self._library[name]
        except AttributeError:
            raise Unusable(f"its library has no {name}") from None
        found.restype, found.argtypes = result, arguments
        return found
