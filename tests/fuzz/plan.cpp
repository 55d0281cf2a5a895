#include "accept_or_refuse.hpp"
#include "rondo/mscclpp/check.hpp"
#include "rondo/mscclpp/plan_files.hpp"

/// Execution plans of MSCCL++, of any producer: what is read comes back from its own text, and all checks of
/// it.
RONDO_FUZZ_TARGET(plan)(const std::uint8_t* data, std::size_t size) {
  using namespace rondo;
  fuzz::accept_or_refuse([&] {
    const mscclpp::Plan plan = mscclpp::plan_from_json(parse_json(fuzz::to_string(data, size), "input"));
    const std::string text = mscclpp::plan_to_json(plan).dump();
    if (mscclpp::plan_to_json(mscclpp::plan_from_json(parse_json(text, "output"))).dump() != text)
      std::abort();
    for (const bool with_caps : {true, false})
      fuzz::accept_or_refuse([&] { mscclpp::check(plan, with_caps); });
  });
  return 0;
}
