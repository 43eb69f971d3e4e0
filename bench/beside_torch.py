#!/usr/bin/env python3
"""`brigade bench ops|autograd|optim` beside PyTorch, in turns within one run; prints ratios.

Both programs stay alive and are asked for one case at a time, in turns, `--rounds` times; a ratio is taken within a round
and the median over the rounds is shown, beside the ratio of the minima. The environment is the same for both and fair to
PyTorch: one pool of --threads threads, no OPENBLAS_CORETYPE, and memory that glibc keeps (MALLOC_*_THRESHOLD_ raised).

    bench/beside_torch.py ops --threads 2
    bench/beside_torch.py autograd            # compiles bench/torch/autograd.cpp against the same PyTorch
    bench/beside_torch.py ops --cases 'matmul|conv2d|attention|layer_norm|softmax' --json ratios.json
    bench/beside_torch.py ops --openblas      # matrix products beside NumPy's OpenBLAS

Run it with a Python that has PyTorch, or NumPy for --openblas. Exits with 1 when --at-most is exceeded by the geometric mean.
"""
import argparse
import json
import math
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent


def environment(threads):
    env = {k: v for k, v in os.environ.items() if not k.startswith("OPENBLAS_")}
    env.update({name: str(threads) for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")})
    env.update({"MALLOC_TRIM_THRESHOLD_": "4294967296", "MALLOC_MMAP_THRESHOLD_": "4294967296"})
    return env


def compile_autograd(folder):
    import torch
    from torch.utils.cpp_extension import include_paths, library_paths
    program = str(pathlib.Path(folder) / "autograd_torch")
    libraries = [flag for path in library_paths() for flag in (f"-L{path}", f"-Wl,-rpath,{path}")]
    command = ["c++", "-O2", "-std=c++20", f"-D_GLIBCXX_USE_CXX11_ABI={int(torch._C._GLIBCXX_USE_CXX11_ABI)}",
               *(f"-I{path}" for path in include_paths()), str(ROOT / "bench/torch/autograd.cpp"), "-o", program,
               *libraries, "-ltorch", "-ltorch_cpu", "-lc10"]
    print("compiling the peer ...", file=sys.stderr)
    subprocess.run(command, check=True)
    return program


def find_peer(given, folder):
    """(name with version, command)"""
    if given.openblas:
        import numpy
        blas = numpy.show_config(mode="dicts")["Build Dependencies"]["blas"]
        if "openblas" not in blas["name"]:
            raise SystemExit(f"this NumPy computes with {blas['name']}, not with OpenBLAS")
        return f"OpenBLAS {blas['version']}", [sys.executable, str(ROOT / "bench/openblas/products.py"), "--seconds",
                                               str(given.seconds)]
    import torch
    name = f"PyTorch {torch.__version__}"
    if given.suite == "autograd":
        return name, [compile_autograd(folder), str(given.seconds)]
    return name, [sys.executable, str(ROOT / "bench/torch/ops.py"), given.suite, "--seconds", str(given.seconds), "--threads",
                  str(given.threads), *(["--not-fused"] if given.not_fused else [])]


class Program:
    def __init__(self, command, env):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)

    def time(self, case):
        self.process.stdin.write(case + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise SystemExit(f"{self.process.args[0]} ended at case '{case}'")
        return json.loads(answer)["us"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suite", choices=["ops", "autograd", "optim"])
    parser.add_argument("--cases", default="", help="regular expression")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.3, help="for each case, program and round")
    parser.add_argument("--program", default=str(ROOT / "build/cpu/bin/brigade"))
    parser.add_argument("--not-fused", action="store_true", help="PyTorch's foreach optimizers instead of its fused ones")
    parser.add_argument("--openblas", action="store_true", help="matrix products beside NumPy's OpenBLAS, forward")
    parser.add_argument("--at-most", type=float, help="fail when the geometric mean of the ratios is larger")
    parser.add_argument("--json")
    given = parser.parse_args()
    env = environment(given.threads)
    listed = subprocess.run([given.program, "bench", given.suite, "--list"], check=True, capture_output=True, text=True)
    cases = [name for name in listed.stdout.splitlines() if re.search(given.cases, name)]
    if given.openblas:
        cases = [name for name in cases if re.fullmatch("(matmul|linear|bmm) .* forward", name)]
    if not cases:
        raise SystemExit(f"no case of {given.suite} matches '{given.cases}'")
    with tempfile.TemporaryDirectory() as folder:
        peer, command = find_peer(given, folder)
        ours = Program([given.program, "bench", given.suite, "--follow", "--seconds", str(given.seconds), "--threads",
                        str(given.threads)], env)
        theirs = Program(command, env)
        unit, factor = ("ns", 1000) if given.suite == "autograd" else ("us", 1)
        print(f"{peer}, {given.threads} thread(s), {given.rounds} rounds; median [minimum] in {unit}")
        print(f"{'case':<40} {'brigade':>22} {peer.split()[0]:>22} {'ratio':>8} {'of minima':>10}")
        rows = []
        for case in cases:
            rounds = [(ours.time(case), theirs.time(case)) for _ in range(given.rounds)]
            a, b = [x for r in rounds for x in r[0]], [x for r in rounds for x in r[1]]
            ratio = statistics.median(statistics.median(x) / statistics.median(y) for x, y in rounds)
            row = {"case": case, "brigade_us": {"median": statistics.median(a), "min": min(a)},
                   "peer_us": {"median": statistics.median(b), "min": min(b)}, "ratio": ratio,
                   "ratio_of_minima": min(a) / min(b)}
            rows.append(row)
            shown = [f"{factor * x['median']:.1f} [{factor * x['min']:.1f}]" for x in (row["brigade_us"], row["peer_us"])]
            print(f"{case:<40} {shown[0]:>22} {shown[1]:>22} {ratio:>8.3f} {row['ratio_of_minima']:>10.3f}", flush=True)
    mean = math.exp(statistics.fmean(math.log(row["ratio"]) for row in rows))
    worst = max(rows, key=lambda row: row["ratio"])
    print(f"geometric mean of {len(rows)} ratios: {mean:.3f}; largest: {worst['ratio']:.3f} ({worst['case']})")
    if given.json:
        pathlib.Path(given.json).write_text(json.dumps({"peer": peer, "threads": given.threads, "rows": rows,
                                                        "geometric_mean": mean}, indent=1))
    return 1 if given.at_most is not None and mean > given.at_most else 0


sys.exit(main())
