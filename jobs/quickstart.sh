#!/usr/bin/env bash
# From a fresh Debian 12 to a proven schedule: installs the packages, builds Rondo and solves AllGather of 1 GB on two
# NDv2 chassis (16 GPUs) on two ranks. May be run again, from any folder.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

"$root/jobs/install_packages.sh"
. "$root/jobs/mpi_env.sh"

cd "$root"
cmake --preset release
cmake --build --preset release --target rondo
# --force: solved anew each time, so that what is shown is the work of this build.
mpirun -n 2 build/release/rondo solve --config jobs/quickstart.cfg --output runs/quickstart --force
