#pragma once

// The benchmarks of this program. Each takes the arguments that run.sh describes, argv[0] its name, and
// returns an exit code. Each has a namespace of its own, since files are compiled together.
namespace rondo::benchmarks {

// clang-format off
namespace allgather   { int benchmark(int argc, char** argv); }
namespace combining   { int benchmark(int argc, char** argv); }
namespace demands     { int benchmark(int argc, char** argv); }
namespace durability  { int benchmark(int argc, char** argv); }
namespace execution   { int benchmark(int argc, char** argv); }
namespace fabrics     { int benchmark(int argc, char** argv); }
namespace improvement { int benchmark(int argc, char** argv); }
namespace in_time     { int benchmark(int argc, char** argv); }
namespace limits      { int benchmark(int argc, char** argv); }
namespace linear      { int benchmark(int argc, char** argv); }
namespace links       { int benchmark(int argc, char** argv); }
namespace memory      { int benchmark(int argc, char** argv); }
namespace rounds      { int benchmark(int argc, char** argv); }
namespace scaling     { int benchmark(int argc, char** argv); }
namespace sccl        { int benchmark(int argc, char** argv); }
namespace sizes       { int benchmark(int argc, char** argv); }
namespace table8      { int benchmark(int argc, char** argv); }
namespace taccl       { int benchmark(int argc, char** argv); }
namespace tuning      { int benchmark(int argc, char** argv); }
// clang-format on

}  // namespace rondo::benchmarks
