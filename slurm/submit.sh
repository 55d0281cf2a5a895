#!/usr/bin/env bash
# slurm/submit.sh JOB.cfg [options of sbatch... -- [options of rondo solve...]]
# Submits slurm/solve.sbatch as the job file says, in lines that Rondo itself takes for comments:
#   #SLURM --nodes=2 --ntasks-per-node=32 --time=08:00:00      options of sbatch; any number of such lines
#   #SIZES 1MB 64MB 1GB                                        one task of an array for each
#   #OUTPUT runs/big                                           the folder of the run (default: runs/NAME-OF-JOB-FILE)
# --dry-run as the first word prints the command instead.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

run=()
if [ "${1:-}" = --dry-run ]; then
  run=(printf '%q ')
  shift
fi
job_file=${1:?usage: slurm/submit.sh [--dry-run] JOB.cfg [options of sbatch... [-- options of rondo solve...]]}
shift
[ -r "$job_file" ] || { echo "submit.sh: cannot read $job_file" >&2; exit 66; }

# The words behind all lines that begin with #NAME.
words_of() { sed -n "s/^#$1[[:space:]]\{1,\}//p" "$job_file" | tr '\n' ' '; }
read -r -a sbatch_options <<< "$(words_of SLURM)"
read -r -a sizes <<< "$(words_of SIZES)"
read -r -a output <<< "$(words_of OUTPUT)"
name=$(basename "$job_file" .cfg)
[ ${#output[@]} -gt 0 ] || output=("runs/$name")

while [ $# -gt 0 ] && [ "$1" != -- ]; do
  sbatch_options+=("$1")
  shift
done
[ $# -eq 0 ] || shift
if [ ${#sizes[@]} -gt 0 ]; then
  export RONDO_SIZES="${sizes[*]}"
  sbatch_options+=("--array=0-$((${#sizes[@]} - 1))")
fi
"${run[@]}" sbatch --parsable --job-name="rondo-$name" "${sbatch_options[@]}" "$here/solve.sbatch" "$job_file" \
  --output "${output[0]}" "$@"
