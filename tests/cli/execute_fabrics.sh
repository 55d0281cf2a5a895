#!/usr/bin/env bash
# execute_fabrics.sh RONDO MPIEXEC [FABRIC...]: AllGather and AllToAll on the fabrics (default: all shipped ones): the schedule
# and its MSCCL XML, for AllGather in place as well, accepted by check-xml and executed with real bytes on 1, 2 and 4 ranks,
# equal to MPI's collective.
set -euo pipefail
rondo=$1
mpiexec=$2
shift 2
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
fabrics=("$@")
[ ${#fabrics[@]} -gt 0 ] || for file in "$root"/jobs/topologies/*.json; do fabrics+=("$(basename "$file" .json)"); done
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

runs=0
# execute FILE EXPECTED: on 1, 2 and 4 ranks.
execute() {
  for ranks in 1 2 4; do
    "$mpiexec" --oversubscribe -n $ranks "$rondo" execute "$1" --bytes 1MB >"$folder/out" 2>&1 || { cat "$folder/out"; exit 1; }
    grep -q "equal to $2 byte for byte" "$folder/out" || { echo "$1 on $ranks ranks:"; cat "$folder/out"; exit 1; }
    runs=$((runs + 1))
  done
}

for fabric in "${fabrics[@]}"; do
  for collective in allgather alltoall; do
    name="$folder/$fabric-$collective"
    "$rondo" solve --topology "$fabric" --collective $collective --size 16MB --engine auto --chunks 1 --gap 100% \
      --output "$name" >"$folder/out" 2>&1 || { cat "$folder/out"; exit 1; }
    expected=MPI_Allgather
    placements=(out-of-place in-place)
    if [ $collective = alltoall ]; then
      expected=MPI_Alltoall
      placements=(out-of-place)
    fi
    execute "$name" $expected
    for placement in "${placements[@]}"; do
      "$rondo" export "$name" --format msccl-xml --placement $placement --output "$name.xml" >"$folder/out" 2>&1 || { cat "$folder/out"; exit 1; }
      "$rondo" check-xml "$name.xml" >"$folder/out" 2>&1 || { cat "$folder/out"; exit 1; }
      execute "$name.xml" $expected
    done
    echo "$fabric $collective: schedule and XML (${placements[*]}) equal to $expected on 1, 2 and 4 ranks"
  done
done
echo "$runs executions"
