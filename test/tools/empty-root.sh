#!/usr/bin/env bash
# Proves that both commands of the README work on a machine that has nothing but Node, and change nothing of it.
#
#   sudo test/tools/empty-root.sh [WORK FOLDER] [CASE ...]
#
# Makes an empty Debian (SUITE, else bookworm) with debootstrap, with the Node of this machine and no graphics driver, and for each case a copy of it:
#   user    an ordinary user: npm start, an answer from each listener, npm test with a kernel test and a browser test
#   root    the same as root
#   no-apt  an ordinary user, without apt-get: npm start and the three answers, on SwiftShader
# After each, every file outside the user's home and /tmp must be as before, dpkg's list and apt's sources among them. Needs root (chroot),
# debootstrap, git and curl, and takes about ten minutes. The last line of a case is "CASE: passed".
set -euo pipefail
repository=$(cd "$(dirname "$0")/../.." && pwd)
work=${1:-$(mktemp -d)}
shift || true
cases=("${@:-user root no-apt}")
port=${PORT:-4370}
suite=${SUITE:-bookworm}
mirror=${MIRROR:-http://deb.debian.org/debian}
tests=(kernels/norm browser/split)

make_base() {
  [ -e "$work/base/done" ] && return
  mkdir -p "$work"
  debootstrap --variant=minbase "$suite" "$work/base" "$mirror" >"$work/debootstrap.log"
  local node npm
  node=$(readlink -f "$(command -v node)")
  npm=$(readlink -f "$(command -v npm)")
  install -D "$node" "$work/base/usr/local/bin/node"
  mkdir -p "$work/base/usr/local/lib/node_modules"
  cp -a "${npm%/bin/*}" "$work/base/usr/local/lib/node_modules/npm"
  ln -s ../lib/node_modules/npm/bin/npm-cli.js "$work/base/usr/local/bin/npm"
  cp /etc/resolv.conf /etc/hosts "$work/base/etc/"
  # A registry behind a certificate of its own is reached as this machine reaches it.
  if [ -n "${NODE_EXTRA_CA_CERTS:-}" ]; then install -D "$NODE_EXTRA_CA_CERTS" "$work/base/etc/ssl/certs/ca-certificates.crt"; fi
  chroot "$work/base" useradd --create-home --shell /bin/bash visitor
  touch "$work/base/done"
}

# Becomes a command line in the checkout, in the root of the case.
become() {
  exec chroot --userspec="$user" "$root" /usr/bin/env -i HOME="$home" PATH="/usr/local/bin:/usr/bin:/bin" LANG=C.UTF-8 \
    ${NODE_EXTRA_CA_CERTS:+NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt} bash -c "cd $home/parley && $1"
}

# Every file of the system with its kind, owner, rights, size and time; then the packages and apt's settings by content.
fingerprint() {
  (cd "$root" && find . -xdev \( -path ./proc -o -path ./tmp -o -path ./root -o -path ./home \) -prune -o ! -type d -printf '%p %y %u %m %s %T@\n' | sort)
  chroot "$root" dpkg -l
  (cd "$root" && find etc/apt var/lib/dpkg -type f -print0 | sort -z | xargs -0 sha256sum)
}

# Asks each listener once and says how fast it was.
ask() {
  local chat="http://127.0.0.1:$port/v1" speech="http://127.0.0.1:$((port + 1))/v1" transcription="http://127.0.0.1:$((port + 2))/v1"
  local body='{"model":"parley-chat","messages":[{"role":"user","content":"Tell me a short story about a fox."}],"max_tokens":100,"temperature":0}'
  local seconds answer
  for _ in warm-up timed; do
    answer=$(curl -sSf "$chat/chat/completions" -H 'Content-Type: application/json' -d "$body" -w '\n%{time_total}')
  done
  seconds=${answer##*$'\n'}
  answer=${answer%$'\n'*}
  tokens=$(sed -E 's/.*"completion_tokens":([0-9]+).*/\1/' <<<"$answer")
  echo "$name: chat: $tokens tokens in $seconds s: $(awk "BEGIN { printf \"%.1f\", $tokens / $seconds }") tokens/s"
  curl -sSf "$speech/audio/speech" -H 'Content-Type: application/json' -o "$work/speech.wav" -w "$name: speech: %{size_download} bytes in %{time_total} s\n" \
    -d '{"model":"tts-1","input":"The quick brown fox jumps over the lazy dog.","voice":"aus-male-3","response_format":"wav","seed":7}'
  [ "$(head -c 4 "$work/speech.wav")" = RIFF ]
  curl -sSf "$transcription/audio/transcriptions" -F "file=@$work/speech.wav" -F model=whisper-1 -w " in %{time_total} s\n" | sed "s/^/$name: transcription: /"
}

start_and_ask() {
  become "exec npm start -- --host 127.0.0.1 --port $port --speech-port $((port + 1)) --transcription-port $((port + 2))" >"$work/$name-start.log" 2>&1 &
  local server=$!
  until grep -q '^ready after' "$work/$name-start.log"; do
    kill -0 "$server" 2>/dev/null || { cat "$work/$name-start.log"; return 1; }
    sleep 1
  done
  grep -E '^(setup:|adapter|ready)' "$work/$name-start.log" | sed "s/^/$name: /"
  ask
  kill "$server"
  wait "$server" || true
}

run_case() {
  name=$1 root="$work/$1" user=visitor:visitor home=/home/visitor
  if [ "$name" = root ]; then user=root:root home=/root; fi
  rm -rf --one-file-system "$root"
  cp -a "$work/base" "$root"
  if [ "$name" = no-apt ]; then rm "$root/usr/bin/apt-get"; fi
  git clone --quiet "$repository" "$root$home/parley"
  chroot "$root" chown -R "$user" "$home"
  fingerprint >"$work/$name-before.txt"
  mount -t proc proc "$root/proc"
  trap 'umount "$root/proc"' EXIT
  start_and_ask
  if [ "$name" != no-apt ]; then
    (become "npm test -- ${tests[*]}" >"$work/$name-test.log" 2>&1) || { tail -50 "$work/$name-test.log"; return 1; }
    grep -E '^setup:' "$work/$name-test.log" | sed "s/^/$name: /"
    tail -1 "$work/$name-test.log" | sed "s/^/$name: npm test: /"
    tail -1 "$work/$name-test.log" | grep -q ', 0 failed, 0 skipped$'
  fi
  umount "$root/proc"
  trap - EXIT
  fingerprint >"$work/$name-after.txt"
  diff "$work/$name-before.txt" "$work/$name-after.txt"
  echo "$name: passed"
}

make_base
for name in ${cases[*]}; do (run_case "$name"); done
