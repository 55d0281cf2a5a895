#!/usr/bin/env bash
# kill_and_resume.sh RONDO MPIEXEC: kills one rank after each round in turn and resumes, on other numbers of ranks as well:
# the schedule has to be the one of an undisturbed run, and no finished round is solved again.
set -euo pipefail
rondo=$1
mpiexec="$2 --oversubscribe"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
problem=(--topology star:chassis=2,gpus=4 --collective allgather --size 100MB --chunks 2 --engine rounds
         --start list --decompose ncflow --round-epochs 4)

digest() { sed -n 's/.*"schedule_digest": *"\([0-9a-f]*\)".*/\1/p' "$1/report.json"; }
resumed() { sed -n 's/.*"rounds_resumed": *\([0-9]*\).*/\1/p' "$1/report.json"; }
whole_rounds() { find "$1/rounds" -name 'round-*.h5' 2>/dev/null | wc -l; }

$mpiexec -n 2 "$rondo" solve "${problem[@]}" --output "$folder/whole" 2>/dev/null
expected=$(digest "$folder/whole")
rounds=$(whole_rounds "$folder/whole")
killed=0
# Some runs end before the signal comes: then the rounds are gone through again, three times at most.
for ((n = 0; n < rounds || (n < 3 * rounds && killed < rounds / 2); ++n)); do
  k=$((n % rounds))
  run=$folder/run-$n
  ranks=$((k % 2 == 0 ? 2 : 4))
  $mpiexec -n $ranks "$rondo" solve "${problem[@]}" --output "$run" >/dev/null 2>&1 &
  job=$!
  file=$(printf '%s/rounds/round-%05d.h5' "$run" "$k")
  while [ ! -e "$file" ] && kill -0 $job 2>/dev/null; do sleep 0.002; done
  victims=($(pgrep -f "solve .*--output $run\$" -P "$job" || true))
  [ ${#victims[@]} -eq 0 ] || kill -KILL "${victims[k % ${#victims[@]}]}" 2>/dev/null || true
  wait $job 2>/dev/null || true
  before=$(whole_rounds "$run")
  finished=no
  if [ -e "$run/report.json" ]; then finished=yes; else killed=$((killed + 1)); fi
  $mpiexec -n $((1 + k % 3)) "$rondo" resume "$run" >/dev/null 2>&1 || { echo "round $k: resume failed"; exit 1; }
  [ "$(digest "$run")" = "$expected" ] || { echo "round $k: $(digest "$run") instead of $expected"; exit 1; }
  if [ $finished = no ] && [ "$(resumed "$run" | cut -d. -f1)" != "$before" ]; then
    echo "round $k: $before rounds were whole, $(resumed "$run") were resumed"; exit 1
  fi
done
echo "$rounds rounds, $killed of $n runs killed before they ended, all resumed to $expected"
[ "$killed" -gt 0 ] || { echo "no run was killed in time: that says nothing"; exit 1; }
