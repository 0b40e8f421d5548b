#!/usr/bin/env bash
# Proves that a commit sets up, builds and passes its fast tests on a Debian
# release, in a root that debootstrap makes:
#
#   tests/platforms/debian.sh bookworm|trixie [FOLDER]
#
# As root, with the package debootstrap. FOLDER (default build/platforms/RELEASE,
# about 6 GB) is kept, so that a second run installs nothing. Packages come from
# where this machine's apt gets them, wheels from this tree's .deps. JOBS=2.
# Exit code 77: this machine cannot do it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

release=${1:?bookworm or trixie}
root=$(realpath -m "${2:-build/platforms/$release}")
jobs=${JOBS:-$(nproc)}
# those without a process or a model: each ends in seconds
tests=(config_test plans_test text_test net_test)

cannot() { printf 'platforms: %s\n' "$*" >&2; exit 77; }
say() { printf '\n##### %s: %s\n' "$release" "$*"; }
inside() { chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
  LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"; }

((EUID == 0)) || cannot "only root can make a root"
command -v debootstrap >/dev/null || cannot "apt-get install debootstrap"
[[ -d .deps/wheels ]] || cannot "run ./setup.sh first"
mirror=$(apt-get indextargets --format '$(REPO_URI)' | head -n 1)

if [[ ! -e $root/troupe.ready ]]; then
  say "debootstrap from $mirror"
  rm -rf "$root"
  mkdir -p "$root"
  debootstrap --variant=minbase "$release" "$root" "$mirror" >"$root.log" 2>&1 \
    || { tail -n 5 "$root.log" >&2; cannot "debootstrap failed (see $root.log)"; }
  cp /etc/apt/apt.conf.d/* "$root/etc/apt/apt.conf.d/"
  touch "$root/troupe.ready"
fi
for place in proc dev/shm; do
  mountpoint -q "$root/$place" || mount --bind "/$place" "$root/$place"
done
trap 'umount "$root/proc" "$root/dev/shm"' EXIT

say "the tree of $(git rev-parse --short HEAD)"
rm -rf "$root/troupe/tests" # what is no more must not be found
mkdir -p "$root/troupe"
git archive HEAD | tar -x -C "$root/troupe"
cp /etc/resolv.conf /etc/hosts "$root/etc/"
[[ -d $root/troupe/.deps ]] || cp -al .deps "$root/troupe/.deps" 2>/dev/null \
  || cp -a .deps "$root/troupe/.deps"

say "set-up"
inside bash -c "cd /troupe && apt-get update -q >/dev/null && ./setup.sh"
say "build"
inside bash -c "cd /troupe && (test -f build/build.ninja || cmake --preset dev) \
  && cmake --build --preset dev --parallel $jobs --target troupe ${tests[*]}"
say "tests"
for test in "${tests[@]}"; do
  inside bash -c "cd /troupe && timeout 600 build/tests/$test --gtest_brief=1"
done
inside bash -c "cd /troupe && build/troupe --version && c++ --version | head -n 1"
say "passed"
