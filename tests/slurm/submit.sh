#!/usr/bin/env bash
# tests/slurm/submit.sh: slurm/submit.sh hands sbatch what a job file says, word by word, and runs none of it.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
# Stands in for Slurm's: what it was called with, one word a line.
mkdir bin
printf '%s\n' '#!/bin/sh' 'printf "%s\n" "$@" "RONDO_SIZES=$RONDO_SIZES"' > bin/sbatch
chmod +x bin/sbatch
PATH=$folder/bin:$PATH
cat > 'a job.cfg' <<'CFG'
#SLURM --nodes=2 --comment=$(touch${IFS}ran) ;touch ran
#SLURM --time=01:00:00 `touch ran` *
#SIZES 1MB $(touch${IFS}ran) |touch
#OUTPUT runs/$(touch${IFS}ran)
topology = dgx1
CFG
"$here/../../slurm/submit.sh" 'a job.cfg' --partition='two words' -- --seed '$(touch ran)' > words
expected=(--parsable '--job-name=rondo-a job' --nodes=2 '--comment=$(touch${IFS}ran)' ';touch' ran --time=01:00:00 '`touch' 'ran`'
  '*' '--partition=two words' --array=0-2 "$(cd "$here/../../slurm" && pwd)/solve.sbatch" 'a job.cfg' --output
  'runs/$(touch${IFS}ran)' --seed '$(touch ran)' 'RONDO_SIZES=1MB $(touch${IFS}ran) |touch')
diff words <(printf '%s\n' "${expected[@]}")
[ ! -e ran ] || { echo "a word of the job file was run"; exit 1; }
eval "$("$here/../../slurm/submit.sh" --dry-run 'a job.cfg' --partition='two words' -- --seed '$(touch ran)')" > dry
diff <(head -n -1 words) <(head -n -1 dry)  # quoted for a shell, it is the same command
[ ! -e ran ] || { echo "a word of the job file was run"; exit 1; }
echo "every word as it stands, none run"
