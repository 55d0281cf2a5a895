#!/usr/bin/env bash
# Installs the packages, builds the release with warnings as errors and runs all tests. May be run again, from any folder.
#   --sanitize   afterwards builds with the address and undefined-behaviour sanitizers and runs the tests of one rank there
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
trap 'rm -f "$summaries"' EXIT

# build_and_test PRESET TARGET [ctest options...]: ends the script when something fails; keeps ctest's closing lines.
build_and_test() {
  local preset=$1 target=$2 log status=0
  shift 2
  log=build/$preset/ctest.log
  # GCC warns of what is not there once it instruments; the release build is the judge of warnings.
  cmake --preset "$preset" -DRONDO_WARNINGS_AS_ERRORS=$([ "$preset" = release ] && echo ON || echo OFF)
  cmake --build --preset "$preset" --target "$target"
  # Two more at a time than there are cores: many tests wait for processes that they have started or killed.
  ctest --preset "$preset" --parallel $((cores + 2)) --no-tests=error "$@" | tee "$log" || status=$?
  { echo "== ctest, preset $preset"; sed -n '/tests passed/,$p' "$log"; } >> "$summaries"
  [ "$status" -eq 0 ] || { cat "$summaries"; exit "$status"; }
}

build_and_test release all
# Long: whole searches, a minute and a half each under the sanitizers; what they call the other tests call as well.
[ $sanitize = no ] || build_and_test sanitize unit_tests --label-exclude 'cli|mpi|slurm|soak|long'
cat "$summaries"
