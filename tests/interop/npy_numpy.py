#!/usr/bin/env python3
"""Brigade beside NumPy on npy files, both ways.

    npy_numpy.py PROGRAM     NumPy writes, Brigade reads and writes again: what numpy.save writes, and NumPy reads the same array
    npy_numpy.py --fixture   writes tests/core/data/*.npy (committed; made with NumPy 2.4.6)

Exits with 77 when NumPy is missing; the committed files then stand for it (core/npy_test).
"""
import io
import itertools
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy
except ImportError:
    print(f"{sys.executable} has no numpy: only the committed files are tested here")
    sys.exit(77)

DTYPES = ["<f8", ">f8", "<f4", ">f4", "<f2", ">f2", "<i8", ">i8", "<i4", ">i4", "|u1", "|b1"]


def written(array, version=None):
    file = io.BytesIO()
    numpy.lib.format.write_array(file, array, version=version)
    return file.getvalue()


def fixture():
    folder = pathlib.Path(__file__).parent.parent / "core/data"
    matrix = numpy.arange(6).reshape(2, 3)
    for dtype in DTYPES:
        name = numpy.dtype(dtype).name + ("_big" if dtype[0] == ">" else "")
        (folder / f"{name}.npy").write_bytes(written((matrix % 2 if dtype == "|b1" else matrix).astype(dtype)))
    (folder / "fortran.npy").write_bytes(written(numpy.asfortranarray(matrix.astype("<f4"))))
    (folder / "fortran_big.npy").write_bytes(written(numpy.asfortranarray(matrix.astype(">i4"))))
    (folder / "version2.npy").write_bytes(written(matrix.astype("<f4"), (2, 0)))
    (folder / "version3.npy").write_bytes(written(matrix.astype("<f4"), (3, 0)))
    (folder / "scalar.npy").write_bytes(written(numpy.array(2.5, "<f4")))
    (folder / "empty.npy").write_bytes(written(numpy.zeros((0, 3), "<f8")))


def main():
    if sys.argv[1] == "--fixture":
        fixture()
        return 0
    generator = numpy.random.default_rng(5)
    shapes = [(), (1,), (7,), (0,), (2, 3), (3, 1), (0, 4), (2, 3, 4), (1, 1, 5, 2), (2, 1, 2, 1, 2, 1, 2, 1), (100000,)]
    arrays = []
    for dtype, shape, order in itertools.product(DTYPES, shapes, "CF"):
        values = generator.integers(0, 2 if dtype == "|b1" else 100, shape)
        arrays.append(numpy.asarray(values, dtype=dtype, order=order))
    versions = [(1, 0), (2, 0), (3, 0)]
    with tempfile.TemporaryDirectory() as folder:
        given = []
        for i, array in enumerate(arrays):
            given.append(pathlib.Path(folder) / f"{i}.npy")
            given[-1].write_bytes(written(array, versions[i % 3]))
        subprocess.run([sys.argv[1], "npy", *map(str, given)], check=True)
        for path, array in zip(given, arrays):
            again = path.with_suffix(".npy.again")
            # asarray keeps the layout of `array`; Brigade writes little endian.
            assert again.read_bytes() == written(array.astype(array.dtype.newbyteorder("<"), order="K")), (array, again.read_bytes())
            read = numpy.load(again)
            assert read.dtype == array.dtype.newbyteorder("<") and numpy.array_equal(read, array)
    print(f"numpy {numpy.__version__}: {len(arrays)} arrays, the same both ways")
    return 0


sys.exit(main())
