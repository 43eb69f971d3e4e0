#!/usr/bin/env python3
"""The operations of bench/cuda_kernels.cpp in PyTorch, measured the same way: events around one call, medians of repeats, the L2 cache
flushed by reading a large buffer.

    cuda_kernels_torch.py [--repeats N]                                    PyTorch alone
    cuda_kernels_torch.py --beside build/cuda/bin/bench_cuda_kernels       both, one after the other, and the ratios of the times

Needs PyTorch with CUDA; exit status 77 without.
"""
import argparse
import json
import statistics
import subprocess
import sys

MIB = 1 << 20
ROW = 1024  # elements, of softmax and layer norm
SLOTS = 64  # tensors of a bucket
WARMUP = 10


def median_time(torch, call, flush, repeats):
    """In microseconds."""
    pairs = []
    for i in range(-WARMUP, repeats):
        flush.sum()
        begin = torch.cuda.Event(enable_timing=True)
        end = torch.cuda.Event(enable_timing=True)
        begin.record()
        call()
        end.record()
        if i >= 0:
            pairs.append((begin, end))
    torch.cuda.synchronize()
    return statistics.median(1e3 * begin.elapsed_time(end) for begin, end in pairs)


def measure(torch, dtype, size, flush, repeats):
    count = size // torch.empty((), dtype=dtype).element_size()
    a, b, out = (torch.randn(count // ROW, ROW, device="cuda", dtype=dtype) for _ in range(3))
    exp_avg, exp_avg_sq = torch.zeros_like(a), torch.zeros_like(a)
    step = torch.tensor(10.0, device="cuda")

    def adamw():
        # The kernel of torch.optim.AdamW(fused=True), without the Python around it.
        torch._fused_adamw_([out], [b], [exp_avg], [exp_avg_sq], [], [step], lr=1e-3, beta1=0.9, beta2=0.999, weight_decay=1e-2, eps=1e-8,
                            amsgrad=False, maximize=False)

    weight, bias = torch.ones(ROW, device="cuda", dtype=dtype), torch.zeros(ROW, device="cuda", dtype=dtype)
    parts, slots = a.chunk(SLOTS), out.chunk(SLOTS)

    def flatten():
        # What DistributedDataParallel does with gradients of their own, for all of a bucket at once: copied in, divided by the ranks.
        torch._foreach_copy_(slots, parts)
        out.mul_(0.5)

    # Bytes that have to be read and written, in tensors.
    ops = [("copy", 2, lambda: out.copy_(a)), ("add", 3, lambda: a + b), ("softmax", 2, lambda: torch.softmax(a, 1)),
           ("layer_norm", 2, lambda: torch.nn.functional.layer_norm(a, (ROW,), weight, bias)), ("sum", 1, lambda: a.sum()), ("adamw", 7, adamw),
           ("bucket_flatten", 2, flatten), ("bucket_unflatten", 2, lambda: torch._foreach_copy_(parts, slots)),
           ("bucket_norms", 1, lambda: torch._foreach_norm(slots))]
    for op, tensors, call in ops:
        us = median_time(torch, call, flush, repeats)
        yield {"op": op, "dtype": str(dtype).removeprefix("torch."), "bytes": size, "us": us, "gb_per_s": tensors * size / us / 1e3}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=50)
    parser.add_argument("--beside", metavar="PROGRAM", help="bench_cuda_kernels, to be run first")
    given = parser.parse_args()
    try:
        import torch
    except ImportError:
        sys.exit(77)
    if not torch.cuda.is_available():
        sys.exit(77)

    ours = []
    if given.beside:
        done = subprocess.run([given.beside, "--json", str(given.repeats)], stdout=subprocess.PIPE, text=True)
        if done.returncode != 0:
            sys.exit(done.returncode)
        ours = json.loads(done.stdout)
    flush = torch.zeros(128 * MIB, device="cuda")
    theirs = {}
    for dtype in (torch.float32, torch.bfloat16):
        for size in (1, 4, 16, 64, 256):
            for row in measure(torch, dtype, size * MIB, flush, given.repeats):
                theirs[row["op"], row["dtype"], row["bytes"]] = row

    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, medians of {given.repeats}, L2 flushed\n")
    if not ours:
        print("| op | dtype | MiB per tensor | µs | GB/s |\n|---|---|---|---|---|")
        for row in theirs.values():
            print(f"| {row['op']} | {row['dtype']} | {row['bytes'] // MIB} | {row['us']:.1f} | {row['gb_per_s']:.0f} |")
        return
    print("| op | dtype | MiB per tensor | Brigade µs | GB/s | share of memcpy | PyTorch µs | Brigade / PyTorch |\n|---|---|---|---|---|---|---|---|")
    copied = 0.0
    for row in ours:
        if row["op"] == "memcpy":
            copied = row["gb_per_s"]
        other = theirs.get((row["op"], row["dtype"], row["bytes"]))
        beside = f"{other['us']:.1f} | {row['us'] / other['us']:.2f}" if other else "- | -"
        print(f"| {row['op']} | {row['dtype']} | {row['bytes'] // MIB} | {row['us']:.1f} | {row['gb_per_s']:.0f} | "
              f"{100 * row['gb_per_s'] / copied:.0f} % | {beside} |")


if __name__ == "__main__":
    main()
