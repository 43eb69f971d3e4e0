"""PyTorch with one operation, or its results, as Brigade has them."""
import torch

import torch_side


def with_inputs(run, line, changed):
    """What a line gives where its inputs are what changed() makes of them."""
    kept = run.session.variables
    run.session.variables = {name: changed(x) if name in line["in"] and isinstance(x, torch.Tensor) else x for name, x in kept.items()}
    try:
        return torch_side.call(run.session, line)
    finally:
        run.session.variables = kept


class Dense(torch_side.Run):
    """PyTorch with results that are laid out as they are here."""

    def keep(self, line, results):
        results = list(results) if isinstance(results, (list, tuple)) else [results]
        known = {x.untyped_storage().data_ptr() for x in self.session.variables.values() if x is not None}
        is_view = lambda x: x.untyped_storage().data_ptr() in known
        dense = [x.contiguous() if isinstance(x, torch.Tensor) and not is_view(x) else x for x in results]
        super().keep(line, dense)


class DenseWeights(torch_side.Run):
    """PyTorch whose batch_norm gets dense copies of what requires grad."""

    def call(self, line):
        if line["op"] != "batch_norm":
            return super().call(line)
        return with_inputs(self, line, lambda x: x.contiguous() if x.requires_grad else x)


class FloatProducts(torch_side.Run):
    """PyTorch that computes products of half types in float32, and rounds once."""

    def call(self, line):
        x = self.session.variables.get(line["in"][0]) if line.get("in") else None
        if line["op"] not in ("prod", "cumprod") or x is None or x.dtype not in (torch.float16, torch.bfloat16) or "dtype" in line.get("args", {}):
            return super().call(line)
        return with_inputs(self, line, torch.Tensor.float).to(x.dtype)


class OldViews(torch_side.Run):
    """PyTorch whose views do not notice writes that are not recorded, and so keep their history."""

    def call(self, line):
        if torch.is_grad_enabled() or not line["op"].endswith("_") or line["op"] == "requires_grad_":
            return super().call(line)
        x = self.session.variables[line["in"][0]]
        with_inputs(self, line, lambda t: t.data)
        return x


class Recorded(torch_side.Run):
    """PyTorch without checkpoints."""

    def call(self, line):
        if line["op"] != "autocast_checkpoint":
            return super().call(line)
        x, w = (self.session.variables[name] for name in line["in"])
        return torch.mm(torch.relu(torch.mm(x, w)), w)


class Unshuffled(torch_side.Run):
    """PyTorch whose pixel_unshuffle moves pixels to channels where there are no elements as well."""

    def call(self, line):
        x, y = self.session.variables.get(line["in"][0]) if line.get("in") else None, super().call(line)
        if line["op"] != "pixel_unshuffle" or x.numel():
            return y
        r, (*batch, channels, height, width) = line["args"]["downscale_factor"], x.shape
        return y.reshape(*batch, channels * r * r, height // r, width // r)


class Numbers(torch_side.Run):
    """PyTorch whose atan2 and soft_margin_loss get 0 and 1 for bools, in the dtype of the result."""

    def call(self, line):
        if line["op"] not in ("atan2", "soft_margin_loss"):
            return super().call(line)
        dtype = torch.result_type(*(self.session.variables[name] for name in line["in"]))
        dtype = dtype if dtype.is_floating_point else torch.float32
        return with_inputs(self, line, lambda x: x.to(dtype) if x.dtype == torch.bool else x)


class OwnStatistics(torch_side.Run):
    """PyTorch whose batch_norm gets statistics in the dtype of its input, and gives them back in their own."""

    def call(self, line):
        if line["op"] != "batch_norm":
            return super().call(line)
        x, *statistics = [self.session.variables[name] for name in line["in"][:1] + line["in"][3:] if name is not None]
        y, *moved = with_inputs(self, line, lambda t: t.to(x.dtype) if any(t is given for given in statistics) else t)
        return [y] + [result.to(given.dtype) for result, given in zip(moved, statistics)]
