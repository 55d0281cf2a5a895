#!/usr/bin/env bash
# mpirun_that_stays.sh JOBS: what jobs/mpirun.sh makes of an mpirun that ends by itself, is sent signals, or stays when its ranks have gone.
set -uo pipefail
jobs=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/bin"
cat > "$folder/bin/mpirun" << 'FAKE'
#!/usr/bin/env bash
[ "$1" != ends ] || { sleep 0.1; exit "$2"; }
if [ "$1" = signalled ]; then
  trap 'echo got USR1; exit 75' USR1
  : > "$2"
  while :; do sleep 0.05; done
fi
sleep 1.5 &  # its only rank
exec tail --follow /dev/null  # without a wait for it: what is left of the rank is a zombie
FAKE
chmod +x "$folder/bin/mpirun"
export PATH=$folder/bin:$PATH RONDO_MPIRUN_GRACE=1
expect() { [ "$2" = "$3" ] || { echo "$1: $2 instead of $3"; exit 1; }; }

"$jobs/mpirun.sh" ends 65 2> "$folder/err"; expect "its own end" $? 65
"$jobs/mpirun.sh" ends 0 | cat; expect "an end in a pipe" "${PIPESTATUS[0]}" 0
expect "what it says of an end" "$(cat "$folder/err")" ""

"$jobs/mpirun.sh" signalled "$folder/ready" > "$folder/out" &
job=$!
while [ ! -e "$folder/ready" ]; do sleep 0.02; done
kill -USR1 $job
wait $job; expect "a signal" $? 75
expect "what the signal reached" "$(cat "$folder/out")" "got USR1"

timeout 20 "$jobs/mpirun.sh" stays 2> "$folder/err"; expect "one that stays" $? 137
grep -q "no ranks for 1 s" "$folder/err" || { echo "it does not say so: $(cat "$folder/err")"; exit 1; }
