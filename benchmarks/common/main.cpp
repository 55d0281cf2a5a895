// benchmarks/run.sh says which benchmarks there are and what they take.

#include <cstdio>
#include <map>
#include <string>

#include "benchmarks.hpp"

int main(int argc, char** argv) {
  using namespace rondo::benchmarks;
  const std::map<std::string, int (*)(int, char**)> benchmarks = {{"allgather", allgather::benchmark},
                                                                  {"combining", combining::benchmark},
                                                                  {"demands", demands::benchmark},
                                                                  {"durability", durability::benchmark},
                                                                  {"execution", execution::benchmark},
                                                                  {"fabrics", fabrics::benchmark},
                                                                  {"improvement", improvement::benchmark},
                                                                  {"in_time", in_time::benchmark},
                                                                  {"limits", limits::benchmark},
                                                                  {"linear", linear::benchmark},
                                                                  {"links", links::benchmark},
                                                                  {"memory", memory::benchmark},
                                                                  {"rounds", rounds::benchmark},
                                                                  {"scaling", scaling::benchmark},
                                                                  {"sccl", sccl::benchmark},
                                                                  {"sizes", sizes::benchmark},
                                                                  {"table8", table8::benchmark},
                                                                  {"taccl", taccl::benchmark},
                                                                  {"tuning", tuning::benchmark}};
  const auto found = benchmarks.find(argc > 1 ? argv[1] : "");
  if (found == benchmarks.end()) {
    std::fprintf(stderr, "no benchmark of this program is called '%s': it has", argc > 1 ? argv[1] : "");
    for (const auto& [name, run] : benchmarks) std::fprintf(stderr, " %s", name.c_str());
    std::fprintf(stderr, "\n");
    return 64;
  }
  return found->second(argc - 1, argv + 1);
}
