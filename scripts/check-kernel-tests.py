#!/usr/bin/env python3
"""Checks that tests in tests/kernels include each header of kernels/ and call each kernel, and that each file kernels/cpu/X.cpp which defines kernels has
tests of its name, tests/kernels/X_test.cpp, that include their header."""
import pathlib
import re
import sys

# A row of the table of kernels: extern Kernel<Tensor(const Tensor& x)> relu;
KERNEL = re.compile(r"^extern Kernel<[^;]*>\s*(\w+);", re.M)
# Its definition: constinit Kernel<Tensor(const Tensor&)> relu("relu", &relu_cpu);
DEFINED = re.compile(r"\bKernel<[^;]*?>\s*(\w+)\(\s*\"\w+\"\s*,\s*&\w+\s*\)")
COMMENT = re.compile(r"//.*")
ROOT = pathlib.Path(__file__).resolve().parent.parent


def has_tests(stem: str, headers: set) -> bool:
    """Whether tests/kernels/stem_test.cpp holds a test and includes all of `headers`."""
    path = ROOT / f"tests/kernels/{stem}_test.cpp"
    text = path.read_text() if path.exists() else ""
    return "TEST_CASE(" in text and all(f"#include <brigade/kernels/{header}.h>" in text for header in headers)


def main() -> int:
    tests = {path: COMMENT.sub("", path.read_text()) for path in (ROOT / "tests/kernels").glob("*_test.cpp")}
    everything = "\n".join(tests.values())
    headers = sorted((ROOT / "kernels").glob("*.h"))
    header_of = {}
    faults = []
    for header in headers:
        name = f"kernels/{header.name}:1"
        if not any(f"#include <brigade/kernels/{header.name}>" in text and "TEST_CASE(" in text for text in tests.values()):
            faults.append(f"{name}: no file of tests in tests/kernels includes it")
        for kernel in KERNEL.findall(header.read_text()):
            header_of[kernel] = header.stem
            if not re.search(rf"\b{kernel}\b", everything):
                faults.append(f"{name}: no test in tests/kernels names the kernel {kernel}")
    sources = 0
    for source in sorted((ROOT / "kernels/cpu").glob("*.cpp")):
        declared_in = {header_of[kernel] for kernel in DEFINED.findall(COMMENT.sub("", source.read_text())) if kernel in header_of}
        sources += bool(declared_in)
        if declared_in and not has_tests(source.stem, declared_in):
            faults.append(f"kernels/cpu/{source.name}:1: has no tests of its name; write tests/kernels/{source.stem}_test.cpp, "
                          f"which includes {' and '.join(sorted(f'kernels/{stem}.h' for stem in declared_in))}")
    print(*faults, f"{len(headers)} headers, {sources} sources, {len(header_of)} kernels, {len(faults)} faults", sep="\n")
    return 1 if faults or len(headers) < 10 or sources < 30 or len(header_of) < 80 else 0


if __name__ == "__main__":
    sys.exit(main())
