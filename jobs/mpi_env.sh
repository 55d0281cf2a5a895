# Source this. What Open MPI needs to run as root (containers) and with more ranks than cores; one thread a rank.
# pml ob1 (shared memory, TCP): the search for faster networks takes 0.2 s at every start.
export OMPI_ALLOW_RUN_AS_ROOT=1
export OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_hwloc_base_binding_policy=none
export OMPI_MCA_mpi_yield_when_idle=1
export OMPI_MCA_pml=${OMPI_MCA_pml:-ob1}
export OMP_NUM_THREADS=1
export OPENBLAS_NUM_THREADS=1
