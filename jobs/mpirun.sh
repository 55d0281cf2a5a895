#!/usr/bin/env bash
# jobs/mpirun.sh ARGUMENTS...: mpirun, which ends when its ranks have ended. Debian 12's (Open MPI 4.1.4 on PMIx 4.2.2) can stay for
# good: a rank that is killed while it joins (in MPI_Init, before anything has begun) leaves a lock behind that mpirun waits for in
# PMIx_server_finalize, all its ranks gone. A batch job would last until its time limit.
#   RONDO_MPIRUN_GRACE  seconds that mpirun may stay after its last rank (default 10); then it is killed, exit code 137
set -u
grace=${RONDO_MPIRUN_GRACE:-10}

mpirun "$@" <&0 &
job=$!
has_ranks() { ps -o stat= --ppid "$job" | grep -qv '^Z'; }
watch() {
  local begun=no alone=0
  while sleep 1 2> /dev/null; do
    if has_ranks; then begun=yes alone=0; else alone=$((alone + 1)); fi
    if [ $begun = yes ] && [ $alone -ge "$grace" ]; then
      echo "mpirun.sh: mpirun has had no ranks for $grace s and does not end: it is killed" >&2
      kill -KILL "$job"
      return
    fi
  done
}
watch > /dev/null &  # its `sleep` would keep a pipe open
watcher=$!

# A trap also ends `wait`.
for name in USR1 TERM INT HUP; do trap "signalled=yes; kill -$name $job 2> /dev/null" $name; done
signalled=yes
while [ $signalled = yes ]; do
  signalled=no
  wait $job
  code=$?
done
kill $watcher 2> /dev/null
exit $code
