#!/usr/bin/env bash
# A reference agent for one piece of work, with curl alone: reads the hand-over from stdin, says "started", beats while
# the job runs, and says how it ended. Whoever receives the work (a queue, a small listener) pipes it in here.
set -u
work=$(cat)
field() { printf '%s' "$work" | sed -nE "s/.*\"$1\":\"?([^\",}]*).*/\1/p" | head -1; }
url=$(field results_url)
token=$(field execution_token)
sequence=0

# report PHASE [MORE]: 0 when it was accepted. The same body is sent again until there is an answer.
report() {
  sequence=$((sequence + 1))
  body="{\"result_id\":\"$(cat /proc/sys/kernel/random/uuid 2>/dev/null || uuidgen)\",\"operation_id\":\"$(field operation_id)\",
    \"node_id\":\"$(field node_id)\",\"attempt\":$(field attempt),\"generation\":$(field generation),\"fence\":$(field fence),
    \"sequence\":$sequence,\"phase\":\"$1\"${2:+,$2}}"
  for _ in 1 2 3 4 5 6; do
    answer=$(curl -sS -w '\n%{http_code}' -H "authorization: Bearer $token" -H 'content-type: application/json' -d "$body" "$url") || { sleep 2; continue; }
    case "${answer##*$'\n'}" in
      200) case "$answer" in *'"cancel_requested":true'*) return 2 ;; *) return 0 ;; esac ;;
      5*) sleep 2 ;;
      *) echo "refused: $answer" >&2; return 1 ;;
    esac
  done
  return 1
}

# Jobs by name, never a command line of the sender. Each prints its outputs as JSON.
run() {
  case "$1" in
    uptime) echo "{\"kernel\":\"$(uname -s)\"}" ;;
    *) return 64 ;;
  esac
}

report started || exit 1
out=$(mktemp)
run "$(field job)" > "$out" &
job=$!
while kill -0 $job 2>/dev/null; do
  for _ in $(seq "$(field heartbeat_s)"); do kill -0 $job 2>/dev/null || break; sleep 1; done
  kill -0 $job 2>/dev/null || break
  report heartbeat || { kill $job; report failed '"error":{"class":"cancelled","message":"It was told to stop."}'; exit 1; }
done
if wait $job; then report succeeded "\"outputs\":$(cat "$out")"; else report failed "\"error\":{\"class\":\"exit_code\",\"message\":\"The job ended with $?.\"}"; fi
rm -f "$out"
