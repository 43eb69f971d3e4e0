"""A program as Python and as C++, for people."""
import json

DTYPES = {"bfloat16": "BFloat16", "uint8": "UInt8"}


def python_line(line):
    names = [n or "None" for n in line.get("in", [])]
    args = dict(line.get("args", {}))
    op, out = line["op"], ", ".join(line.get("out", []))
    if op == "tensor":
        text = f"torch.tensor({args['values']}, dtype=torch.{args['dtype']}).reshape({args['shape']}).clone()" + (".requires_grad_()" if args.get("requires_grad") else "")
    elif op == "backward":
        text = f"{names[0]}.backward({', '.join(f'{k}={v}' for k, v in args.items())})"
    elif op == "grad":
        text = f"torch.autograd.grad({names[0]}, [{', '.join(names[1:])}]{''.join(f', {k}={v}' for k, v in args.items())})"
    elif op == "register_hook":
        text = f"{names[0]}.register_hook(lambda grad: grad * {args['factor']})"
    elif op == "grad_of":
        text = f"{names[0]}.grad"
    elif op == "slice":
        text = f"{names[0]}[{':, ' * (args['dim'] if args['dim'] >= 0 else 0)}{'..., ' if args['dim'] < 0 else ''}{args['start']}:{args['end']}:{args.get('step', 1)}{', :' * (-1 - args['dim'])}]"
    elif op == "zero_grad":
        text = f"{names[0]}.grad = None"
    elif op.endswith("_") or op in ("detach", "retain_grad", "contiguous", "to", "view", "reshape", "expand"):
        text = f"{names[0]}.{op}({', '.join(names[1:] + [f'{k}={v!r}' for k, v in args.items()])})"
    else:
        text = f"{op}({', '.join(names + [f'{k}={v!r}' for k, v in args.items()])})"
    return f"{out} = {text}" if out else text


def cpp_line(line):
    names = [n or "{}" for n in line.get("in", [])]
    args = dict(line.get("args", {}))
    op, out = line["op"], line.get("out", [])
    listed = [f"/*{k}*/ {braced(v)}" for k, v in args.items()]
    if op == "tensor":
        text = f"tensor<double>({braced(args['values'])}, {braced(args['shape'])}).to(k{DTYPES.get(args['dtype'], args['dtype'].capitalize())})"
        text += ".detach().requires_grad_()" if args.get("requires_grad") else ""
    elif op == "grad":
        text = f"autograd::grad({{{names[0]}}}, {{{', '.join(names[1:])}}}, {{{', '.join(listed)}}})"
    elif op == "backward":
        text = f"{names[0]}.backward({{{', '.join(listed)}}})" if listed else f"{names[0]}.backward()"
    elif op == "register_hook":
        text = f"{names[0]}.register_hook([](const Tensor& grad) {{ return grad * {args['factor']}; }})"
    elif op == "grad_of":
        text = f"{names[0]}.grad()"
    elif op == "zero_grad":
        text = f"{names[0]}.set_grad({{}})"
    else:
        text = f"{op}({', '.join(names + listed)})"
    return (f"auto {out[0]} = " if len(out) == 1 else f"auto [{', '.join(out)}] = " if out else "") + text + ";"


def braced(value):
    if isinstance(value, list):
        return "{" + ", ".join(braced(v) for v in value) + "}"
    return json.dumps(value)


def both(program):
    return ("  in PyTorch:\n" + "".join(f"    {python_line(line)}\n" for line in program["lines"])
            + "  here:\n" + "".join(f"    {cpp_line(line)}\n" for line in program["lines"]))
