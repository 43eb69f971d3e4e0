#!/usr/bin/env python3
"""Arrays between Brigade and NumPy by DLPack, both ways, in both forms of the struct.

    dlpack_numpy.py BRIDGE   a library built from dlpack_bridge.cpp

Exits with 77 when NumPy is missing; core/dlpack_test covers the structs themselves.
"""
import ctypes
import gc
import sys

try:
    import numpy
except ImportError:
    print(f"{sys.executable} has no numpy: DLPack is tested through the structs alone")
    sys.exit(77)

bridge = ctypes.CDLL(sys.argv[1])
bridge.bridge_export.restype = ctypes.c_void_p
bridge.bridge_export.argtypes = [ctypes.c_char_p, ctypes.c_int, ctypes.c_int, ctypes.c_int]
bridge.bridge_import.restype = ctypes.c_char_p
bridge.bridge_import.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_int]
python = ctypes.pythonapi
python.PyCapsule_New.restype = ctypes.py_object
python.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
python.PyCapsule_GetPointer.restype = ctypes.c_void_p
python.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
python.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]

NAMES = {0: b"dltensor", 1: b"dltensor_versioned"}
USED = {0: b"used_dltensor", 1: b"used_dltensor_versioned"}  # kept: a capsule does not copy its name


class Exported:
    """What numpy.from_dlpack asks for."""

    def __init__(self, dtype, turned, versioned, read_only=False):
        self.versioned = versioned
        self.managed = bridge.bridge_export(dtype.encode(), turned, versioned, read_only)

    def __dlpack_device__(self):
        return 1, 0

    def __dlpack__(self, **_):
        return python.PyCapsule_New(self.managed, NAMES[self.versioned], None)


def given_to_brigade(array, versioned, copy=False):
    """What Brigade saw of a NumPy array, or its error."""
    capsule = array.__dlpack__(max_version=(1, 1)) if versioned else array.__dlpack__()
    text = bridge.bridge_import(python.PyCapsule_GetPointer(capsule, NAMES[versioned]), versioned, copy).decode()
    if not text.startswith("from_dlpack:"):
        python.PyCapsule_SetName(capsule, USED[versioned])  # taken: the capsule does not delete it
    return text


def main():
    new = numpy.lib.NumpyVersion(numpy.__version__) >= "2.1.0"  # knows the versioned form
    forms = (0, 1) if new else (0,)
    taken = 0
    for dtype in ["float64", "float32", "float16", "int64", "int32", "uint8", "bool"]:
        for turned in (0, 1):
            for versioned in forms:
                array = numpy.from_dlpack(Exported(dtype, turned, versioned))
                expected = numpy.arange(6).reshape(2, 3)
                expected = (expected % 2 if dtype == "bool" else expected).astype(dtype)
                expected = expected.T if turned else expected
                assert array.dtype == expected.dtype and numpy.array_equal(array, expected) and array.strides == expected.strides
                del array  # the deleter gives the tensor back

                sent = expected.copy(order="K")
                references = sys.getrefcount(sent)
                seen = given_to_brigade(sent, versioned)
                shape, strides = ("[3, 2]", "[1, 3]") if turned else ("[2, 3]", "[3, 1]")
                values = " ".join(str(int(value)) for value in expected.ravel())
                assert seen == f"{dtype} {shape} {strides}: {values}", seen
                if dtype == "float32":
                    assert sent[0, 0] == 1  # the same memory
                gc.collect()
                assert sys.getrefcount(sent) == references, "the array was not given back once"
                taken += 2
    if new:
        assert not numpy.from_dlpack(Exported("float32", 0, 1, read_only=True)).flags.writeable
        assert numpy.from_dlpack(Exported("float32", 0, 1)).flags.writeable
        frozen = numpy.arange(3, dtype="float32")
        frozen.flags.writeable = False
        assert "read-only" in given_to_brigade(frozen, 1)
        assert given_to_brigade(frozen, 1, copy=True) == "float32 [3] [1]: 0 1 2" and frozen[0] == 0
    assert "stride -1 of dimension 0" in given_to_brigade(numpy.arange(3, dtype="float32")[::-1], 0)
    assert "code 0, 16 bits" in given_to_brigade(numpy.arange(3, dtype="int16"), 0)
    assert given_to_brigade(numpy.arange(6, dtype="float32")[1::2], 0) == "float32 [3] [2]: 1 3 5"
    assert given_to_brigade(numpy.array(7, "float32"), 0) == "float32 [] []: 7"
    print(f"numpy {numpy.__version__}: {taken} arrays handed over without a copy, in {len(forms)} forms of the struct")
    return 0


sys.exit(main())
