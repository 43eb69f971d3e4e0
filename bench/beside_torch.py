#!/usr/bin/env python3
"""`brigade bench` beside PyTorch, in turns within one run; prints ratios.

Suites of one process (ops, autograd, optim): both programs stay alive and are asked for one case at a time. Suites of
several ranks (ddp, allreduce): Brigade's ranks on each of --backends, and PyTorch's over Gloo, each rank on a core of its
own with one thread; whole training steps of five networks (zero_grad to SGD), or all-reduces of buffers just written.
The suite accuracy prints no times: the relative error of long sums and products in float32, of the same numbers in both.
With --device cuda the steps are those of GPUs over NCCL, here and in PyTorch, in both without TF32.
A ratio is taken within a round and the median over the rounds is shown, beside the ratio of the minima.

The environment is the same for all and fair to PyTorch: one pool of --threads threads, no OPENBLAS_*, memory that glibc
keeps (MALLOC_*_THRESHOLD_ raised), its fused optimizers.

    bench/beside_torch.py ops --threads 2
    bench/beside_torch.py autograd            # compiles bench/torch/autograd.cpp against the same PyTorch
    bench/beside_torch.py ops --cases 'matmul|conv2d|attention|layer_norm|softmax' --json ratios.json
    bench/beside_torch.py ops --openblas      # matrix products beside NumPy's OpenBLAS
    bench/beside_torch.py ddp --backends shm --cases 'mlp|big' --modes local,strict --rounds 10
    bench/beside_torch.py ddp --device cuda --ranks 1 --modes local,strict,graph --steps 50
    bench/beside_torch.py accuracy --sizes 1048576,16777216 --cases 'dot|mv'
    bench/beside_torch.py allreduce --backends shm,gloo --sizes 4096,1048576

Run it with a Python that has PyTorch, or NumPy for --openblas. Exits with 1 when --at-most is exceeded by the geometric mean.
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import turns

ROOT = pathlib.Path(__file__).resolve().parent.parent
MODELS = ["mlp", "cnn", "transformer", "many", "big"]
STEPS = {"mlp": 8, "cnn": 3, "transformer": 2, "many": 8, "big": 4}  # in a round: about as long as each other


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
    not_fused = ["--not-fused"] if given.not_fused else []
    if given.suite == "autograd":
        return name, [compile_autograd(folder), str(given.seconds)]
    if given.suite == "accuracy":
        return name, [sys.executable, str(ROOT / "bench/torch/accuracy.py")]
    if given.suite in ("ddp", "allreduce"):
        return name, [sys.executable, str(ROOT / "bench/torch/ranks.py"), given.suite, "--ranks", str(given.ranks), "--device",
                      given.device, *not_fused]
    return name, [sys.executable, str(ROOT / "bench/torch/ops.py"), given.suite, "--seconds", str(given.seconds), "--threads",
                  str(given.threads), *not_fused]


def one_process(given, peer, theirs, env):
    """Rows of the suites of one process."""
    listed = subprocess.run([given.program, "bench", given.suite, "--list"], check=True, capture_output=True, text=True)
    cases = [name for name in listed.stdout.splitlines() if re.search(given.cases, name)]
    if given.openblas:
        cases = [name for name in cases if re.fullmatch("(matmul|linear|bmm) .* forward", name)]
    if not cases:
        raise SystemExit(f"no case of {given.suite} matches '{given.cases}'")
    ours = turns.Program([given.program, "bench", given.suite, "--follow", "--seconds", str(given.seconds), "--threads",
                          str(given.threads)], env)
    unit, factor = ("ns", 1000) if given.suite == "autograd" else ("us", 1)
    turns.print_header(peer, unit, f"{peer}, {given.threads} thread(s), {given.rounds} rounds")
    rows = []
    for case in cases:
        rounds = [(ours.time(case), theirs.time(case)) for _ in range(given.rounds)]
        rows.append(turns.compare(case, *zip(*rounds)))
        turns.print_row(rows[-1], factor)
    return rows


ACCURACY = ["sum", "mean", "var", "norm", "sum_columns", "dot", "matmul", "einsum", "mv", "mv_transposed", "mm"]


def accuracy(given, peer, theirs, env):
    """Prints errors, and returns them."""
    ours = turns.Program([given.program, "bench", "follow", "accuracy"], env)
    print(f"relative errors in float32 beside float64, {peer}, {given.threads} thread(s)")
    print(f"{'case':<40} {'brigade':>12} {peer.split()[0]:>12}")
    rows = []
    for operation in (name for name in ACCURACY if re.search(given.cases, name)):
        for size in given.sizes.split(","):
            case = f"{operation} {size}"
            rows.append({"case": case, "brigade_error": ours.ask(case)["error"], "peer_error": theirs.ask(case)["error"]})
            print(f"{case:<40} {rows[-1]['brigade_error']:>12.2e} {rows[-1]['peer_error']:>12.2e}", flush=True)
    ours.end()
    return rows


def groups_of_cases(given):
    """Lists of lines; the lines of one list take turns with each other."""
    if given.suite == "ddp":
        models = [model for model in MODELS if re.search(given.cases, model)]
        return [[f"{model} {mode} {given.steps or STEPS[model]}" for mode in given.modes.split(",")] for model in models]
    calls = lambda size: 50 if size <= 1 << 16 else 20 if size <= 1 << 20 else 5
    return [[f"{dtype} {size} {way} {calls(size)}" for way in ("in_place", "staged")] for dtype in given.dtypes.split(",")
            for size in map(int, given.sizes.split(","))]


def on_ranks(given, peer, theirs, env):
    """Rows of the suites of several ranks; of ddp with what each mode costs beside the first one."""
    groups = groups_of_cases(given)
    if not groups:
        raise SystemExit(f"no model of {MODELS} matches '{given.cases}'")
    device = ["--device", given.device] if given.device != "cpu" else []
    programs = {backend: turns.Program([given.program, "bench", "follow", given.suite, "--backend", backend, "--ranks",
                                        str(given.ranks), *device], env) for backend in given.backends.split(",")}
    unit, factor = ("us", 1) if given.suite == "allreduce" else ("ms", 0.001)
    way = "NCCL" if given.device == "cuda" else "Gloo"
    turns.print_header(peer, unit, f"{peer} over {way}, {given.ranks} ranks, {given.rounds} rounds, {turns.processor()}")
    rows = []
    for lines in groups:
        taken = {(who, line): [] for who in [*programs, peer] for line in lines}
        for count in range(given.rounds + 1):
            for line in lines:
                for who, program in [*programs.items(), (peer, theirs)]:
                    us = program.time(line)
                    if count > 0:  # the first round warms up
                        taken[who, line].append(us)
        for line in lines:
            for backend in programs:
                row = turns.compare(f"{line.rsplit(' ', 1)[0]} {backend}", taken[backend, line], taken[peer, line])
                if given.suite == "ddp":
                    row["brigade_to_first_mode"] = turns.compare("", taken[backend, line], taken[backend, lines[0]])["ratio"]
                    row["peer_to_first_mode"] = turns.compare("", taken[peer, line], taken[peer, lines[0]])["ratio"]
                rows.append(row)
                turns.print_row(row, factor)
    if given.suite == "ddp" and "," in given.modes:
        first = given.modes.split(",")[0]
        print(f"\nstep / that of {first} in the same round: brigade, {peer.split()[0]}")
        for row in rows:
            print(f"{row['case']:<40} {row['brigade_to_first_mode']:>8.3f} {row['peer_to_first_mode']:>8.3f}")
    for program in programs.values():
        program.end()
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suite", choices=["ops", "autograd", "optim", "accuracy", "ddp", "allreduce"])
    parser.add_argument("--cases", default="", help="regular expression; ddp: of the models")
    parser.add_argument("--threads", type=int, default=1, help="of ops and optim; ranks have one each")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.3, help="for each case, program and round")
    parser.add_argument("--program", default=str(ROOT / "build/cpu/bin/brigade"))
    parser.add_argument("--not-fused", action="store_true", help="PyTorch's foreach optimizers instead of its fused ones")
    parser.add_argument("--openblas", action="store_true", help="matrix products beside NumPy's OpenBLAS, forward")
    parser.add_argument("--ranks", type=int, default=2, help="of ddp and allreduce")
    parser.add_argument("--backends", help="Brigade's, of ddp and allreduce (shm,gloo,threads; with --device cuda nccl)")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu", help="of ddp")
    parser.add_argument("--steps", type=int, help="of ddp, in a round (by the model, 2 to 8)")
    parser.add_argument("--modes", default="local,strict,find_unused,unused10", help="of ddp, as in brigade bench ddp")
    parser.add_argument("--dtypes", default="float32", help="of allreduce")
    parser.add_argument("--sizes", help="of allreduce, in bytes (4096 to 67108864); of accuracy, numbers (2^20, 2^22, 2^24)")
    parser.add_argument("--at-most", type=float, help="fail when the geometric mean of the ratios is larger")
    parser.add_argument("--json")
    given = parser.parse_args()
    if given.device == "cuda" and given.suite != "ddp":
        parser.error("--device cuda is of ddp; blocks and kernels: bench/cuda_blocks_torch.py, bench/cuda_kernels_torch.py")
    given.backends = given.backends or ("nccl" if given.device == "cuda" else "shm,gloo,threads")
    given.sizes = given.sizes or {"accuracy": "1048576,4194304,16777216"}.get(given.suite, "4096,65536,1048576,16777216,67108864")
    several_ranks = given.suite in ("ddp", "allreduce")
    env = turns.environment(1 if several_ranks else given.threads)
    with tempfile.TemporaryDirectory() as folder:
        peer, command = find_peer(given, folder)
        theirs = turns.Program(command, env)
        if given.suite == "accuracy":
            rows = accuracy(given, peer, theirs, env)
            theirs.end()
            if given.json:
                pathlib.Path(given.json).write_text(json.dumps({"peer": peer, "processor": turns.processor(), "rows": rows}, indent=1))
            return 0
        rows = (on_ranks if several_ranks else one_process)(given, peer, theirs, env)
        theirs.end()
    mean = turns.geometric_mean(rows)
    worst = max(rows, key=lambda row: row["ratio"])
    print(f"geometric mean of {len(rows)} ratios: {mean:.3f}; largest: {worst['ratio']:.3f} ({worst['case']})")
    if given.json:
        pathlib.Path(given.json).write_text(json.dumps({"peer": peer, "threads": given.threads, "processor": turns.processor(),
                                                        "rows": rows, "geometric_mean": mean}, indent=1))
    return 1 if given.at_most is not None and mean > given.at_most else 0


sys.exit(main())
