#!/usr/bin/env bash
# `brigade train` under the launchers that people have: the processes that a launcher starts are the ranks of one job, and that job is the
# one that `brigade train --ranks 2` runs.
#
#   tests/dist/launchers.sh BRIGADE_PROGRAM [openmpi|mpich|torchrun|slurm]...
#
# Without names: all of them. What is not installed is skipped, with the reason; exit status 77: nothing was left. On Debian and Ubuntu
#
#   apt-get install openmpi-bin mpich slurmctld slurmd slurm-client munge
#
# brings all but torchrun, which comes with PyTorch (pip install torch; TORCHRUN=/path/to/torchrun where it is not on the PATH). Slurm runs
# here as a cluster of one node, with its own munge key, in a scratch folder, on the loopback interface; it needs root.
set -u
program=$(realpath "$1")
shift
[ $# -gt 0 ] || set -- openmpi mpich torchrun slurm
examples=$(cd "$(dirname "$0")/../../examples/cluster" && pwd)

# Nothing of a launcher around this script.
for name in $(compgen -e); do
  case $name in RANK | WORLD_SIZE | LOCAL_* | MASTER_* | SLURM_* | PMI_* | PMIX_* | OMPI_* | MPI_LOCAL* | TORCHELASTIC_*) unset "$name" ;; esac
done
export OMP_NUM_THREADS=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

scratch=$(mktemp -d)
daemons=()
clean_up() {
  # Slurm's own processes for a step end when they have told the controller.
  if [ -n "${SLURM_CONF:-}" ]; then
    scancel --user "$(id -un)" 2> /dev/null
    for _ in $(seq 50); do [ -z "$(squeue --noheader 2> /dev/null)" ] && break; sleep 0.1; done
  fi
  for pid in "${daemons[@]}"; do kill "$pid" 2> /dev/null; done
  for pid in "${daemons[@]}"; do
    for _ in $(seq 50); do kill -0 "$pid" 2> /dev/null || break; sleep 0.1; done
    kill -9 "$pid" 2> /dev/null
  done
  rm -rf "$scratch"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

failures=0
ran=0
skip() { echo "skipped: $*"; }
good() { echo "good:    $*"; }
bad() {
  echo "FAILED:  $*"
  sed 's/^/         | /' "$scratch/output" | tail -40
  failures=$((failures + 1))
}
free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

train=("$program" train digits --quiet --epochs 2)
"${train[@]}" --ranks 2 --json "$scratch/reference.json" > "$scratch/output" 2>&1 || { bad "brigade train --ranks 2"; exit 1; }

# The job whose rank 0 wrote FILE: of 2 ranks, with the losses, the accuracy and equal parameters as in the reference.
same_job() {
  python3 - "$scratch/reference.json" "$1" << 'PYTHON'
import json, sys
reference, found = (json.load(open(name))["results"][0] for name in sys.argv[1:])
worst = max(abs(a - b) / abs(a) for a, b in zip(reference["loss"], found["loss"]))
good = (found["ranks"] == 2 and found["parameters_equal"] and len(found["loss"]) == len(reference["loss"]) and worst < 1e-6
        and found["metrics"] == reference["metrics"])
print(f"ranks {found['ranks']}, largest difference of a loss {worst:.1e}, {found['metrics']}, expected {reference['metrics']}")
sys.exit(0 if good else 1)
PYTHON
}

# one_job "what" COMMAND...: COMMAND starts `brigade train --json $json` twice. One job of two ranks, told by one of them.
one_job() {
  local what=$1
  shift
  if ! timeout -k 5 120 "$@" > "$scratch/output" 2>&1; then
    bad "$what: exit status"
  elif [ "$(grep -c '^digits on ' "$scratch/output")" != 1 ]; then
    bad "$what: expected one job to report, not $(grep -c '^digits on ' "$scratch/output")"
  elif ! same_job "$json" >> "$scratch/output" 2>&1; then
    bad "$what: another result than that of brigade train --ranks 2"
  else
    good "$what: $(tail -1 "$scratch/output")"
  fi
  rm -f "$json"
}

# one_table "what" COMMAND...: COMMAND starts `brigade bench` twice. One table of both ranks, told by one of them.
bench=("$program" bench allreduce --sizes 4K --rounds 2 --json "$scratch/bench.json")
one_table() {
  local what=$1
  shift
  rm -f "$scratch/bench.json"
  if ! timeout -k 5 120 "$@" > "$scratch/output" 2>&1; then
    bad "$what: exit status"
  elif [ "$(grep -c '^# Out of bounds values' "$scratch/output")" != 1 ]; then
    bad "$what: expected the results of one rank, not those of $(grep -c '^# Out of bounds values' "$scratch/output")"
  elif ! python3 -c 'import json, sys; rows = json.load(open(sys.argv[1]))["results"]; sys.exit(not rows or any(row["ranks"] != 2 or row["wrong"] for row in rows))' \
    "$scratch/bench.json" 2>> "$scratch/output"; then
    bad "$what: expected results of 2 ranks, without a wrong element"
  else
    good "$what: one table of 2 ranks"
  fi
}

# refused "what" "text" COMMAND...: ends with a status other than 0, and says so.
refused() {
  local what=$1 text=$2 status
  shift 2
  timeout -k 5 60 "$@" > "$scratch/output" 2>&1
  status=$?
  if [ $status = 0 ] || [ $status = 124 ]; then
    bad "$what: status $status, expected a refusal"
  elif ! grep -qF -- "$text" "$scratch/output"; then
    bad "$what: expected to read '$text'"
  else
    good "$what: refused (status $status)"
  fi
}

json=$scratch/result.json
train+=(--json "$json")

# The program mpirun of one of the two, whose versions begin with other words.
mpirun_of() {
  local name
  for name in "mpirun.$1" mpirun; do
    type -P "$name" > /dev/null && "$name" --version 2>&1 | grep -qE "$2" && { type -P "$name"; return; }
  done
  return 1
}

openmpi() {
  local mpirun
  mpirun=$(mpirun_of openmpi 'Open MPI|OpenRTE') || { skip "Open MPI is not installed"; return; }
  ran=1
  local launch=("$mpirun" --oversubscribe -n 2)
  one_job "Open MPI" "${launch[@]}" "${train[@]}"
  one_job "Open MPI with MASTER_PORT" "${launch[@]}" -x MASTER_PORT="$(free_port)" "${train[@]}"
  one_job "Open MPI, Gloo" "${launch[@]}" "${train[@]}" --backend gloo
  one_job "Open MPI, --ranks 2" "${launch[@]}" "${train[@]}" --ranks 2
  one_table "Open MPI, a benchmark" "${launch[@]}" "${bench[@]}"
  refused "Open MPI, --ranks 3" "--ranks 3, but the launcher has started 2 ranks" "${launch[@]}" "${train[@]}" --ranks 3
  refused "Open MPI, a command that starts its own ranks" "start it once, without the launcher" "${launch[@]}" "$program" diagnose UNU-01
}

mpich() {
  local mpirun
  mpirun=$(mpirun_of mpich 'HYDRA') || { skip "MPICH is not installed"; return; }
  ran=1
  local launch=("$mpirun" -n 2)
  one_job "MPICH" "${launch[@]}" "${train[@]}"
  one_job "MPICH, through a shell" "${launch[@]}" sh -c 'sh -c "$0 $*; true"' "${train[@]}"
  one_job "MPICH with MASTER_PORT" "${launch[@]}" -genv MASTER_PORT "$(free_port)" "${train[@]}"
  one_table "MPICH, a benchmark" "${launch[@]}" "${bench[@]}"
  refused "MPICH, --ranks 3" "--ranks 3, but the launcher has started 2 ranks" "${launch[@]}" "${train[@]}" --ranks 3
}

torchrun() {
  local torchrun
  torchrun=$(type -P "${TORCHRUN:-torchrun}") || { skip "torchrun is not installed"; return; }
  ran=1
  one_job "torchrun --standalone" "$torchrun" --standalone --nproc-per-node 2 --no-python "${train[@]}"
  one_job "torchrun with a port" "$torchrun" --nproc-per-node 2 --master-addr 127.0.0.1 --master-port "$(free_port)" --no-python "${train[@]}"
  one_table "torchrun, a benchmark" "$torchrun" --standalone --nproc-per-node 2 --no-python "${bench[@]}"
  refused "torchrun, --ranks 3" "--ranks 3, but the launcher has started 2 ranks" \
    "$torchrun" --standalone --nproc-per-node 2 --no-python "${train[@]}" --ranks 3
}

# A cluster of this machine alone.
start_slurm() {
  local tool host
  for tool in munged slurmctld slurmd srun sbatch sinfo; do
    type -P $tool > /dev/null || { skip "Slurm: $tool is not installed"; return 1; }
  done
  [ "$(id -u)" = 0 ] || { skip "Slurm: starting its daemons needs root"; return 1; }
  host=$(hostname -s)
  mkdir -p "$scratch/slurm/state" "$scratch/slurm/spool"
  install -d -m 700 "$scratch/munge"
  chmod 755 "$scratch"
  dd if=/dev/urandom of="$scratch/munge/key" bs=1024 count=1 status=none
  chmod 400 "$scratch/munge/key"
  munged --force --foreground --key-file="$scratch/munge/key" --socket="$scratch/munge/socket" --pid-file="$scratch/munge/pid" \
    --log-file="$scratch/munge/log" --seed-file="$scratch/munge/seed" > "$scratch/munge/output" 2>&1 &
  daemons+=($!)
  cat > "$scratch/slurm.conf" << CONF
ClusterName=scratch
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$scratch/munge/socket
CredType=cred/munge
SlurmctldPort=$(free_port)
SlurmdPort=$(free_port)
StateSaveLocation=$scratch/slurm/state
SlurmdSpoolDir=$scratch/slurm/spool
SlurmctldPidFile=$scratch/slurm/slurmctld.pid
SlurmdPidFile=$scratch/slurm/slurmd.pid
SlurmctldLogFile=$scratch/slurm/slurmctld.log
SlurmdLogFile=$scratch/slurm/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
SlurmdParameters=config_overrides
NodeName=$host NodeAddr=127.0.0.1 CPUs=4 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
CONF
  export SLURM_CONF=$scratch/slurm.conf
  for _ in $(seq 100); do [ -S "$scratch/munge/socket" ] && break; sleep 0.1; done
  slurmctld -D > "$scratch/slurm/slurmctld.output" 2>&1 &
  daemons+=($!)
  slurmd -D -N "$host" > "$scratch/slurm/slurmd.output" 2>&1 &
  daemons+=($!)
  disown -a  # their ends are no news
  for _ in $(seq 300); do
    [ "$(sinfo --noheader --format %t 2> /dev/null)" = idle ] && return 0
    sleep 0.1
  done
  skip "Slurm's daemons do not come up here: $(tail -qn 2 "$scratch"/slurm/*.log "$scratch"/munge/output | tr '\n' ' ')"
  return 1
}

# in_batch COMMAND: sbatch with two tasks, waits, and shows what the script wrote.
in_batch() {
  printf '#!/bin/sh\n%s\n' "$1" > "$scratch/batch.sh"
  sbatch --wait --quiet --ntasks 2 --output "$scratch/batch.output" "$scratch/batch.sh"
  local status=$?
  cat "$scratch/batch.output"
  return $status
}

slurm() {
  start_slurm || return
  ran=1
  local command="${train[*]}" mpirun
  export -f in_batch
  export scratch
  one_job "srun" srun -n 2 "${train[@]}"
  one_job "srun with MASTER_PORT" env MASTER_PORT="$(free_port)" srun -n 2 "${train[@]}"
  srun --mpi=list 2>&1 | grep -q pmi2 && one_job "srun --mpi=pmi2" srun --mpi=pmi2 -n 2 "${train[@]}"
  one_table "srun, a benchmark" srun -n 2 "${bench[@]}"
  one_job "srun in a batch script" bash -c "in_batch 'srun $command'"
  one_job "a batch script without srun is no rank" bash -c "in_batch '$command --ranks 2'"
  one_job "brigade run in a batch script" bash -c "in_batch '$program run -n 2 --no-prefix $command'"
  one_job "a shell of salloc is no rank" salloc --quiet -n 2 "${train[@]}" --ranks 2
  one_job "examples/cluster/train.sbatch" \
    bash -c "sbatch --wait --quiet --nodes 1 --ntasks-per-node 2 --output $scratch/batch.output $examples/train.sbatch $command; status=\$?
             cat $scratch/batch.output; exit \$status"
  mpirun=$(mpirun_of openmpi 'Open MPI|OpenRTE') &&
    one_job "Open MPI's mpirun in a batch script" bash -c "in_batch '$mpirun --oversubscribe -n 2 $command'"
  mpirun=$(mpirun_of mpich 'HYDRA') && one_job "MPICH's mpirun in a batch script" bash -c "in_batch '$mpirun -n 2 $command'"
  refused "srun, brigade run without --nnodes" "each would start a job of its own" srun -n 2 "$program" run -n 2 "${train[@]}"
  refused "srun, --ranks 3" "--ranks 3, but the launcher has started 2 ranks" srun -n 2 "${train[@]}" --ranks 3
}

for launcher; do
  case $launcher in
    openmpi | mpich | torchrun | slurm) $launcher ;;
    *) echo "unknown launcher '$launcher'; known are openmpi, mpich, torchrun, slurm"; exit 2 ;;
  esac
done
[ $failures = 0 ] || exit 1
[ $ran = 1 ] || exit 77
