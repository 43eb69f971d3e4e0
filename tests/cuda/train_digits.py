"""Trains the digits on the emulated CUDA runtime and on the CPU, with 2 ranks each, and compares the loss curves: in float32 step by step, in mixed
precision the loss that float32 comes to on the CPU.

usage: train_digits.py PROGRAM 32-true|16-mixed|bf16-mixed
"""

import json
import subprocess
import sys

BOUND = 1e-5  # relative, per step: float32, sums in another order
EPOCHS = 3
LONG = 23  # epochs: 506 steps
MIXED_BOUND = 0.15  # relative, of the mean loss of the last epoch: half types beside float32


def train(program, device, backend, epochs=EPOCHS, precision="32-true"):
    command = [program, "train", "digits", "--ranks", "2", "--backend", backend, "--device", device, "--epochs",
               str(epochs), "--precision", precision, "--quiet", "--json", "-"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=800)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\nended with {done.returncode}:\n{done.stdout}{done.stderr}")
    result = json.loads(done.stdout[done.stdout.index("{"):])["results"][0]
    expected = "cpu" if device == "cpu" else "cuda:0"
    if result["device"] != expected or not result["parameters_equal"]:
        sys.exit(f"{device}: ran on {result['device']}, parameters equal: {result['parameters_equal']}")
    return result["loss"]


def last_epoch(losses):
    return sum(losses[-len(losses) // LONG:]) / len(losses[-len(losses) // LONG:])


def compare_curves(program):
    on_cpu = train(program, "cpu", "threads")
    for backend in ("threads", "shm"):
        on_cuda = train(program, "cuda", backend)
        if len(on_cuda) != len(on_cpu) or len(on_cpu) < 5:
            sys.exit(f"{backend}: {len(on_cuda)} steps, on the CPU {len(on_cpu)}")
        worst = max(abs(a - b) / abs(b) for a, b in zip(on_cuda, on_cpu))
        print(f"{backend}: {len(on_cpu)} steps, loss {on_cpu[0]:.4f} -> {on_cpu[-1]:.4f}, largest relative difference {worst:.1e} "
              f"(bound {BOUND:.0e})")
        if not worst <= BOUND:
            sys.exit(f"{backend}: the curves differ:\n{on_cuda}\n{on_cpu}")


def compare_losses(program, precision):
    in_float32 = last_epoch(train(program, "cpu", "threads", LONG))
    mixed = last_epoch(train(program, "cuda", "threads", LONG, precision))
    difference = abs(mixed / in_float32 - 1)
    print(f"{precision}: mean loss of the last of {LONG} epochs {mixed:.6f}, of float32 {in_float32:.6f}")
    if not difference <= MIXED_BOUND:
        sys.exit(f"{precision}: {difference:.3f} away from float32, which is more than {MIXED_BOUND}")


def main():
    program, precision = sys.argv[1:]
    if precision == "32-true":
        compare_curves(program)
    else:
        compare_losses(program, precision)


main()
