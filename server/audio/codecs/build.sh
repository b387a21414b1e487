#!/bin/sh
# Compiles codecs.wasm anew: the same bytes for the same Cargo.lock and compiler, wherever this folder lies.
set -eu
cd "$(dirname "$0")"
target="${CARGO_TARGET_DIR:-${TMPDIR:-/tmp}/parley-codecs}"
home="${CARGO_HOME:-$HOME/.cargo}"
# A file that makes a decoder ask for more than this much memory ends its decoding, not the server.
RUSTFLAGS="--remap-path-prefix=$home=cargo --remap-path-prefix=$PWD=. -Clink-arg=--max-memory=268435456 -Ctarget-feature=+simd128" \
  CARGO_TARGET_DIR="$target" cargo build --release --locked --target wasm32-unknown-unknown
cp "$target/wasm32-unknown-unknown/release/parley_codecs.wasm" codecs.wasm
chmod 644 codecs.wasm
