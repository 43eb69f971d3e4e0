#!/usr/bin/env python3
"""Checks that each header kernels/X.h has tests of its name, tests/kernels/X_test.cpp, and that the tests there call each kernel."""
import pathlib
import re
import sys

# A row of the table of kernels: extern Kernel<Tensor(const Tensor& x)> relu;
KERNEL = re.compile(r"^extern Kernel<[^;]*>\s*(\w+);", re.M)
COMMENT = re.compile(r"//.*")


def faults_of(root: pathlib.Path, header: pathlib.Path) -> list[str]:
    name = f"tests/kernels/{header.stem}_test.cpp"
    path = root / name
    if not path.exists():
        return [f"has no tests of its name; write {name}"]
    text = path.read_text()
    faults = []
    if f"#include <brigade/kernels/{header.name}>" not in text:
        faults.append(f"{name} does not include it")
    if "TEST_CASE(" not in text:
        faults.append(f"{name} holds no TEST_CASE")
    return faults


def main() -> int:
    root = pathlib.Path(__file__).resolve().parent.parent
    tests = "\n".join(COMMENT.sub("", path.read_text()) for path in (root / "tests/kernels").glob("*_test.cpp"))
    headers = sorted((root / "kernels").glob("*.h"))
    kernels = 0
    wrong = 0
    for header in headers:
        faults = faults_of(root, header)
        for kernel in KERNEL.findall(header.read_text()):
            kernels += 1
            if not re.search(rf"\b{kernel}\b", tests):
                faults.append(f"no test in tests/kernels names the kernel {kernel}")
        for fault in faults:
            print(f"{header.relative_to(root)}:1: {fault}")
        wrong += len(faults)
    print(f"{len(headers)} headers, {kernels} kernels, {wrong} faults")
    return 1 if wrong or len(headers) < 30 or kernels < 80 else 0


if __name__ == "__main__":
    sys.exit(main())
