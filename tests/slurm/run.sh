#!/usr/bin/env bash
# tests/slurm/run.sh RONDO [CASE...]: the scripts of slurm/ on a throwaway Slurm of virtual nodes, with real runs that are
# killed, requeued, cut short and started twice. Every one has to end with the schedule of an undisturbed run. All cases run
# at the same time: they mostly wait for Slurm. Exit code 77 where no such cluster can be made, with the reason.
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

# Some five hundred rounds of a few milliseconds, a file each: seconds in which something can happen to it.
cat > rounds.cfg <<CFG
#SLURM --nodes=2 --ntasks-per-node=2
#OUTPUT by-submit
topology = star:chassis=2,intra=ndv2
collective = allgather
size = 1200MB
chunks = 64
gap = 10%
engine = rounds
start = list
decompose = ncflow
round-epochs = 4
CFG
# Seconds that anything may take. A requeued job waits for Slurm's next rounds and for its turn on a busy machine, for minutes.
limit=420
digest() { sed -n 's/^ "schedule_digest": "\(.*\)",$/\1/p' "$1/report.json"; }
state_of_job() { scontrol --oneliner show job "$1" 2>/dev/null | sed 's/.*JobState=\([A-Z_]*\).*/\1/'; }
restarts() { scontrol show job "$1" | sed -n 's/.*Restarts=\([0-9]*\).*/\1/p'; }
has_ended() { case $(state_of_job "$1") in COMPLETED | FAILED | CANCELLED | TIMEOUT | NODE_FAIL) ;; *) return 1 ;; esac; }
fail() { echo "FAILED: $*" >&2; exit 1; }
expect_completed() {
  wait_for "$limit" "end of job $1" has_ended "$1" || fail "job $1 is $(state_of_job "$1") after $limit s"
  [ "$(state_of_job "$1")" = COMPLETED ] || fail "job $1 is $(state_of_job "$1")"
}
expect_same() {  # as the undisturbed run, which may still be at work
  wait_for $limit "undisturbed run" test -e by-submit/report.json
  [ "$(digest "$1")" = "$(digest by-submit)" ] || fail "$1: digest $(digest "$1") instead of $(digest by-submit)"
}
export RONDO_STEP_WAIT=60  # several times as long as a busy machine needs, and a part of the limit
# Two ranks, where the undisturbed run has four.
submit() { sbatch --parsable --output=%j.log --nodes=2 --ntasks-per-node=1 "$@"; }
# submit_rounds DIR [options of sbatch]: returns once the run has a round.
submit_rounds() {
  local run=$1
  shift
  job=$(submit "$@" "$root/slurm/solve.sbatch" rounds.cfg --output "$run")
  wait_for $limit "round of $run" test -e "$run/rounds/round-00001.h5"
  [ ! -e "$run/report.json" ] || fail "$run ended before it was disturbed"
}
ranks_of() { pgrep -f "^$RONDO solve .*--output $1\$"; }
expect_resumed() {  # DIR JOB: it was requeued and did no finished round again
  [ "$(restarts "$2")" -ge 1 ] || fail "job $2 was not requeued"
  [ "$(sed -n 's/.*"rounds_resumed": *\([0-9]*\).*/\1/p' "$1/report.json")" -ge 1 ] || fail "$1 resumed no round"
  expect_same "$1"
}

case_undisturbed() {
  job=$("$root/slurm/submit.sh" rounds.cfg --output=%j.log)
  expect_completed "$job"
  [ -n "$(digest by-submit)" ] && "$RONDO" verify by-submit >/dev/null
}
case_mpirun() {  # and its way for USR1 to the ranks
  RONDO_LAUNCHER=mpirun RONDO_MPIRUN=$root/jobs/mpirun.sh submit_rounds by-mpirun
  scancel --batch --signal=USR1 "$job"
  expect_completed "$job"
  grep -q 'ended with 75' "$job.log" || fail "no code 75 in $job.log"
  expect_resumed by-mpirun "$job"
}
case_killed_rank() {
  submit_rounds killed
  kill -KILL "$(ranks_of killed | tail -n 1)"
  expect_completed "$job"
  expect_resumed killed "$job"
}
case_requeue() {
  submit_rounds requeued
  scontrol requeue "$job"
  expect_completed "$job"
  expect_resumed requeued "$job"
}
case_time_limit() {
  # Slurm looks every half minute. Until its signal is there the ranks stand still.
  submit_rounds limited --time=1 --signal=B:USR1@60
  kill -STOP $(ranks_of limited)
  wait_for $limit "signal before the time limit" grep -q 'told to stop' "$job.log"
  kill -CONT $(ranks_of limited)
  expect_completed "$job"
  expect_resumed limited "$job"
  grep -q 'ended with 75' "$job.log" || fail "no code 75 in $job.log"
}
on_n3() { scontrol show job "$1" | grep ' NodeList=.*3' >/dev/null; }
case_node_down() {  # as an administrator says
  submit_rounds down --partition=all
  on_n3 "$job" || fail "job $job is not on n3"
  scontrol update nodename=n3 state=down reason=test
  expect_completed "$job"
  expect_resumed down "$job"
}
case_node_lost() {  # its power fails, and the job goes on elsewhere
  submit_rounds lost --partition=all
  on_n3 "$job" || fail "job $job is not on n3"
  stop_node n3
  expect_completed "$job"
  ! on_n3 "$job" || fail "job $job ended on the lost node"
  expect_resumed lost "$job"
}
case_busy_nodes() {  # Slurm takes the nodes of the job for busy, here as another step has them
  mkdir busy
  cat > busy/srun <<SRUN
#!/usr/bin/env bash
[ -n "\${SLURM_RESTART_COUNT:-}" ] || { $(command -v srun) --mpi=none sleep $limit & sleep 3; }
exec $(command -v srun) "\$@"
SRUN
  chmod +x busy/srun
  PATH=$PWD/busy:$PATH RONDO_STEP_WAIT=5 submit_rounds waited
  expect_completed "$job"
  [ "$(restarts "$job")" -ge 1 ] || fail "job $job was not requeued"
  grep -q 'ended with 76; back' "$job.log" || fail "no code 76 in $job.log"
  expect_same waited
}
case_started_twice() {
  local second folder
  for folder in twice twice-2 twice-3; do
    submit_rounds "$folder"
    second=$(submit --no-requeue --nodes=1 --ntasks=1 "$root/slurm/solve.sbatch" rounds.cfg --output "$folder")
    wait_for $limit "end of the second start" has_ended "$second"
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
    'engine = list' 'gap = 50%' > sizes.cfg
  job=$("$root/slurm/submit.sh" sizes.cfg --output=%A-%a.log)
  wait_for $limit "end of the array" eval '! squeue -h -j '"$job"' | grep -q .'
  local size
  for size in 1KB 1MB 1GB; do "$RONDO" verify sizes/$size >/dev/null; done
}
case_scaling() {
  printf '%s\n' 'topology = dgx1' 'collective = allgather' 'size = 1MB' 'engine = list' 'gap = 50%' > small.cfg
  job=$(submit --ntasks-per-node=2 "$root/slurm/scaling.sbatch" small.cfg scaling)
  expect_completed "$job"
  [ "$(cut -f1 scaling/scaling.tsv | xargs)" = 'ranks 1 2 4' ] || fail "scaling.tsv has not three rows"
  awk -F'\t' 'NF != 7 || /\t\t/ || /\t$/ { exit 1 }' scaling/scaling.tsv || fail "$(cat scaling/scaling.tsv)"
  [ -s scaling/work.json ] || fail "the run on one rank has recorded nothing"
}

# The one that waits longest comes first.
cases=(time_limit undisturbed mpirun killed_rank requeue node_down busy_nodes started_twice array scaling)
[ $# -eq 0 ] || read -r -a cases <<< "$(printf "%s\n" undisturbed "$@" | sort -u | xargs)"
run_case() {
  local began tenths
  began=$(date +%s%N)
  "case_$1"
  tenths=$((($(date +%s%N) - began) / 100000000))
  printf '%-20s ok %5d.%d s\n' "$1" $((tenths / 10)) $((tenths % 10))
}
began=$SECONDS
declare -A processes=()
for name in "${cases[@]}"; do
  (run_case "$name") &
  processes[$name]=$!
done
failed=()
for name in "${cases[@]}"; do wait "${processes[$name]}" || failed+=("$name"); done
echo "all at the same time: $((SECONDS - began)) s"
[ ${#failed[@]} -eq 0 ] || fail "${failed[*]}"
