#!/usr/bin/env bash
# tests/slurm/module_file.sh BUILD: the module file finds an installation by its own place and by RONDO_ROOT. Exit code 77
# where there are no environment modules.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
for init in /usr/share/modules/init/bash /usr/share/lmod/lmod/init/bash; do [ ! -r "$init" ] || break; done
[ -r "$init" ] || { echo "skipped: there are no environment modules (Debian: environment-modules, or lmod)"; exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
prefix=$folder/prefix
cmake --install "$1" --prefix "$prefix" >/dev/null
set +u
. "$init"

expect_loaded() {
  module load rondo
  [ "$(command -v rondo)" = "$prefix/bin/rondo" ] || { echo "rondo is $(command -v rondo)"; exit 1; }
  [ "$RONDO" = "$prefix/bin/rondo" ] && [ -r "$RONDO_SLURM/solve.sbatch" ]
  rondo --version | grep '^rondo ' >/dev/null
  rondo topology list | grep ndv2-2 >/dev/null
  module unload rondo
  [ -z "${RONDO:-}" ] && ! command -v rondo >/dev/null
}
module use "$prefix/share/modulefiles"
expect_loaded
module unuse "$prefix/share/modulefiles"
module use "$here/../../slurm/modulefiles"
export RONDO_ROOT=$prefix
expect_loaded
echo "loaded by its place and by RONDO_ROOT"
