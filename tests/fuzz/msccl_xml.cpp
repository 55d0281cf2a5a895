#include "accept_or_refuse.hpp"
#include "rondo/msccl/xml.hpp"
#include "rondo/xmlcheck/check.hpp"

/// MSCCL XML of any producer, which has to come back from its own text, and all checks of the program.
RONDO_FUZZ_TARGET(msccl_xml)(const std::uint8_t* data, std::size_t size) {
  using namespace rondo;
  fuzz::accept_or_refuse([&] {
    const msccl::Program program = msccl::parse_xml(fuzz::to_string(data, size));
    if (msccl::parse_xml(msccl::write_xml(program)) != program) std::abort();
    xmlcheck::CheckOptions options;
    xmlcheck::check(program, options);
    options.executor = &msccl::executors().front();
    xmlcheck::check(program, options);
  });
  return 0;
}
