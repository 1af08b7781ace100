#!/usr/bin/env bash
# A reference agent for one piece of work, with curl alone: reads the hand-over from stdin, says "started", beats while
# the job runs, and says how it ended. Whoever receives the work (a queue, a small listener) pipes it in here, and sends
# SIGTERM when the work is to be stopped; it also stops when the answer to a beat says so.
set -um # jobs have a process group of their own, so that all of one is stopped
work=$(cat)
# The first member of that name: those that others fill (job, inputs, secrets) stand last.
field() { [[ $work =~ \"$1\":\"?([^\",}]*) ]] && printf '%s' "${BASH_REMATCH[1]}"; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
told=''
trap 'told=yes' TERM
sequence=0

# send METHOD URL TYPE FILE: prints the status; the answer stands in $folder/answer. curl says the same again when there
# is no answer, or one that says "later" (429, 502, 503, 504 among them), as late as that asks.
send() {
  curl -sS -o "$folder/answer" -w '%{http_code}' --retry 8 --retry-all-errors --retry-max-time "${within:-600}" --max-time 60 -X "$1" \
    -H "authorization: Bearer $(field execution_token)" -H "content-type: $3" --data-binary "@$4" "$2"
}
uuid() { cat /proc/sys/kernel/random/uuid 2>/dev/null || uuidgen; }

# report PHASE [MORE]: fails when it was not accepted; takes note when the answer says that the work is to be stopped.
report() {
  sequence=$((sequence + 1))
  printf '{"result_id":"%s","operation_id":"%s","node_id":"%s","attempt":%s,"generation":%s,"fence":%s,"sequence":%s,"phase":"%s"%s}' \
    "$(uuid)" "$(field operation_id)" "$(field node_id)" "$(field attempt)" "$(field generation)" "$(field fence)" \
    "$sequence" "$1" "${2:+,$2}" > "$folder/message"
  if [ "$(send POST "$(field results_url)" application/json "$folder/message")" != 200 ]; then
    echo "refused: $(cat "$folder/answer")" >&2
    return 1
  fi
  if grep -q '"cancel_requested":true' "$folder/answer"; then told=yes; fi
}

# keep NAME FILE: announces what the job has made, then brings its bytes.
keep() {
  sha256=$(sha256sum "$2" | cut -d' ' -f1)
  report progress "\"artifacts\":[{\"name\":\"$1\",\"kind\":\"report\",\"media_type\":\"text/plain\",\"size\":$(wc -c < "$2"),\"sha256\":\"$sha256\"}]" &&
    [ "$(send PUT "$(field artifacts_url)/$sha256" application/octet-stream "$2")" = 200 ]
}

# Jobs by name, never a command line of the sender. Each prints its outputs as JSON; what it leaves in $folder/kept is kept.
run() {
  case "$1" in
    uptime) uname -a > "$folder/kept" && echo "{\"kernel\":\"$(uname -s)\"}" ;;
    stall) sleep 600 ;;
    *) return 64 ;;
  esac
}

report started || exit 1
run "$(field job)" > "$folder/outputs" &
job=$!
beat=$((SECONDS + $(field heartbeat_s)))
while kill -0 $job 2>/dev/null && [ -z "$told" ]; do
  sleep 0.5
  if [ $SECONDS -ge $beat ]; then
    within=$(field heartbeat_s) report heartbeat || { kill -- -$job; exit 1; }
    beat=$((SECONDS + $(field heartbeat_s)))
  fi
done
if [ -n "$told" ]; then
  kill -- -$job 2>/dev/null
  report failed '"error":{"class":"cancelled","message":"It was told to stop."}'
elif wait $job; then
  if [ ! -e "$folder/kept" ] || keep uname.txt "$folder/kept"; then report succeeded "\"outputs\":$(cat "$folder/outputs")"; fi
else
  report failed "\"error\":{\"class\":\"exit_code\",\"message\":\"The job ended with $?.\"}"
fi
