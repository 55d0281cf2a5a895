#!/usr/bin/env bash
# tests/fuzz/run.sh BUILD [TARGET...]: a campaign of the fuzz targets in BUILD/tests/fuzz (cmake --preset fuzz), all unless named.
# RONDO_FUZZ_RUNS executions each (default: 2,000,000, of HDF5 a tenth); the corpus grows in BUILD/found/TARGET, so that
# campaigns in pieces go on from one another. Ends with the first finding, whose input it keeps.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=$(realpath "${1:?usage: tests/fuzz/run.sh BUILD [TARGET...]}")
shift
targets=(topology demand schedule_json msccl_xml plan algorithm sketch nccl_xml nvidia_smi job user_block catalogue round_file schedule_file)
[ $# -eq 0 ] || targets=("$@")
for target in "${targets[@]}"; do
  runs=2000000 longest=2048
  case $target in
    job | user_block) longest=1024 ;;
    plan | catalogue) longest=4096 ;;
    round_file | schedule_file) runs=200000 longest=24576 ;;
  esac
  found=$build/found/$target
  mkdir -p "$found"
  began=$SECONDS
  # Files this small may ask for no more than this much memory.
  "$build/tests/fuzz/fuzz_$target" -runs="${RONDO_FUZZ_RUNS:-$runs}" -max_len=$longest -dict="$here/dictionaries/$target.dict" \
    -malloc_limit_mb=256 -rss_limit_mb=2048 -timeout=10 -entropic=0 -reload=0 -print_funcs=0 -print_final_stats=1 -artifact_prefix="$build/found/$target-" \
    "$found" "$here/corpus/$target" > "$build/found/$target.log" 2>&1 ||
    { tail -n 40 "$build/found/$target.log"; exit 1; }
  seconds=$((SECONDS - began))
  echo "$target: $(sed -n 's/^stat::number_of_executed_units: *//p' "$build/found/$target.log") executions in $seconds s;" \
    "$(grep '^libhdf5' "$build/found/$target.log" || echo 'no finding')"
done
