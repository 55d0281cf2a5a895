#!/usr/bin/env bash
# benchmarks/run.sh compare [--only SUBSTRING] [--json FILE]: rondo compare at 1 KB, 1 MB and 1 GB on machines that are
# composed, and on the shipped fabrics. What a run that was ended has finished counts in the next one.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
only='' json=$root/benchmarks/results/compare.json
while [ $# -gt 0 ]; do
  case $1 in
    --only) only=$2 ;;
    --json) json=$2 ;;
    *) echo "benchmarks/run.sh compare takes --only SUBSTRING and --json FILE, not $1" >&2; exit 64 ;;
  esac
  shift 2
done
cmake --build "$root/build/release" --target rondo
rondo=$root/build/release/rondo
kept=$root/build/release/compare
mkdir -p "$kept"

# NAME TOPOLOGY
compare() {
  [[ $1 == *"$only"* ]] || return 0
  "$rondo" compare --topology "$2" --size 1KB,1MB,1GB --json "$kept/$1.json"
}

for case in dgx1v:2 mi300x:2 dgx-h100:4 gb200-nvl72:2; do
  "$rondo" topology compose --node "${case%:*}" --nodes "${case#*:}" --network rails --output "$kept/fabric.json"
  compare "${case%:*}-${case#*:}" "$kept/fabric.json"
done
for fabric in "$root"/jobs/topologies/*.json; do compare "$(basename "$fabric" .json)" "$fabric"; done
python3 - "$json" "$kept"/*.json <<'MERGE'
import json, sys
read = [json.load(open(path)) for path in sys.argv[2:]]
found = [each for each in read if each["format"] == "rondo-comparison"]
json.dump({"comparisons": sorted(found, key=lambda each: each["topology"])}, open(sys.argv[1], "w"), indent=1)
MERGE
