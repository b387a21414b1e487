#!/usr/bin/env bash
# Runs tests on a software adapter with subgroup matrices, which Debian's stable Mesa and the drivers of .parley/ lack: lavapipe of Debian sid.
#
#   sudo test/tools/matrix-root.sh FOLDER [PART OF A PATH ...]
#
# Makes a root of Debian sid with debootstrap in FOLDER/sid, where there is none yet (its Mesa needs a newer C library), and copies Node, its modules and
# the tree as it is into it: what is there already is written over, nothing is deleted. Default tests: linear-matrix numerics batch-invariance qwen3-5-mtp self-test.test.
# Needs root (chroot), debootstrap, and a first `npm test` that has installed the modules; a minute and 2 GB, then minutes for the tests.
set -euo pipefail
repository=$(cd "$(dirname "$0")/../.." && pwd)
root=$(mkdir -p "${1:?a folder for the root}" && cd "$1" && pwd)/sid
shift
tests=("$@")
if [ $# = 0 ]; then tests=(linear-matrix numerics batch-invariance qwen3-5-mtp self-test.test); fi
mirror=${MIRROR:-http://deb.debian.org/debian}

if [ ! -e "$root/made" ]; then
  debootstrap --variant=minbase --include=mesa-vulkan-drivers,libvulkan1,ca-certificates sid "$root" "$mirror" >"$root.log"
  touch "$root/made"
fi
install "$(readlink -f "$(command -v node)")" "$root/usr/bin/node"
mkdir -p "$root/parley"
# Rivals of the benchmarks and what is built are left out.
tar -C "$repository" -chf - --exclude='onnxruntime*' --exclude=deno --exclude=transformers --exclude='@img' node_modules | tar -C "$root/parley" -xf -
tar -C "$repository" -cf - --exclude=./node_modules --exclude=./.git --exclude=./.parley --exclude=./dist . | tar -C "$root/parley" -xf -
mount -t proc proc "$root/proc"
trap 'umount "$root/proc"' EXIT
chroot "$root" /usr/bin/env -i HOME=/root PATH=/usr/bin:/bin PARLEY_NO_INSTALL=1 VK_DRIVER_FILES=/usr/share/vulkan/icd.d/lvp_icd.json \
  bash -c 'cd /parley && exec node node_modules/vitest/vitest.mjs run --config test/vitest.config.ts "$@"' bash "${tests[@]}"
