#!/usr/bin/env bash
# Two hosts for the price of one: network namespaces, each with its own address, joined by a cable (a veth pair). Between
# them there is nothing but TCP over that cable; their ranks share no memory, since network namespaces count as hosts.
#
#   tests/dist/namespaces.sh BRIGADE_PROGRAM
#
# Exit status 77: skipped, with the reason.
set -u
program=$1
skip() { echo "skipped: $*"; exit 77; }
[ "$(id -u)" = 0 ] || skip "making network namespaces needs root"
command -v ip > /dev/null || skip "the program ip (iproute2) is missing"

scratch=$(mktemp -d)
space=(brigade-$$-0 brigade-$$-1)
cable=(bg$$a bg$$b)
address=(10.77.0.1 10.77.0.2)
pids=()
clean_up() {
  for pid in "${pids[@]}"; do kill -9 "$pid" 2> /dev/null; done
  wait 2> /dev/null
  for name in "${space[@]}"; do ip netns del "$name" 2> /dev/null; done
  rm -rf "$scratch"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

why=$(ip netns add "${space[0]}" 2>&1 && ip netns add "${space[1]}" 2>&1 &&
  ip link add "${cable[0]}" netns "${space[0]}" type veth peer name "${cable[1]}" netns "${space[1]}" 2>&1) ||
  skip "no network namespaces here: $why"
for host in 0 1; do
  ip -n "${space[$host]}" addr add "${address[$host]}/24" dev "${cable[$host]}"
  ip -n "${space[$host]}" link set lo up
  ip -n "${space[$host]}" link set "${cable[$host]}" up
done

failures=0
check() {  # check "what is expected" command...
  local what=$1
  shift
  if "$@"; then echo "  good: $what"; else echo "  BAD:  $what"; failures=$((failures + 1)); fi
}
fails() { ! "$@"; }
port=29600
# start HOST RANKS_ON_IT ARGUMENTS...: a training on it, in the background; its process number comes last in pids.
start() {
  local host=$1 ranks=$2
  shift 2
  # Variables of a launcher around this test would be taken for ours.
  env -u RANK -u WORLD_SIZE -u MASTER_ADDR -u MASTER_PORT -u BRIGADE_HOST_ID OMP_NUM_THREADS=1 \
    ip netns exec "${space[$host]}" "$program" run --nnodes 2 --node-rank "$host" --master-addr "${address[0]}" \
    --master-port $port -n "$ranks" -- "$program" train digits --quiet "$@" > "$scratch/host$host" 2>&1 &
  pids+=($!)
}
# finish PID SECONDS: waits for it so long; its exit status, or 124.
finish() {
  local until=$((SECONDS + $2))
  while kill -0 "$1" 2> /dev/null; do
    [ $SECONDS -lt $until ] || return 124
    sleep 0.1
  done
  wait "$1"
}
show() { for host in 0 1; do sed "s/^/    host $host: /" "$scratch/host$host"; done; }
sent() { ip netns exec "${space[0]}" cat "/sys/class/net/${cable[0]}/statistics/tx_bytes"; }
# A little into the training: when the cable has carried so many bytes.
wait_until_sent() {
  for _ in $(seq 1200); do
    [ "$(sent)" -ge "$1" ] && return 0
    sleep 0.1
  done
  return 1
}
losses() { tr -d ' \n' < "$1" | sed 's/.*"loss":\[\([^]]*\)\].*/\1/' | tr ',' '\n'; }
same_curve() {
  paste <(losses "$1") <(losses "$2") | awk '
    NF != 2 { bad = 1 }
    { d = $1 - $2; if (d < 0) d = -d; m = $1 < 0 ? -$1 : $1; if (d > 1e-5 * m) bad = 1; n++ }
    END { exit bad || n < 20 }'
}
reference() { env -u RANK -u WORLD_SIZE -u MASTER_PORT "$program" train digits --quiet --epochs 2 --ranks 1 --batch "$1" --json "$scratch/one" > "$scratch/log"; }

for counts in "2 2" "2 1" "1 3"; do
  set -- $counts
  echo "$1 ranks on one host and $2 on the other train as one process does"
  batch=$((16 * ($1 + $2)))
  reference $batch
  before=$(sent)
  port=$((port + 1))
  rm -f "$scratch/two"
  start 0 "$1" --epochs 2 --batch $batch --json "$scratch/two"
  start 1 "$2" --epochs 2 --batch $batch
  finish "${pids[-2]}" 150; first=$?
  finish "${pids[-1]}" 60; second=$?
  check "both hosts end well ($first, $second)" [ $first$second = 00 ]
  check "the loss curve is that of one process" same_curve "$scratch/one" "$scratch/two"
  check "the backend is hosts" grep -q '"backend": *"hosts"' "$scratch/two"
  check "the gradients went over the cable" [ $(($(sent) - before)) -gt 1000000 ]
  [ $failures = 0 ] || { show; exit 1; }
done

echo "an interface on which nobody can be reached is an error, with what to do"
port=$((port + 1))
export BRIGADE_SOCKET_IFNAME=lo
begin=$SECONDS
start 0 1 --timeout 5
start 1 1 --timeout 5
unset BRIGADE_SOCKET_IFNAME
finish "${pids[-2]}" 120; first=$?
finish "${pids[-1]}" 120; second=$?
check "both fail ($first, $second) in $((SECONDS - begin)) s" [ $first = 1 -a $second = 1 ]
check "a message says how to choose" grep -q "from interface lo: .*BRIGADE_SOCKET_IFNAME names the interface" "$scratch/host0" "$scratch/host1"
[ $failures = 0 ] || { show; exit 1; }

for victim in 1 0; do
  echo "SIGKILL of host $victim: the other ends with an error in time"
  survivor=$((1 - victim))
  before=$(sent)
  port=$((port + 1))
  start 0 2 --epochs 20000 --timeout 60
  start 1 2 --epochs 20000 --timeout 60
  check "the training runs" wait_until_sent $((before + 1000000))
  begin=$SECONDS
  kill -9 "${pids[$((victim - 2))]}"
  wait "${pids[$((victim - 2))]}" 2> /dev/null
  finish "${pids[$((survivor - 2))]}" 90; status=$?
  check "it ends within the time-out ($((SECONDS - begin)) s)" [ $((SECONDS - begin)) -le 50 ]
  check "its exit status says so ($status)" [ $status != 0 -a $status != 124 ]
  check "it names a rank of the other host" grep -qiE "rank [$((2 * victim))$((2 * victim + 1))] (died|failed|left)" "$scratch/host$survivor"
  [ $failures = 0 ] || { show; exit 1; }
done

echo "the cable is cut: both hosts end with an error"
before=$(sent)
port=$((port + 1))
start 0 2 --epochs 20000 --timeout 4
start 1 2 --epochs 20000 --timeout 4
check "the training runs" wait_until_sent $((before + 1000000))
begin=$SECONDS
ip -n "${space[1]}" link set "${cable[1]}" down
finish "${pids[-2]}" 120; first=$?
finish "${pids[-1]}" 120; second=$?
check "both fail ($first, $second) in $((SECONDS - begin)) s" [ $first != 0 -a $first != 124 -a $second != 0 -a $second != 124 ]
check "the time-out is named on host 0" grep -q "timed out after 4000 ms" "$scratch/host0"
check "the time-out is named on host 1" grep -q "timed out after 4000 ms" "$scratch/host1"
[ $failures = 0 ] || { show; exit 1; }
