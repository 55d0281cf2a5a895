# Source this. A throwaway Slurm of two virtual nodes and a third to lose, all of it below one folder and in namespaces of its
# own: nothing in the system's configuration, no port that anybody outside sees. Needs root, in a container as well.
#   enter_namespaces SCRIPT ARGUMENTS...   runs the script anew in a network and a mount namespace
#   start_cluster FOLDER                   until sinfo shows all nodes idle
#   stop_cluster                           ends all that was started
#   start_node N, stop_node N              N of $nodes; stop_node is a power cut: the daemon and all that runs there
nodes="n1 n2 n3"

# What is missing for start_cluster; nothing where it can run.
why_no_cluster() {
  local program
  for program in munged slurmctld slurmd srun sbatch squeue scontrol unshare ip mpirun; do
    command -v "$program" >/dev/null || [ -x "/usr/sbin/$program" ] || { echo "there is no $program"; return; }
  done
  [ "$(id -u)" -eq 0 ] || { echo "it needs root"; return; }
  unshare --net --mount true 2>/dev/null || echo "namespaces cannot be made here"
}

enter_namespaces() {
  RONDO_IN_NAMESPACES=1 exec unshare --net --mount --propagation private "$@"
}

start_cluster() {
  cluster=$1
  export SLURM_CONF=$cluster/slurm.conf PATH=$PATH:/usr/sbin:/sbin
  ip link set lo up
  # Without an address beside 127.0.0.1 the resolver does not find localhost.
  ip address add 10.255.0.1/32 dev lo
  export OMPI_MCA_btl_tcp_if_include=lo OMPI_MCA_oob_tcp_if_include=lo  # which Open MPI leaves out unasked
  mkdir -p "$cluster"/{munge,state}
  chmod 755 "$cluster"
  chmod 700 "$cluster/munge"
  head -c 1024 /dev/urandom > "$cluster/munge/key"
  chmod 400 "$cluster/munge/key"
  munged --force --key-file="$cluster/munge/key" --socket="$cluster/munge/socket" --pid-file="$cluster/munge/pid" \
    --log-file="$cluster/munge/log" --seed-file="$cluster/munge/seed" 2>/dev/null
  # cred_expire: a requeued job otherwise waits two minutes. TmpFS: the pmix plugins of two nodes in one folder collide.
  cat > "$SLURM_CONF" <<CONF
ClusterName=rondo
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort=26817
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$cluster/munge/socket,cred_expire=5
CredType=cred/munge
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
StateSaveLocation=$cluster/state
SlurmdSpoolDir=$cluster/spool-%n
TmpFS=$cluster/tmp-%n
SlurmctldPidFile=$cluster/slurmctld.pid
SlurmdPidFile=$cluster/slurmd-%n.pid
SlurmctldLogFile=$cluster/slurmctld.log
SlurmdLogFile=$cluster/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
JobAcctGatherType=jobacct_gather/linux
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/filetxt
JobCompLoc=$cluster/completed
MpiDefault=none
ReturnToService=2
SlurmdParameters=config_overrides
SchedulerParameters=batch_sched_delay=0,sched_interval=2,bf_interval=2,sched_min_interval=0
SlurmdTimeout=10
KillWait=5
JobRequeue=1
NodeName=n1 NodeAddr=127.0.0.1 NodeHostname=localhost Port=26821 CPUs=32 Weight=2
NodeName=n2 NodeAddr=127.0.0.1 NodeHostname=localhost Port=26822 CPUs=32 Weight=2
NodeName=n3 NodeAddr=127.0.0.1 NodeHostname=localhost Port=26823 CPUs=32 Weight=1
PartitionName=two Nodes=n1,n2 Default=YES MaxTime=INFINITE State=UP
PartitionName=all Nodes=n1,n2,n3 MaxTime=INFINITE State=UP
CONF
  slurmctld -c 2>> "$cluster/slurmctld.log"
  local node
  for node in $nodes; do start_node "$node"; done
  wait_for 60 "idle nodes" eval '[ "$(timeout 2 sinfo -h -N -p all -o %t | grep -c idle)" -eq "$(wc -w <<< "$nodes")" ]'
}

# Every node has a /dev/shm of its own: the segments of two nodes' MPI ranks would collide.
start_node() {
  rm -rf "$cluster/spool-$1"
  mkdir -p "$cluster/spool-$1" "$cluster/tmp-$1"
  unshare --mount --propagation private sh -c "mount -t tmpfs none /dev/shm && exec slurmd -N $1" \
    2>> "$cluster/slurmd-$1.log"
}

# All at once, so that none reports the end of another: what runs in the node's mount namespace.
stop_node() {
  local namespace process victims=()
  namespace=$(readlink "/proc/$(cat "$cluster/slurmd-$1.pid")/ns/mnt")
  for process in /proc/[0-9]*; do
    [ "$(readlink "$process/ns/mnt" 2>/dev/null)" != "$namespace" ] || victims+=("${process#/proc/}")
  done
  kill -KILL "${victims[@]}" 2>/dev/null || true
}

stop_cluster() {
  timeout 5 scancel --user root 2>/dev/null || true
  wait_for 10 "an empty queue" eval '[ -z "$(timeout 2 squeue -h)" ]' 2>/dev/null || true
  local file pid
  for file in "$cluster"/slurmd-*.pid "$cluster"/slurmctld.pid "$cluster"/munge/pid; do
    [ -r "$file" ] || continue
    pid=$(cat "$file")
    kill "$pid" 2>/dev/null || continue
    for _ in 1 2 3 4 5 6 7 8 9 10; do kill -0 "$pid" 2>/dev/null || break; sleep 0.1; done
    kill -KILL "$pid" 2>/dev/null || true
  done
}

# wait_for SECONDS WHAT COMMAND...: until the command succeeds.
wait_for() {
  local end=$((SECONDS + $1)) what=$2
  shift 2
  until "$@" >/dev/null 2>&1; do
    [ $SECONDS -lt $end ] || { echo "no $what in time" >&2; return 1; }
    sleep 0.1
  done
}
