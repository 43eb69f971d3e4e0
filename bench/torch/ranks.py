"""`brigade bench follow ddp|allreduce` in PyTorch over Gloo, or over NCCL with --device cuda: reads a case a line, answers with the
slowest rank's times.

Started by bench/beside_torch.py, which sets the environment. One process a rank; without a GPU each on a core of its own with one thread.
"""
import argparse
import json
import os
import sys
import tempfile
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as processes
from torch.distributed.algorithms.ddp_comm_hooks import debugging_hooks, default_hooks
from torch.nn.parallel import DistributedDataParallel

from models import WORKLOADS, WithUnused

# Mode of `brigade bench ddp` -> arguments of DistributedDataParallel. strict: what PyTorch does by default; it has no diagnosis
# that could be off.
OPTIONS = {
    "strict": {}, "diagnosis_off": {}, "no_sync4": {}, "noop": {}, "fp16_compress": {}, "bf16_compress": {},
    "find_unused": {"find_unused_parameters": True},
    "unused10": {"find_unused_parameters": True},
    "static_graph": {"static_graph": True},
    "views": {"gradient_as_bucket_view": True},
    # Brigade's graph beside PyTorch's usual step.
    "graph": {},
}
HOOKS = {"noop": debugging_hooks.noop_hook, "fp16_compress": default_hooks.fp16_compress_hook,
         "bf16_compress": default_hooks.bf16_compress_hook}


class Replica:
    """A network that is trained in one mode: zero_grad, forward, loss, backward, SGD."""

    def __init__(self, model, mode, rank, fused, device):
        make, batch, self.loss = WORKLOADS[model]
        torch.manual_seed(1)
        self.device = device
        self.network = (WithUnused(make()) if mode == "unused10" else make()).to(device)
        self.micro_batches = 4 if mode == "no_sync4" else 1
        parameters = list(self.network.parameters())
        if mode != "local":
            if not mode.startswith("cap") and mode not in OPTIONS:
                sys.exit(f"--modes: {mode} has no counterpart in PyTorch; known are local, capMIB, {', '.join(OPTIONS)}")
            options = {"bucket_cap_mb": float(mode[3:])} if mode.startswith("cap") else OPTIONS[mode]
            self.network = DistributedDataParallel(self.network, **options)
            if mode in HOOKS:
                self.network.register_comm_hook(None, HOOKS[mode])
        torch.manual_seed(2 + rank)
        self.batches = [tuple(tensor.to(device) for tensor in batch()) for _ in range(4)]
        self.next = 0
        self.optimizer = torch.optim.SGD(parameters, lr=1e-4, **({"fused": True} if fused else {}))

    def backward_of_next(self):
        x, target = self.batches[self.next % 4]
        self.next += 1
        self.loss(self.network(x), target).backward()

    def steps(self, count):
        """Microseconds of each of so many steps, of which none waits for a GPU but the last."""
        self.wait()
        begin = time.perf_counter()
        for _ in range(count):
            self.optimizer.zero_grad()
            for _ in range(self.micro_batches - 1):
                with self.network.no_sync():
                    self.backward_of_next()
            self.backward_of_next()
            self.optimizer.step()
        self.wait()
        return (time.perf_counter() - begin) * 1e6 / self.micro_batches / count

    def wait(self):
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)


def ddp_case(words, rank, kept, fused, device):
    model, mode, steps = words
    if (model, mode) not in kept:
        kept[model, mode] = Replica(model, mode, rank, fused, device)
    dist.barrier()
    kept[model, mode].steps(1)
    if device.type == "cuda":
        return [kept[model, mode].steps(int(steps))]
    return [kept[model, mode].steps(1) for _ in range(int(steps))]


def allreduce_case(words, rank, kept, fused, device):
    dtype, size, _, calls = words
    dtype = getattr(torch, dtype)
    buffer = torch.empty(max(int(size) // dtype.itemsize, 1), dtype=dtype)
    us = []
    for _ in range(int(calls) + 1):
        buffer.fill_(1 + rank)
        dist.barrier()
        begin = time.perf_counter()
        dist.all_reduce(buffer)
        us.append((time.perf_counter() - begin) * 1e6)
    expected = dist.get_world_size() * (dist.get_world_size() + 1) / 2
    if buffer[0].item() != expected:
        raise SystemExit(f"all-reduce: expected {expected}, got {buffer[0].item()}")
    return us[1:]


def next_line(rank, words):
    line = ""
    if rank == 0:
        line = next((line.strip() for line in sys.stdin if line.strip()), "")
    lines = [line]
    dist.broadcast_object_list(lines, group=words)
    return lines[0]


def follow(rank, ranks, store, suite, fused, on_gpu):
    if on_gpu:
        device = torch.device("cuda", rank % torch.cuda.device_count())
        torch.cuda.set_device(device)
        torch.backends.cudnn.allow_tf32 = False  # float32 is meant exactly, as it is in Brigade
        torch.backends.cudnn.benchmark = True
        if ranks > torch.cuda.device_count():
            os.environ["NCCL_HOSTID"] = f"rank-{rank}"  # NCCL refuses two ranks of one host on one GPU
    else:
        device = torch.device("cpu")
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[rank % len(cores)]})
        torch.set_num_threads(1)
    # Words go over Gloo.
    dist.init_process_group("cpu:gloo,cuda:nccl" if on_gpu else "gloo", init_method="file://" + store, rank=rank, world_size=ranks)
    words = dist.new_group(backend="gloo") if on_gpu else None
    case = {"ddp": ddp_case, "allreduce": allreduce_case}[suite]
    kept = {}
    while line := next_line(rank, words):
        times = [None] * ranks
        dist.all_gather_object(times, case(line.split(), rank, kept, fused, device), group=words)
        if rank == 0:
            print(json.dumps({"case": line, "us": [max(each) for each in zip(*times)]}), flush=True)
    dist.barrier()
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("suite", choices=["ddp", "allreduce"])
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--not-fused", action="store_true")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    given = parser.parse_args()
    if given.device == "cuda" and not torch.cuda.is_available():
        raise SystemExit("this PyTorch has no CUDA, or there is no GPU")
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    with tempfile.TemporaryDirectory() as folder:
        arguments = (given.ranks, os.path.join(folder, "store"), given.suite, not given.not_fused, given.device == "cuda")
        others = [processes.get_context("spawn").Process(target=follow, args=(rank, *arguments), daemon=True)
                  for rank in range(1, given.ranks)]
        for process in others:
            process.start()
        follow(0, *arguments)
        for process in others:
            process.join(60)
            if process.exitcode != 0:
                raise SystemExit(f"a rank ended with {process.exitcode}")


if __name__ == "__main__":
    main()
