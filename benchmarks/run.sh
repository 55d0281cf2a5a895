#!/usr/bin/env bash
# benchmarks/run.sh NAME [options]: runs benchmark NAME on the release build.
#   table8, fabrics  against published figures; every fabric
#   allgather        AllGather from 16 to 4096 GPUs: TACOS' problems, large and damaged fabrics, growth of the time
#   combining        AllReduce and ReduceScatter of many fabrics and sizes; groups with and without relays, unequal parts
#   improvement      what large-neighbourhood search closes of the portfolio's gap in a minute; 1 rank against 2
#   limits           whether ten long runs end within --time-limit 5 and 20, with a schedule, on 1 rank and on --ranks
#   rounds           engine rounds on 16 to 256 GPUs and where its models improve the plan
#   in_time          auto --time-limit with rounds and without them on ten fabrics (takes --only, --size and --seconds, default 60)
#   scaling          strong scaling of local search, rounds and columns: 1 rank against --ranks, and the work that a
#                    run on one rank has recorded, replayed on up to 256 over a network
#   memory           peak memory of a rank for AllGather on 4096 GPUs, on 1, 2, 4 and 8 ranks (--most-ranks N)
#   demands          data that several want: Broadcast and Reduce to 4096 GPUs, mixes, collectives as custom demands; --only broadcast and the like: one table
#   durability       what it costs that engine rounds keeps every round: with and without
#   linear           linear programs of flows: symmetry, columns, PDHG, parts; AllToAll on 16 to 1024 GPUs; with
#                    --only pdhg --json benchmarks/results/pdhg.json PDHG alone: 1 rank against 2, CLP, 5 million columns
#   links            links that carry several transfers at once; --only fat_trees and the like: one table
#   sizes            six collectives on every fabric at 11 sizes: the gap over the size, also as a picture beside the
#                    results (.svg); about a thousand solves
#   compare          rondo compare on composed machines and the shipped fabrics: AllGather, ReduceScatter, AllReduce and
#                    AllToAll at 1 KB, 1 MB and 1 GB beside the algorithms of NCCL and MPI (takes --only and --json)
#   catalogue        catalogues of three fabrics: built, killed and finished, looked up, refreshed on slower links (takes --only, --json,
#                    --ranks, --kills, --sizes and --random-sizes)
#   tuning           rondo tune's search on models of known optimum, beside random search, its parts alone, one parameter at a time, the grid
#   sccl             SCCL's tables 4 and 5 by engine steps, beside the paper's seconds and z3 on the paper's encoding
#   taccl            TACCL's Table 2: every sketch by engine route, and by auto on its links, beside the paper's seconds
#   life             tenants, relay memory and late GPUs (takes --only, --ranks and --json)
#   profile          rondo profile's sources under SimGrid's SMPI (Debian: libsimgrid-dev) on four platforms of known figures
#   simgrid          schedules of ten fabrics in SimGrid's network model by their dependencies alone (Debian: libsimgrid-dev)
#   execution        every fabric's schedules, MSCCL XML and MSCCL++ plans with real bytes, each where the collective wants it
# Afterwards benchmarks/tables.py writes the tables of benchmarks/README.md.
# Of all:
#   --ranks N        MPI ranks of each solve (default 2)
#   --json FILE      where the results go (default benchmarks/results/NAME.json)
# Of sccl (with --only the other rows of FILE stay; so they do of taccl):
#   --only SUBSTRING only the cases with this in their name
#   --z3 S           also z3, where it is installed, for S processor seconds a row at most (default 0: not at all, earlier ones stay)
# Of allgather, combining, rounds, linear, links, demands, taccl and sizes:
#   --only SUBSTRING only the cases with this in their name, e.g. dgx1, rails, ncflow, --chunks
#   --timeout S      ends a case after S seconds (default 600)
# Of linear (of it, of links, of demands and of sizes, with --only the other rows of FILE stay):
#   --repeat N       runs of each case (default 1)
# Of execution (rows of other cases stay in the file of results):
#   --only FABRIC    only the cases of this fabric, e.g. dgx1
#   --programs KIND  only xml (and schedules) or only plans
#   --plans FOLDER   instead, every plan (*.json) of others in FOLDER, as in test/execution-files of microsoft/mscclpp
#   --executed-on N,N,...  ranks (default 1,2,4); solved, exported and checked on one
# Of allgather:
#   --gpus N         only fabrics of at most N GPUs
# Of improvement:
#   --only SUBSTRING only the fabrics with this in their name
#   --engine E       instead of auto: list or queue, and what local search closes of its gap
#   --seconds S      --time-limit of each fabric's search (default 54; 0: none of these runs)
#   --repeat N       runs on 1 and on 2 ranks (default 5; 0: none)
#   --work W         --improve-work of those (default 1e7)
# Of limits:
#   --only SUBSTRING only the cases with this in their name
#   --seconds S      this time limit alone
# Of scaling:
#   --only SUBSTRING only the cases with this in their name
#   --repeat N       measured runs on 1 and on --ranks (default 5; 0: none)
#   --log FILE       only replays this log of rondo solve --work-log
#   --latency-us L, --bandwidth-gbps B  of the network that is replayed (default 5 us, 10 GB/s)
#   --ranks-per-node N  that draw parts from one pile in the replay (default 64)
#   --timeout S      ends a run after S seconds (default 3600)
# Of durability:
#   --fabric SPEC    (default star:chassis=16,intra=ndv2)
#   --repeat N       runs of each kind (default 5)
#   --timeout S      ends a run after S seconds (default 3600)
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
name=${1:?usage: benchmarks/run.sh NAME [--ranks N] [--json FILE] [options of NAME]; this file says which names}
shift
source "$root/jobs/mpi_env.sh"
cmake --preset release -S "$root" > /dev/null
if [ "$name" = simgrid ]; then
  cmake --build "$root/build/release" --target rondo
  exec python3 "$root/benchmarks/simgrid/simgrid.py" "$@"
fi
[ "$name" != life ] || { cmake --build "$root/build/release" --target rondo; exec python3 "$root/benchmarks/life/life.py" "$@"; }
[ "$name" != profile ] || exec python3 "$root/benchmarks/profile/profile.py" "$@"
[ "$name" != compare ] || exec "$root/benchmarks/compare/run.sh" "$@"
cmake --build "$root/build/release" --target rondo $([ "$name" = catalogue ] || echo benchmarks)
[ "$name" != catalogue ] || exec python3 "$root/benchmarks/catalogue/catalogue.py" "$@"
exec "$root/build/release/benchmarks/run" "$name" --json "$root/benchmarks/results/$name.json" "$@"
