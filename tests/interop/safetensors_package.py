#!/usr/bin/env python3
"""Brigade beside the Python package `safetensors`, both ways.

    safetensors_package.py PROGRAM     the package writes, Brigade reads and writes again, the package reads: the same bytes
    safetensors_package.py --fixture   writes tests/core/data/python.safetensors (committed; made with 0.8.0)

Exits with 77 when the package is missing; the committed file then stands for it (core/safetensors_test).
"""
import ctypes
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

try:
    import safetensors
except ImportError:
    print(f"{sys.executable} has no package `safetensors` (pip install safetensors): only the committed file is tested here")
    sys.exit(77)

ITEMSIZE = {"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2, "int64": 8, "int32": 4, "uint8": 1, "bool": 1}


def serialize(tensors, metadata):
    """`tensors`: name -> (dtype, shape, bytes). Older packages take dictionaries, newer ones addresses."""
    if not hasattr(safetensors, "TensorSpec"):
        return safetensors.serialize({name: {"dtype": dtype, "shape": shape, "data": data}
                                      for name, (dtype, shape, data) in tensors.items()}, metadata)
    buffers = {name: ctypes.create_string_buffer(data, max(len(data), 1)) for name, (_, _, data) in tensors.items()}
    return safetensors.serialize(
        {name: safetensors.TensorSpec(dtype=dtype, shape=shape, data_ptr=ctypes.addressof(buffers[name]), data_len=len(data))
         for name, (dtype, shape, data) in tensors.items()}, metadata)


def fixture():
    def entry(dtype, shape, form, *values):
        return dtype, shape, struct.pack("<" + form, *values)

    return serialize({
        "f64": entry("float64", [3], "3d", 0.1, -1e300, 5e-324),
        "f32": entry("float32", [2, 3], "6f", 0, 1.5, 3, 4.5, 6, 7.5),
        "f16": entry("float16", [3], "3e", 1, -2, 65504),
        "bf16": entry("bfloat16", [3, 1], "3H", 0x3F80, 0xC000, 0x3F00),
        "i64": entry("int64", [2], "2q", -1, 2**63 - 1),
        "i32": entry("int32", [2], "2i", -7, 8),
        "u8": entry("uint8", [2], "2B", 0, 255),
        "bool": entry("bool", [3], "3?", True, False, True),
        "empty": entry("float32", [0, 3], ""),
        "scalar": entry("float32", [], "f", 2.5),
        'name with "quotes" and ü': entry("float32", [1], "f", 9),
    }, {"made by": "safetensors for Python, ü\n"})


def random_tensors(generator):
    tensors = {}
    for _ in range(generator.randrange(12)):
        dtype = generator.choice(list(ITEMSIZE))
        shape = [generator.randrange(5) for _ in range(generator.randrange(5))]
        count = ITEMSIZE[dtype]
        for size in shape:
            count *= size
        data = bytes(generator.randrange(2) for _ in range(count)) if dtype == "bool" else generator.randbytes(count)
        tensors["".join(generator.choice('ab."\\\n\x01é漢😀') for _ in range(generator.randrange(1, 9)))] = dtype, shape, data
    return tensors


def main():
    if sys.argv[1] == "--fixture":
        (pathlib.Path(__file__).parent.parent / "core/data/python.safetensors").write_bytes(fixture())
        return 0
    cases = [fixture()]
    generator = random.Random(5)
    for case in range(40):
        # With two texts the package writes them in an order of its own each time.
        cases.append(serialize(random_tensors(generator), {"case": str(case)} if case % 2 else None))
    with tempfile.TemporaryDirectory() as folder:
        given = [pathlib.Path(folder) / f"{i}.given" for i in range(len(cases))]
        for path, data in zip(given, cases):
            path.write_bytes(data)
        subprocess.run([sys.argv[1], "safetensors", *map(str, given)], check=True)
        tensors = 0
        for path, data in zip(given, cases):
            again = path.with_suffix(".given.again").read_bytes()
            assert again == data, f"{path.name}: written otherwise:\n{data!r}\n{again!r}"
            held = dict(safetensors.deserialize(again))
            assert held == dict(safetensors.deserialize(data))
            tensors += len(held)
    print(f"safetensors {safetensors.__version__}: {len(cases)} files, {tensors} tensors, the same bytes both ways")
    return 0


sys.exit(main())
