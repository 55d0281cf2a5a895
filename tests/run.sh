#!/usr/bin/env bash
# Installs the packages, builds the release with warnings as errors and runs all tests. May be run again, from any folder.
#   --sanitize   the unit tests run under the address and undefined-behaviour sanitizers, in a build of their own that is made beside
#                the other tests, instead of in the release
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

sanitize=no
for argument in "$@"; do
  case $argument in
    --sanitize) sanitize=yes ;;
    *) echo "usage: tests/run.sh [--sanitize]" >&2; exit 64 ;;
  esac
done

"$root/jobs/install_packages.sh"
cores=$(env -u OMP_NUM_THREADS nproc)  # nproc goes by that variable, which is 1 for our ranks
. "$root/jobs/mpi_env.sh"
cd "$root"
summaries=$(mktemp)
compiled=$(mktemp)
compiler=
finish() {
  [ -z "$compiler" ] || kill -- "-$compiler" 2>/dev/null || true
  rm -f "$summaries" "$compiled"
}
trap finish EXIT

build() {  # PRESET TARGET
  cmake --preset "$1" -DRONDO_WARNINGS_AS_ERRORS=ON -DRONDO_UNIT_TESTS=$([ $sanitize = yes ] && echo OFF || echo ON)
  cmake --build --preset "$1" --target "$2"
}
# run_tests PRESET [ctest options...]: ends the script when something fails; keeps ctest's closing lines.
run_tests() {
  local preset=$1 log status=0
  shift
  log=build/$preset/ctest.log
  # Two more at a time than there are cores: many tests wait for processes that they have started or killed.
  ctest --preset "$preset" --parallel $((cores + 2)) --no-tests=error "$@" | tee "$log" || status=$?
  { echo "== ctest, preset $preset"; sed -n '/tests passed/,$p' "$log"; } >> "$summaries"
  [ "$status" -eq 0 ] || { cat "$summaries"; exit "$status"; }
}

build release all
if [ $sanitize = no ]; then
  run_tests release
else
  # Takes what the tests leave of the cores while they wait.
  set -m  # a process group, to end all of it
  nice -n 19 bash -ec "sanitize=yes; $(declare -f build); build sanitize unit_tests" > "$compiled" 2>&1 &
  compiler=$!
  set +m
  # What starts programs, and unit tests that are whole searches: a minute and a half each under the sanitizers, and what they
  # call the other unit tests call as well.
  released='cli|mpi|slurm|soak|long|benchmarks'
  run_tests release --label-regex "$released"
  wait "$compiler" || { cat "$compiled"; exit 1; }
  compiler=
  run_tests sanitize --label-exclude "$released"
fi
cat "$summaries"
