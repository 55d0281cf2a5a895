#!/usr/bin/env bash
# pictures_in_chromium.sh RONDO: the pictures of 16 and of 256 GPUs, and a comparison, in headless Chromium: the page's script runs to its end
# within 2 s, nothing is written to the console, nothing but the file itself is asked for. Exit code 77 (skipped) where there
# is no Chromium.
set -euo pipefail
rondo=$1
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
if [ -z "$browser" ]; then
  echo "skipped: there is no chromium here"
  exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# open FILE: its document to dom.html, Chromium's messages to log, its network events to net.json.
open() {
  rm -rf "$folder/profile" "$folder/net.json"
  timeout 60 "$browser" --headless --no-sandbox --disable-gpu --disable-background-networking --disable-component-update \
    --disable-sync --no-first-run --host-resolver-rules="MAP * ~NOTFOUND" --user-data-dir="$folder/profile" --log-net-log="$folder/net.json" --enable-logging=stderr \
    --window-size=1300,1000 --dump-dom "file://$1" >"$folder/dom.html" 2>"$folder/log" || { cat "$folder/log"; exit 1; }
  if grep CONSOLE "$folder/log"; then
    echo "$1 writes to the console"
    exit 1
  fi
  # Chromium asks these for itself, whatever it shows.
  local own='clients2\.google\.com|update\.googleapis\.com|accounts\.google\.com|chrome[a-z-]*:'
  if grep -o '"url":"[a-z]*://[^"]*' "$folder/net.json" | grep -vE "$own"; then
    echo "$1 asks the network"
    exit 1
  fi
}

# check NAME SOLVE_ARGUMENTS...
check() {
  local name=$1
  shift
  "$rondo" solve "$@" --output "$folder/$name" >/dev/null 2>&1
  for format in svg html; do
    "$rondo" export "$folder/$name" --format $format --output "$folder/$name.$format"
    open "$folder/$name.$format"
  done
  local ready
  ready=$(sed -n 's/.*data-ready="\([0-9]*\)".*/\1/p' "$folder/dom.html" | head -n 1)
  [ -n "$ready" ] || { echo "$name.html: the script did not end"; exit 1; }
  [ "$(stat -c %s "$folder/$name.html")" -le 5000000 ] || { echo "$name.html is larger than 5 MB"; exit 1; }
  echo "$name.html: interactive after $ready ms"
  [ "$ready" -le 2000 ] || { echo "that is more than 2 s"; exit 1; }
}

check sixteen --topology ndv2-2 --collective allgather --size 16MB --engine list --chunks 4 --gap 50%
check many --topology torus:dims=16x16 --collective allgather --size 1GB --engine list --chunks 1 --gap 50%

"$rondo" compare --topology ring:gpus=4 --collective allgather --size 1KB,1MB --json "$folder/compare.json" --html "$folder/compare.html" >/dev/null
open "$folder/compare.html"
