#!/usr/bin/env bash
# Runs the image as operators should, with a read-only root, no capabilities and no new privileges, and asks it everything on a software adapter.
#   deploy/image/ask.sh [IMAGE]     (root, podman, runc, curl)
set -euo pipefail
image=${1:-localhost/parley:latest}
say() { printf '%s\n' "$*"; }
die() { say "FAILED: $*"; "${podman[@]}" logs "$name" 2>&1 | tail -n 20; exit 1; }
name=parley-ask-$$
answers=$(mktemp -d)
trap '"${podman[@]}" rm --force --volumes --ignore --time 0 "$name" > /dev/null; rm -rf "$answers"' EXIT
# Loopback of this machine, on ports that are not the usual ones. The limits of processes and descriptors are within what any root may set,
# and the health check is run by hand below, because podman wants systemd for its timer.
podman=(podman --runtime runc --cgroup-manager cgroupfs)
limits=(--memory 4g --ulimit nofile=8192:8192 --ulimit nproc=4096:4096 --no-healthcheck --read-only --read-only-tmpfs=false --cap-drop all
  --security-opt no-new-privileges --tmpfs /tmp:rw,mode=1777 --volume /models --volume /home/app/.cache)
settings=(--env PARLEY_HOST=127.0.0.1 --env PARLEY_PORT=33000 --env PARLEY_SPEECH_PORT=33001 --env PARLEY_TRANSCRIPTION_PORT=33002)
once() { "${podman[@]}" run --rm --network none "${limits[@]}" "${settings[@]}" "$@"; }

say "user: $(once --entrypoint id "$image" -u) · $(once --entrypoint node "$image" --version) · SBOM: $(once --entrypoint node "$image" -p \
  'const s=require("/parley/sbom.cdx.json"); `${s.bomFormat} ${s.specVersion}, ${s.components.length} components`')"
once "$image" doctor > "$answers/doctor" || true
say "doctor:" && sed 's/^/  /' "$answers/doctor"
status=0
once --env PARLEY_ADAPTER=NVIDIA "$image" > "$answers/no-gpu" 2>&1 || status=$?
[ "$status" = 78 ] || die "without the GPU that was asked for the exit code is $status, not 78"
say "without the GPU that was asked for: exit code 78, '$(tail -n 1 "$answers/no-gpu")'"

began=$(date +%s.%N)
"${podman[@]}" run --detach --name "$name" --network host "${limits[@]}" "${settings[@]}" "$image" > /dev/null
until [ "$(for port in 33000 33001 33002; do curl --silent --output /dev/null --write-out '%{http_code}' http://127.0.0.1:$port/health; done)" = 200200200 ]; do
  [ "$("${podman[@]}" inspect --format '{{.State.Running}}' "$name")" = true ] || die "the server ended"
  sleep 0.2
done
say "ready $(echo "$(date +%s.%N) - $began" | bc | xargs printf '%.1f') s after "podman run", of which the server counts: $("${podman[@]}" logs "$name" 2> /dev/null | grep -iE 'ready|listening|started' | head -n 1)"
"${podman[@]}" exec "$name" node /parley/deploy/image/healthcheck.mjs || die "the health check"
say "health check: healthy"

curl --fail --silent --show-error http://127.0.0.1:33000/v1/chat/completions --header 'content-type: application/json' \
  --data '{"model":"parley-chat","messages":[{"role":"user","content":"What is the capital of France?"}],"temperature":0,"max_tokens":24}' > "$answers/chat" || die chat
say "chat: $(node -p 'JSON.parse(require("fs").readFileSync(process.argv[1])).choices[0].message.content' "$answers/chat")"
curl --fail --silent --show-error http://127.0.0.1:33001/v1/audio/speech --header 'content-type: application/json' --output "$answers/speech.wav" \
  --data '{"model":"tts-1","input":"The river is wide here.","voice":"nona","response_format":"wav","seed":1}' || die speech
[ "$(head -c 4 "$answers/speech.wav")" = RIFF ] || die "speech is no WAV file"
say "speech: $(stat --format %s "$answers/speech.wav") bytes of WAV"
curl --fail --silent --show-error http://127.0.0.1:33002/v1/audio/transcriptions --form "file=@$answers/speech.wav" --form model=whisper-1 \
  --form response_format=json > "$answers/text" || die transcription
say "transcription of it: $(cat "$answers/text")"

pid=$("${podman[@]}" inspect --format '{{.State.Pid}}' "$name")
processes="$pid $(pgrep --parent "$pid" | tr '\n' ' ')"
memory=0
for process in $processes; do memory=$((memory + $(awk '/^Pss:/ {print $2}' "/proc/$process/smaps_rollup"))); done
say "memory: $((memory / 1024)) MiB in $(echo "$processes" | wc -w) processes (Pss), models and software adapter included"
say "rights: $(grep -E '^(CapEff|NoNewPrivs|Uid)' "/proc/$pid/status" | tr '\t\n' '  ')"
"${podman[@]}" exec "$name" node -e 'require("fs").writeFileSync("/parley/x", "")' > "$answers/write" 2>&1 && die "the root can be written to"
say "root: $(grep -o 'EROFS[^,]*' "$answers/write" | head -n 1)"

"${podman[@]}" stop --time 75 "$name" > /dev/null
say "stopped with exit code $("${podman[@]}" inspect --format '{{.State.ExitCode}}' "$name")"
[ "$("${podman[@]}" inspect --format '{{.State.ExitCode}}' "$name")" = 0 ] || die "the drain"
