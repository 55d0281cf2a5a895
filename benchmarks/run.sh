#!/usr/bin/env bash
# benchmarks/run.sh NAME [options]: runs benchmark NAME (table8, fabrics) on the release build.
#   --ranks N     MPI ranks of each solve (default 2)
#   --json FILE   where the results go (default benchmarks/results/NAME.json)
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
name=${1:?usage: benchmarks/run.sh table8|fabrics [--ranks N] [--json FILE]}
shift
source "$root/jobs/mpi_env.sh"
cmake --preset release -S "$root" > /dev/null
cmake --build "$root/build/release" --target rondo "bench_$name"
exec "$root/build/release/benchmarks/$name" --json "$root/benchmarks/results/$name.json" "$@"
