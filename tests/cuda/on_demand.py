"""A program built with CUDA: nothing of CUDA is loaded at its start, it trains on the CPU, and --device cuda either runs or says why not.

usage: on_demand.py PROGRAM
"""

import os
import re
import subprocess
import sys

CUDA = re.compile(r"libcuda|libcudart|libcublas|libcudnn|libnccl|libbrigade_cuda")
TRAIN = ["train", "digits", "--ranks", "2", "--backend", "threads", "--epochs", "1", "--batch", "256", "--quiet"]


def run(*command, **variables):
    return subprocess.run(command, capture_output=True, text=True, timeout=300, env={**os.environ, **variables})


def main():
    program = sys.argv[1]
    loaded = run("ldd", program)
    if loaded.returncode != 0 or CUDA.search(loaded.stdout):
        sys.exit(f"the program needs CUDA at its start:\n{loaded.stdout}{loaded.stderr}")
    on_cpu = run(program, *TRAIN, "--device", "cpu", LD_DEBUG="files")
    if on_cpu.returncode != 0:
        sys.exit(f"training on the CPU failed:\n{on_cpu.stdout}{on_cpu.stderr[-2000:]}")
    if CUDA.search(on_cpu.stderr):
        sys.exit("training on the CPU has loaded CUDA")
    on_cuda = run(program, *TRAIN, "--device", "cuda")
    said_why = on_cuda.returncode != 0 and "there is no cuda:0: " in on_cuda.stderr + on_cuda.stdout
    if on_cuda.returncode != 0 and not said_why:
        sys.exit(f"--device cuda failed without saying why:\n{on_cuda.stdout}{on_cuda.stderr}")
    print("trained on a GPU" if on_cuda.returncode == 0 else (on_cuda.stderr + on_cuda.stdout).strip())
    missing = run(program, *TRAIN, "--device", "cuda", BRIGADE_CUDA_LIBRARY="/nowhere.so")
    if missing.returncode == 0 or "the CUDA library could not be loaded" not in missing.stderr + missing.stdout:
        sys.exit(f"a library that is not there was not named:\n{missing.stdout}{missing.stderr}")


main()
