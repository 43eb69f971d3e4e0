#!/usr/bin/env bash
# Runs `make demo` or `make test` on a bare Debian: a root with git, make and ca-certificates and nothing else, the committed tree cloned
# into it, the command of the README as a person would type it there. So a step that scripts/install-deps.sh leaves out cannot hide behind
# what happens to be installed here.
#
#   scripts/bare-machine.sh demo|test [--suite bookworm|trixie] [--mirror URI] [--keep]
#
#   --suite   the release of Debian; bookworm without it
#   --mirror  where packages come from; without it, the mirror that this machine's apt uses
#   --keep    leaves the root where it is, and says how to enter it
#
# Ends with the command's status, or with 1 where the build went on without a library that it can use; 2: wrong usage; 3: this machine
# cannot do it (needs root and mmdebstrap); 4: the root cannot be made. This machine's ccache folder is lent to the root; CMAKE_FLAGS,
# TEST_JOBS, JOBS, CCACHE_* and the proxies are as here. The root lies under ${TMPDIR:-/var/tmp}: 2 GB for demo, 8 GB for test.
#
# Whatever is mounted, is mounted in a namespace of its own, and every process of the root lives in one: both end with this script,
# however it ends, and removing the root cannot reach what was lent.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
explain() { sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; }
stop() { echo "bare-machine.sh: $2" >&2; exit "$1"; }

goal="" suite=bookworm mirror="" keep=""
while [ $# -gt 0 ]; do
  case "$1" in
    demo | test) goal=$1 ;;
    --suite | --mirror)
      [ $# -ge 2 ] || stop 2 "$1 needs a value"
      if [ "$1" = --suite ]; then suite=$2; else mirror=$2; fi
      shift ;;
    --keep) keep=yes ;;
    -h | --help) explain; exit 0 ;;
    *) stop 2 "expected demo or test, --suite, --mirror or --keep; got '$1' (--help explains)" ;;
  esac
  shift
done
[ -n "$goal" ] || { explain >&2; exit 2; }

# What this machine must offer.
[ "$(id -u)" -eq 0 ] || stop 3 "must be root, to make a root of another system: sudo $0 $goal"
contained() { exec unshare --mount --pid --fork --kill-child --mount-proc -- "$@"; }
(contained true) 2>/dev/null || stop 3 "may not mount here (unshare is refused); in a container, give it CAP_SYS_ADMIN"
if ! command -v mmdebstrap >/dev/null; then
  { command -v apt-get >/dev/null && apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq mmdebstrap debian-archive-keyring
  } >/dev/null || stop 3 "needs mmdebstrap and cannot install it: install the packages mmdebstrap and debian-archive-keyring"
fi
if [ -z "$mirror" ]; then
  . /etc/os-release
  [ "$ID" = debian ] || stop 3 "this is not Debian, so its apt knows no mirror of Debian: say --mirror URI"
  # Read to the end, since apt minds a pipe that closes.
  mirror=$(apt-get indextargets --format '$(RELEASE) $(COMPONENT) $(REPO_URI)' |
           awk -v codename="$VERSION_CODENAME" '$1 ~ "^(" codename "|stable|testing)$" && $2 == "main" && !found {print $3; found = 1}')
  [ -n "$mirror" ] || stop 3 "found no mirror of $VERSION_CODENAME among apt's sources: say --mirror URI"
fi

root=$(mktemp -d "${TMPDIR:-/var/tmp}/brigade-bare-$suite.XXXXXX")
chmod 755 "$root"
work=$(mktemp -d)
log=$work/log
child=""
finish() {
  [ -z "$child" ] || { kill -KILL "$child" 2>/dev/null && wait "$child" 2>/dev/null; } || true
  rm -rf "$work"
  if [ -n "$keep" ]; then
    echo "kept: $root (enter it with: chroot $root; remove it with: rm -rf $root)"
  else
    rm -rf --one-file-system "$root" || { sleep 1; rm -rf --one-file-system "$root"; }  # once the last process is gone
  fi
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
# In the background, so that a signal is answered at once. What `contained` starts takes the place of the subshell: it is what `finish` kills.
await() { "$@" & child=$!; local status=0; wait "$child" || status=$?; child=""; return "$status"; }
minutes() { awk -v s="$1" 'BEGIN {printf "%.1f", s / 60}'; }

echo "bare-machine.sh: $goal of $(git -C "$here" rev-parse --short=12 HEAD) on Debian $suite"
# How this machine's apt reaches the mirror holds for the root's apt too, now and later.
apt-config dump | grep -E '^Acquire::(http|https|ftp|Retries|ForceIPv[46])\b.*"[^"]+";$' >"$work/apt.conf" || true
make_root() {
  contained mmdebstrap --mode=root --variant=minbase --include=git,make,ca-certificates --aptopt="$work/apt.conf" "$suite" "$root" "$mirror" >"$log" 2>&1
}
await make_root || { cat "$log" >&2; stop 4 "cannot make a root of $suite from $mirror"; }
cp /etc/resolv.conf "$root/etc/resolv.conf"
grep -qs localhost "$root/etc/hosts" || printf '127.0.0.1 localhost %s\n::1 localhost\n' "$(hostname)" >"$root/etc/hosts"
checkout=/srv/brigade  # in the root
git clone -q --depth 1 "file://$here" "$root$checkout" 2>"$log" || { cat "$log" >&2; stop 4 "cannot clone $here"; }
made=$SECONDS
echo "bare-machine.sh: the root stands after $(minutes "$made") minutes"

# What a login there would have, and what was lent.
environment=(HOME=/root USER=root SHELL=/bin/bash TERM="${TERM:-dumb}" PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin)
for name in $(compgen -e); do
  case "$name" in
    CCACHE_DIR | CCACHE_BASEDIR) ;;
    CCACHE_* | CMAKE_FLAGS | JOBS | TEST_JOBS | http_proxy | https_proxy | no_proxy | HTTP_PROXY | HTTPS_PROXY | NO_PROXY)
      environment+=("$name=${!name}") ;;
  esac
done
lent=""
if command -v ccache >/dev/null; then
  lent=$(ccache -k cache_dir)
  mkdir -p "$lent" "$root/var/cache/ccache"
  # Paths count from the checkout, so that objects of this one are found again.
  environment+=(CCACHE_DIR=/var/cache/ccache "CCACHE_BASEDIR=$checkout" CCACHE_NOHASHDIR=1 "CCACHE_MAXSIZE=$(ccache -k max_size)")
fi
run_goal() {
  contained bash -euc '
    root=$1 lent=$2; shift 2
    mount -t proc proc "$root/proc"
    mount --rbind /sys "$root/sys"
    mount --rbind /dev "$root/dev"
    mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"  # what ranks share there does not mix with what they share here
    [ -z "$lent" ] || mount --bind "$lent" "$root/var/cache/ccache"
    exec chroot "$root" /usr/bin/env -i "$@"' enter "$root" "$lent" "${environment[@]}" make -C "$checkout" "$goal"
}
status=0
await run_goal || status=$?
# The build goes on without a library that it can do without, so its absence must be looked for: all of them are to be installed.
if grep -s -- '-- brigade: without' "$root$checkout/build/cpu/configure.log"; then
  echo "bare-machine.sh: scripts/install-deps.sh leaves something out, which the line above misses" >&2
  [ "$status" -ne 0 ] || status=1
fi
echo "bare-machine.sh: make $goal on Debian $suite ended with status $status after $(minutes $((SECONDS - made))) minutes (with the root: $(minutes "$SECONDS"))"
exit "$status"
