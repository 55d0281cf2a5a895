#!/usr/bin/env bash
# tests/slurm/run.sh RONDO [CASE...]: the scripts of slurm/ on a throwaway Slurm of two virtual nodes, with real runs that are
# killed, requeued, cut short and started twice. Every one has to end with the schedule of an undisturbed run. Exit code 77
# where no such cluster can be made, with the reason.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
. "$here/cluster.sh"
if [ -z "${RONDO_IN_NAMESPACES:-}" ]; then
  reason=$(why_no_cluster)
  [ -z "$reason" ] || { echo "skipped: $reason"; exit 77; }
  enter_namespaces "$0" "$@"
fi

RONDO=$(realpath "${1:?usage: tests/slurm/run.sh RONDO [CASE...]}")
export RONDO
shift
. "$root/jobs/mpi_env.sh"
folder=$(mktemp -d /tmp/rondo-slurm-XXXXXX)
mkdir "$folder/work"
finish() {
  local code=$?
  stop_cluster
  if [ $code -ne 0 ]; then tail -n 30 "$folder"/work/*.log "$folder"/slurmctld.log >&2 || true; fi
  rm -rf "$folder"
}
trap finish EXIT
start_cluster "$folder"
cd "$folder/work"

# Seventeen rounds, seconds in all.
cat > rounds.cfg <<CFG
#SLURM --nodes=2 --ntasks-per-node=2
#OUTPUT by-submit
topology = star:chassis=2,intra=ndv2
collective = allgather
size = 100MB
chunks = 2
engine = rounds
decompose = ncflow
round-epochs = 4
CFG
digest() { sed -n 's/^ "schedule_digest": "\(.*\)",$/\1/p' "$1/report.json"; }
rounds_of() { find "$1/rounds" -name 'round-*.h5' 2>/dev/null | wc -l; }
state_of_job() { scontrol --oneliner show job "$1" 2>/dev/null | sed 's/.*JobState=\([A-Z_]*\).*/\1/'; }
restarts() { scontrol show job "$1" | sed -n 's/.*Restarts=\([0-9]*\).*/\1/p'; }
has_ended() { case $(state_of_job "$1") in COMPLETED | FAILED | CANCELLED | TIMEOUT | NODE_FAIL) ;; *) return 1 ;; esac; }
fail() { echo "FAILED: $*" >&2; exit 1; }
expect_completed() {
  wait_for "${2:-60}" "end of job $1 ($(state_of_job "$1"))" has_ended "$1"
  [ "$(state_of_job "$1")" = COMPLETED ] || fail "job $1 is $(state_of_job "$1")"
}
expect_same() { [ "$(digest "$1")" = "$expected" ] || fail "$1: digest $(digest "$1") instead of $expected"; }
# As submit.sh, but from a copy: Slurm keeps the script.
submit() { sbatch --parsable --output=%j.log --nodes=2 --ntasks-per-node=2 "$@"; }
# submit_rounds DIR [options of sbatch]: returns once the run has a round.
submit_rounds() {
  local run=$1
  shift
  job=$(submit "$@" "$root/slurm/solve.sbatch" rounds.cfg --output "$run")
  wait_for 30 "round of $run" test -e "$run/rounds/round-00001.h5"
  [ ! -e "$run/report.json" ] || fail "$run ended before it was disturbed"
}
a_rank() { pgrep -f "^$RONDO solve .*--output $1\$" | head -n "${2:-1}" | tail -n 1; }
expect_resumed() {  # DIR JOB: it was requeued and did no finished round again
  [ "$(restarts "$2")" -ge 1 ] || fail "job $2 was not requeued"
  [ "$(sed -n 's/.*"rounds_resumed": *\([0-9]*\).*/\1/p' "$1/report.json")" -ge 1 ] || fail "$1 resumed no round"
  expect_same "$1"
}

case_undisturbed() {
  job=$("$root/slurm/submit.sh" rounds.cfg --output=%j.log)
  expect_completed "$job"
  expected=$(digest by-submit)
  [ -n "$expected" ] && "$RONDO" verify by-submit >/dev/null
}
case_mpirun() {
  job=$(RONDO_LAUNCHER=mpirun submit "$root/slurm/solve.sbatch" rounds.cfg --output by-mpirun)
  expect_completed "$job"
  expect_same by-mpirun
}
case_killed_rank() {
  submit_rounds killed
  kill -KILL "$(a_rank killed 3)"
  expect_completed "$job"
  expect_resumed killed "$job"
}
case_requeue() {
  submit_rounds requeued
  scontrol requeue "$job"
  expect_completed "$job"
  expect_resumed requeued "$job"
}
case_signal_before_the_time_limit() {
  # Slurm looks every half minute. Until its signal is there the ranks stand still.
  submit_rounds limited --time=1 --signal=B:USR1@55
  pkill -STOP -f "^$RONDO solve .*--output limited\$"
  wait_for 45 "signal before the time limit" grep -q 'told to stop' "$job.log"
  pkill -CONT -f "^$RONDO solve .*--output limited\$"
  expect_completed "$job" 90
  expect_resumed limited "$job"
  grep -q 'ended with 75' "$job.log" || fail "no code 75 in $job.log"
}
case_node_down() {
  submit_rounds lost
  stop_node n2
  sleep 1
  start_node n2
  expect_completed "$job" 90
  expect_resumed lost "$job"
}
case_started_twice() {
  local second folder
  for folder in twice twice-2 twice-3; do
    submit_rounds "$folder"
    second=$(submit --no-requeue --nodes=1 --ntasks=1 --oversubscribe "$root/slurm/solve.sbatch" rounds.cfg --output "$folder")
    wait_for 40 "end of the second start" has_ended "$second"
    # On a busy machine the second one may begin when the first one has ended, and find its result.
    [ "$(state_of_job "$second")" = COMPLETED ] && has_ended "$job" || break
  done
  [ "$(state_of_job "$second")" = FAILED ] || fail "the second start is $(state_of_job "$second")"
  grep -q 'another run is at work in it: process' "$second.log" || fail "no refusal in $second.log"
  expect_completed "$job"
  expect_same "$folder"
}
case_array() {
  printf '%s\n' '#SLURM --ntasks=1' '#SIZES 1KB 1MB 1GB' '#OUTPUT sizes' 'topology = dgx1' 'collective = allgather' \
    'engine = list' > sizes.cfg
  job=$("$root/slurm/submit.sh" sizes.cfg --output=%j.log)
  wait_for 60 "end of the array" eval '! squeue -h -j '"$job"' | grep -q .'
  local size
  for size in 1KB 1MB 1GB; do "$RONDO" verify sizes/$size >/dev/null; done
}
case_scaling() {
  printf '%s\n' 'topology = dgx1' 'collective = allgather' 'size = 1MB' 'engine = list' > small.cfg
  job=$(submit "$root/slurm/scaling.sbatch" small.cfg scaling)
  expect_completed "$job"
  [ "$(wc -l < scaling/scaling.tsv)" -eq 4 ] || fail "scaling.tsv has not three rows"
}

cases=(undisturbed mpirun killed_rank requeue signal_before_the_time_limit node_down started_twice array scaling)
[ $# -eq 0 ] || cases=(undisturbed "$@")
for name in "${cases[@]}"; do
  began=$(date +%s%N)
  "case_$name"
  tenths=$((($(date +%s%N) - began) / 100000000))
  printf '%-30s ok %5d.%d s\n' "$name" $((tenths / 10)) $((tenths % 10))
done
