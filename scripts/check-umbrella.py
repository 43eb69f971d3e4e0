#!/usr/bin/env python3
"""Checks that brigade.h brings every public header: all of core, autograd, nn, optim, amp, data and dist but those listed here."""
import pathlib
import re
import sys

FOLDERS = ["core", "autograd", "nn", "optim", "amp", "data", "dist"]
# Inside the libraries: no program includes them. A folder stands for all in it.
INTERNAL = [
    "autograd/engine.h", "autograd/engine_observer.h", "autograd/gathered_graph.h", "autograd/record.h", "autograd/write_log.h", "core/atomic_file.h", "core/fnv.h", "core/index_error.h", "core/view.h",
    "dist/checks/hand_updates.h", "dist/checks/step_habits.h", "dist/checks/wrapper_history.h", "dist/diagnosis/", "dist/errors/", "dist/groups/arithmetic.h", "dist/groups/chain.h", "dist/groups/channels.h",
    "dist/groups/coalescing.h", "dist/groups/collective_errors.h", "dist/groups/gloo/", "dist/groups/group_memory.h", "dist/groups/hosts/",
    "dist/groups/nccl/", "dist/groups/own_collectives.h", "dist/groups/process_end.h", "dist/groups/shm/", "dist/groups/staging.h", "dist/groups/subgroup.h", "dist/groups/unfinished.h",
    "dist/groups/work_queue.h", "dist/observers/", "dist/comm_hooks/iteration.h", "dist/reducer/launch_order.h",
    "dist/rendezvous/launch/attempt.h", "dist/rendezvous/launch/child.h", "dist/rendezvous/launch/error_once.h", "dist/rendezvous/launch/guardian.h",
    "dist/rendezvous/launch/node_exits.h", "dist/rendezvous/launch/outcome.h", "dist/rendezvous/launch/output.h", "dist/rendezvous/rendezvous.h",
    "dist/rendezvous/store/", "dist/timeline/trace_events.h",
]
# Streams and graphs: for programs that are built with CUDA, by themselves.
BY_THEMSELVES = ["core/cuda/"]
INCLUDE = re.compile(r"^#include <brigade/([^>]+)>", re.M)


def main() -> int:
    root = pathlib.Path(__file__).resolve().parent.parent
    reached = set()

    def walk(name):
        path = root / name
        if name in reached or not path.exists():
            return
        reached.add(name)
        for below in INCLUDE.findall(path.read_text()):
            walk(below)

    walk("brigade.h")
    public = sorted(str(path.relative_to(root)) for folder in FOLDERS for path in (root / folder).rglob("*.h"))
    left_out = INTERNAL + BY_THEMSELVES
    missing = [name for name in public
               if name not in reached and "/detail/" not in name and not any(name.startswith(each) for each in left_out)]
    unknown = [each for each in left_out if not (root / each).exists()]
    for name in missing:
        print(f"{name}: brigade.h does not bring it; include it there, or list it as internal in scripts/check-umbrella.py")
    for each in unknown:
        print(f"scripts/check-umbrella.py lists {each}, which does not exist")
    print(f"{len(reached)} headers through brigade.h, {len(missing)} missing")
    return 1 if missing or unknown or len(reached) < 50 else 0


if __name__ == "__main__":
    sys.exit(main())
