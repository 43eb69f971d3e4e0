#!/usr/bin/env python3
"""Writes data/torch_op_lists.json: the operations that PyTorch's autocast knows, with their rules, on the CPU and on CUDA.

    tests/amp/generate_op_lists.py        # PyTorch alone; no GPU

Which operations there are is asked of PyTorch's dispatcher. The rules of CUDA's lists stand in a header that the package
brings (ATen/autocast_mode.h). The CPU's stand in no file of it: they are found by calling the operation in a region, with
inputs in float32 and in bfloat16; "listed" is said of operations that Brigade does not have, which are not called.
"""
import json
import pathlib
import re

import torch
import torch.nn.functional as F

HERE = pathlib.Path(__file__).resolve().parent
LISTS = {"LOWER_PRECISION_FP": "lower precision", "FP32": "float32", "FP32_SET_OPT_DTYPE": "float32",
         "DIFFERENT_REDISPATCH_SIGNATURE": "float32", "PROMOTE": "widest"}


def matrix(*sizes):
    return torch.rand(sizes or (4, 4)) * 0.8 + 0.1


def labels(*sizes):
    return torch.zeros(sizes, dtype=torch.long)


# A call of each CPU operation that Brigade has, from a function that casts its inputs.
CALLS = {
    "addbmm": lambda c: torch.addbmm(c(matrix()), c(matrix(2, 4, 4)), c(matrix(2, 4, 4))),
    "addmm": lambda c: torch.addmm(c(matrix()), c(matrix()), c(matrix())),
    "baddbmm": lambda c: torch.baddbmm(c(matrix(2, 4, 4)), c(matrix(2, 4, 4)), c(matrix(2, 4, 4))),
    "binary_cross_entropy": lambda c: F.binary_cross_entropy(c(matrix()), c(matrix())),
    "binary_cross_entropy_with_logits": lambda c: F.binary_cross_entropy_with_logits(c(matrix()), c(matrix())),
    "bmm": lambda c: torch.bmm(c(matrix(2, 4, 4)), c(matrix(2, 4, 4))),
    "cat": lambda c: torch.cat([c(matrix()), c(matrix())]),
    "conv1d": lambda c: F.conv1d(c(matrix(1, 2, 5)), c(matrix(2, 2, 3))),
    "conv2d": lambda c: F.conv2d(c(matrix(1, 2, 5, 5)), c(matrix(2, 2, 3, 3))),
    "conv_transpose1d": lambda c: F.conv_transpose1d(c(matrix(1, 2, 5)), c(matrix(2, 2, 3))),
    "conv_transpose2d": lambda c: F.conv_transpose2d(c(matrix(1, 2, 5, 5)), c(matrix(2, 2, 3, 3))),
    "cosine_embedding_loss": lambda c: F.cosine_embedding_loss(c(matrix()), c(matrix()), torch.ones(4)),
    "cross_entropy_loss": lambda c: F.cross_entropy(c(matrix()), labels(4)),
    "hinge_embedding_loss": lambda c: F.hinge_embedding_loss(c(matrix()), c(torch.ones(4, 4))),
    "huber_loss": lambda c: F.huber_loss(c(matrix()), c(matrix())),
    "index_copy": lambda c: torch.index_copy(c(matrix()), 0, labels(1), c(matrix(1, 4))),
    "kl_div": lambda c: F.kl_div(c(matrix()), c(matrix()), reduction="sum"),
    "l1_loss": lambda c: F.l1_loss(c(matrix()), c(matrix())),
    "linear": lambda c: F.linear(c(matrix()), c(matrix())),
    "margin_ranking_loss": lambda c: F.margin_ranking_loss(c(matrix()), c(matrix()), c(matrix())),
    "matmul": lambda c: torch.matmul(c(matrix()), c(matrix())),
    "mm": lambda c: torch.mm(c(matrix()), c(matrix())),
    "mse_loss": lambda c: F.mse_loss(c(matrix()), c(matrix())),
    "nll_loss": lambda c: F.nll_loss(c(matrix()), labels(4)),
    "nll_loss2d": lambda c: F.nll_loss(c(matrix(1, 4, 2, 2)), labels(1, 2, 2)),
    "poisson_nll_loss": lambda c: F.poisson_nll_loss(c(matrix()), c(matrix())),
    "prelu": lambda c: F.prelu(c(matrix()), c(matrix(1))),
    "prod": lambda c: torch.prod(c(matrix())),
    "reflection_pad1d": lambda c: F.pad(c(matrix(1, 2, 4)), [1, 1], "reflect"),
    "reflection_pad2d": lambda c: F.pad(c(matrix(1, 2, 4, 4)), [1, 1, 1, 1], "reflect"),
    "replication_pad1d": lambda c: F.pad(c(matrix(1, 2, 4)), [1, 1], "replicate"),
    "replication_pad2d": lambda c: F.pad(c(matrix(1, 2, 4, 4)), [1, 1, 1, 1], "replicate"),
    "replication_pad3d": lambda c: F.pad(c(matrix(1, 2, 4, 4, 4)), [1, 1, 1, 1, 1, 1], "replicate"),
    "scaled_dot_product_attention": lambda c: F.scaled_dot_product_attention(*(c(matrix(1, 4, 4)) for _ in range(3))),
    "smooth_l1_loss": lambda c: F.smooth_l1_loss(c(matrix()), c(matrix())),
    "soft_margin_loss": lambda c: F.soft_margin_loss(c(matrix()), c(torch.ones(4, 4))),
    "stack": lambda c: torch.stack([c(matrix()), c(matrix())]),
    "trace": lambda c: torch.trace(c(matrix())),
    "triplet_margin_loss": lambda c: F.triplet_margin_loss(*(c(matrix()) for _ in range(3))),
}
WIDEST = (torch.float32, torch.bfloat16)


def rule_on_cpu(name):
    if name not in CALLS:
        return "listed"
    with torch.autocast("cpu", torch.bfloat16):
        results = tuple(CALLS[name](lambda x: x.to(dtype)).dtype for dtype in (torch.float32, torch.bfloat16))
    if results == WIDEST:
        return "widest"
    return {(torch.bfloat16,) * 2: "lower precision", (torch.float32,) * 2: "float32"}[results]


def registered(key):
    """Names without their overloads."""
    return sorted({name.removeprefix("aten::").split(".")[0] for name in torch._C._dispatch_get_all_op_names()
                   if name.startswith("aten::") and torch._C._dispatch_has_kernel_for_dispatch_key(name, key)})


def cuda_rules():
    header = (pathlib.Path(torch.__file__).parent / "include/ATen/autocast_mode.h").read_text().replace("\\\n", "\n")
    rules = {}
    for macro, rule in LISTS.items():
        body = re.search(rf"#define AT_FORALL_{macro}\(_\)(.*?)\n\s*\n", header, re.S)[1]
        for name in re.findall(r"_\((?:ADD_NS\()?(\w+)", body):
            rules[name] = rule
    return rules


REFUSED = "binary_cross_entropy"  # by a kernel that throws, whose text stands in the library


def main():
    cuda = cuda_rules()
    lists = {
        "torch": torch.__version__.split("+")[0],
        "cpu": {name: rule_on_cpu(name) for name in registered("AutocastCPU")},
        "cuda": {name: "refused" if name == REFUSED else cuda.get(name, "listed") for name in registered("AutocastCUDA")},
    }
    path = HERE / "data" / "torch_op_lists.json"
    path.write_text(json.dumps(lists, indent=1) + "\n")
    print(f"PyTorch {lists['torch']}: {len(lists['cpu'])} operations on the CPU, {len(lists['cuda'])} on CUDA")


if __name__ == "__main__":
    main()
