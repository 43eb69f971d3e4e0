#!/usr/bin/env python3
"""The blocks of bench/cuda_blocks.cpp in PyTorch: same arithmetic, dtypes, parameters and inputs, measured the same way.

    cuda_blocks_torch.py [--repeats N]                                   PyTorch alone
    cuda_blocks_torch.py --beside build/cuda/bin/bench_cuda_blocks       both in turns, --rounds times, and the ratios
    cuda_blocks_torch.py --smoke [--beside PROGRAM]                      tiny sizes on the CPU, no times: do the gradients agree?

PyTorch is given what makes it fast without another program: the fused optimizers beside the default ones, cuDNN's own choice of
algorithms by measurement (cudnn.benchmark), any backend of scaled_dot_product_attention, no garbage collection while it is measured. There
is no torch.compile. Settings in the environment that would slow down either are dropped. float32 is meant exactly, but for "tf32".

Needs PyTorch 2.3 or later. Exit status: 77 without it or, but for --smoke, without CUDA; 1 when the gradients of the two do not agree, or
when those of a replay are not those of the step.
"""
import argparse
import gc
import json
import os
import statistics
import subprocess
import sys
import time

# Of the driver, the libraries and both programs.
SLOWING = ("CUDA_LAUNCH_BLOCKING", "NVIDIA_TF32_OVERRIDE", "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE", "PYTORCH_NO_CUDA_MEMORY_CACHING",
           "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "CUBLAS_WORKSPACE_CONFIG", "TORCH_CUDNN_V8_API_DISABLED", "BRIGADE_CUDA_ALLOC")
for variable in SLOWING:
    if os.environ.pop(variable, None) is not None:
        print(f"{variable} is set in the environment; dropped", file=sys.stderr)

try:
    import torch
    from torch import nn
    from torch.nn import functional as F
except ImportError:
    print("cuda_blocks_torch.py: python3 has no PyTorch", file=sys.stderr)
    sys.exit(77)

WARM_UP = 10        # repeats before those that count,
WARM_UP_MS = 100    # and more of them until so much time has gone by
GPT, RESNET = "gpt", "resnet"
# Block, sizes of the input, heads, whether launches dominate.
PROBLEMS = [(GPT, (8, 512, 768), 12, False), (GPT, (1, 64, 256), 4, True), (RESNET, (32, 64, 56, 56), 0, False),
            (RESNET, (1, 32, 14, 14), 0, True)]
SMOKE_PROBLEMS = [(GPT, (2, 5, 8), 2, True), (RESNET, (2, 4, 5, 5), 0, True)]
# Name, dtype, whether TF32 is allowed, and how far norms of gradients may lie apart.
PRECISIONS = [("float32", torch.float32, False, 1e-4), ("tf32", torch.float32, True, 1e-2), ("bfloat16", torch.bfloat16, False, 5e-2)]
EAGER_TARGET, GRAPH_TARGET = 1.0, 0.7


class GptBlock(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (part.view(batch, length, self.heads, -1).transpose(1, 2) for part in self.qkv(self.norm1(x)).split(width, 2))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        y = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return y + self.down(F.gelu(self.up(self.norm2(y)), approximate="tanh"))


class BasicBlock(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(channels)

    def forward(self, x):
        return F.relu(self.norm2(self.conv2(F.relu(self.norm1(self.conv1(x))))) + x)


def numbers(sizes, stream, bound, center=0.0):
    """As numbers() of bench/cuda_blocks.cpp."""
    h = (torch.arange(torch.Size(sizes).numel()) * 2654435761 + stream * 0x85EBCA6B) & 0xFFFFFFFF
    h = ((h ^ (h >> 16)) * 0x45D9F3B) & 0xFFFFFFFF
    h ^= h >> 16
    return (center + bound * (h.double() / 2147483648.0 - 1)).float().view(sizes)


class Step:
    def __init__(self, problem, dtype, device):
        block, sizes, heads, _ = problem
        self.block = GptBlock(sizes[2], heads) if block == GPT else BasicBlock(sizes[1])
        with torch.no_grad():
            for stream, (path, parameter) in enumerate(self.block.named_parameters()):
                matrix = parameter.dim() > 1
                bound = (parameter.numel() / parameter.shape[0])**-0.5 if matrix else 0.1
                parameter.copy_(numbers(parameter.shape, stream, bound, 1.0 if not matrix and path.endswith("weight") else 0.0))
        self.block.to(device, dtype)
        self.x = numbers(sizes, 1000, 2).to(device, dtype).requires_grad_()
        self.gradient = numbers(sizes, 1001, 2).to(device, dtype)

    def __call__(self):
        self.block.zero_grad()
        self.x.grad = None
        self.block(self.x).backward(self.gradient)

    def norms(self):
        return [tensor.grad.double().norm().item() for tensor in (self.x, *self.block.parameters())]


def device_times(call, repeats, calls):
    """Median and least, of one call, in microseconds."""

    def repeat():
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        for _ in range(calls):
            call()
        end.record()
        return begin, end

    gc.collect()
    gc.disable()
    start, done = time.perf_counter(), 0
    while done < WARM_UP or time.perf_counter() - start < WARM_UP_MS / 1e3:
        repeat()
        done += 1
    pairs = [repeat() for _ in range(repeats)]
    torch.cuda.synchronize()
    gc.enable()
    us = [1e3 * begin.elapsed_time(end) / calls for begin, end in pairs]
    return {"us": statistics.median(us), "least_us": min(us)}


def captured(step):
    """As PyTorch's documentation has it: warm up on a side stream, then capture."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    step.block.zero_grad()
    step.x.grad = None
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph


def allow_tf32(allow):
    torch.backends.cuda.matmul.allow_tf32 = allow
    torch.backends.cudnn.allow_tf32 = allow


def measure(problem, precision, repeats):
    block, sizes, _, small = problem
    name, dtype, tf32, _ = precision
    calls = 10 if small else 1
    allow_tf32(tf32)
    step = Step(problem, dtype, "cuda")
    step()
    row = {"block": block, "shape": "x".join(map(str, sizes)), "dtype": name, "small": small, "norms": step.norms()}
    row["eager"] = device_times(step, repeats, calls)
    graph = captured(step)
    row["graph"] = device_times(graph.replay, repeats, calls)
    if not tf32:
        parameters = list(step.block.parameters())
        for suffix, options in ("", {}), ("_fused", {"fused": True}):
            row["sgd" + suffix] = device_times(torch.optim.SGD(parameters, lr=1e-4, momentum=0.9, **options).step, repeats, calls)
            row["adamw" + suffix] = device_times(torch.optim.AdamW(parameters, lr=1e-4, **options).step, repeats, calls)
    return row


def attention_backends(problems):
    """Which of scaled_dot_product_attention's backends PyTorch may take, and which it takes."""
    names = ("flash", "mem_efficient", "cudnn", "math")
    allowed = [name for name in names if getattr(torch.backends.cuda, name + "_sdp_enabled", lambda: False)()]
    taken = []
    for (block, sizes, heads, _) in problems:
        for name, dtype, _, _ in PRECISIONS:
            if block != GPT or name == "tf32":
                continue
            batch, length, width = sizes
            q = torch.empty(batch, heads, length, width // heads, device="cuda", dtype=dtype, requires_grad=True)
            try:
                backend = torch.nn.attention.SDPBackend(torch._fused_sdp_choice(q, q, q, None, 0.0, True)).name.lower()
            except (AttributeError, ValueError, TypeError, RuntimeError):
                backend = "not told"
            taken.append(f"{name} {'x'.join(map(str, sizes))}: {backend}")
    return f"may be {', '.join(allowed)}; taken for " + ", ".join(taken)


def run_program(program, arguments):
    done = subprocess.run([program, "--json", *arguments], stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(done.returncode)
    return json.loads(done.stdout)


def key(row):
    return row["block"], row["shape"], row["dtype"]


def complaints(ours, theirs):
    """Where the gradients of the same block, parameters and input do not agree."""
    tolerances = {name: tolerance for name, _, _, tolerance in PRECISIONS}
    for row in ours:
        other = theirs[key(row)]
        if not row["same_gradients"]:
            yield f"{' '.join(key(row))}: the gradients of Brigade's replay are not those of its step, to the bit"
        worst = max(abs(a - b) / max(abs(b), 1e-12) for a, b in zip(row["norms"], other["norms"], strict=True))
        if not worst <= tolerances[row["dtype"]]:
            yield f"{' '.join(key(row))}: the norms of gradients differ by {100 * worst:.3g} %"


def check_on_cpu(program):
    rows = []
    for problem in SMOKE_PROBLEMS:
        for name, dtype, _, _ in PRECISIONS:
            step = Step(problem, dtype, "cpu")
            step()
            rows.append({"block": problem[0], "shape": "x".join(map(str, problem[1])), "dtype": name, "norms": step.norms()})
    ours = run_program(program, ["--smoke"]) if program else []
    found = list(complaints(ours, {key(row): row for row in rows}))
    print("\n".join(found) or f"{len(ours)} of {len(rows)} compared, all agree")
    sys.exit(1 if found else 0)


def paired(ours, theirs, our_what, their_what):
    """The ratio of times in each round: their median, least and largest."""
    ratios = [a[our_what]["us"] / b[their_what]["us"] for a, b in zip(ours, theirs)]
    return statistics.median(ratios), min(ratios), max(ratios)


def print_ratios(ours, theirs):
    """Both: for each row, those of all rounds."""

    def times(rounds, *whats):
        return " | ".join(f"{statistics.median(row[what]['us'] for row in rounds):.1f} [{min(row[what]['least_us'] for row in rounds):.1f}]"
                          for what in whats)

    def ratio(mine, other, our_what, their_what):
        return "{:.2f} [{:.2f}-{:.2f}]".format(*paired(mine, other, our_what, their_what))

    print("Forward and backward, µs: median [least]; ratios: median [range] of the rounds\n")
    print("| block | input | dtype | Brigade eager | Brigade graph | nodes | PyTorch eager | PyTorch graph | eager / eager | graph / eager | "
          "graph / graph |\n|---|---|---|---|---|---|---|---|---|---|---|")
    for name, mine in ours.items():
        other = theirs[name]
        print(f"| {' | '.join(name)} | {times(mine, 'eager', 'graph')} | {mine[0]['nodes']} | {times(other, 'eager', 'graph')} | "
              f"{ratio(mine, other, 'eager', 'eager')} | {ratio(mine, other, 'graph', 'eager')} | {ratio(mine, other, 'graph', 'graph')} |")
    eager = [paired(mine, theirs[name], "eager", "eager")[0] for name, mine in ours.items()]
    graph = [paired(mine, theirs[name], "graph", "eager")[0] for name, mine in ours.items() if mine[0]["small"]]
    print(f"\nTargets: eager / eager <= {EAGER_TARGET}: {sum(r <= EAGER_TARGET for r in eager)} of {len(eager)}; graph / PyTorch eager <= "
          f"{GRAPH_TARGET} for the small ones: {sum(r <= GRAPH_TARGET for r in graph)} of {len(graph)}")
    print("\nOne step of an optimizer over the block's parameters, µs: median [least]\n")
    print("| block | input | dtype | step | Brigade | PyTorch (default) | PyTorch (fused) | Brigade / default | Brigade / fused |\n"
          "|---|---|---|---|---|---|---|---|---|")
    for name, mine in ours.items():
        other = theirs[name]
        for step in ("sgd", "adamw"):
            if step in mine[0]:
                print(f"| {' | '.join(name)} | {step} | {times(mine, step)} | {times(other, step, step + '_fused')} | "
                      f"{ratio(mine, other, step, step)} | {ratio(mine, other, step, step + '_fused')} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=80, help="but for the first, no round is begun that would end later")
    parser.add_argument("--beside", metavar="PROGRAM", help="bench_cuda_blocks, to be run in turns with PyTorch")
    parser.add_argument("--smoke", action="store_true")
    given = parser.parse_args()
    if given.smoke:
        check_on_cpu(given.beside)
    if not torch.cuda.is_available():
        print("cuda_blocks_torch.py: PyTorch finds no CUDA device", file=sys.stderr)
        sys.exit(77)
    torch.backends.cudnn.benchmark = True

    ours, theirs = {}, {}
    begin = time.monotonic()
    for done in range(1, given.rounds + 1):
        for row in run_program(given.beside, [str(given.repeats)]) if given.beside else []:
            ours.setdefault(key(row), []).append(row)
        for problem in PROBLEMS:
            for precision in PRECISIONS:
                row = measure(problem, precision, given.repeats)
                theirs.setdefault(key(row), []).append(row)
        if (time.monotonic() - begin) * (done + 1) / done > given.seconds:
            break

    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__} (cudnn.benchmark on, deterministic algorithms not asked for; Brigade's "
          f"are deterministic), {done} rounds of {given.repeats} repeats\n")
    print(f"PyTorch's scaled_dot_product_attention: {attention_backends(PROBLEMS)}\n")
    if not given.beside:
        print("| block | input | dtype | what | µs [least] |\n|---|---|---|---|---|")
        for name, rows in theirs.items():
            for what in (what for what, value in rows[0].items() if isinstance(value, dict)):
                us = statistics.median(row[what]["us"] for row in rows)
                print(f"| {' | '.join(name)} | {what} | {us:.1f} [{min(row[what]['least_us'] for row in rows):.1f}] |")
        return
    print_ratios(ours, theirs)
    found = list(complaints([rows[0] for rows in ours.values()], {name: rows[0] for name, rows in theirs.items()}))
    print("\n" + ("\n".join(found) or "The gradients of both agree, and those of each replay are those of its step to the bit."))
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
