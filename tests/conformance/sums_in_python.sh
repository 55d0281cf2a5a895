#!/usr/bin/env bash
# sums_in_python.sh RONDO PYTHON REPLAY: the reference replay accepts AllReduce of every engine on small fabrics.
set -euo pipefail
rondo=$1
python=$2
replay=$3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

checked=0
accept() {  # FABRIC ENGINE
  local name="$folder/$checked"
  "$rondo" solve --topology "$1" --collective allreduce --size 16KB --engine "$2" --gap 0.9 --output "$name" >/dev/null 2>&1 ||
    { echo "$2 on $1: solve failed"; exit 1; }
  "$rondo" export "$name" --format json --output "$name.json" >/dev/null
  checked=$((checked + 1))
}
for fabric in ring:gpus=4 full:gpus=5 star:chassis=2,gpus=3 rails:boxes=2,rails=2 mesh:dims=3x3 dgx1 dgx2-2 ndv2-2 ndv2-2-taccl; do
  accept $fabric auto
done
for fabric in ring:gpus=4 rails:boxes=2,rails=2 dgx1; do
  for engine in list ring tree direct recursive bruck exchange; do accept $fabric $engine; done
done
for fabric in rails:boxes=2,rails=2 ndv2-2; do accept $fabric hierarchical; done
for fabric in mesh:dims=3x3 dgx2-2; do accept $fabric exchange; done
for fabric in mesh:dims=3x3 dgx1; do accept $fabric spanning; done
"$python" "$replay" "$folder"/*.json >"$folder/verdicts" || { grep invalid "$folder/verdicts"; exit 1; }
[ "$(grep -c ': valid' "$folder/verdicts")" = $checked ] || { echo "not all of $checked schedules were judged"; exit 1; }
echo "$checked schedules are valid"
