#include <gtest/gtest.h>

#include <iostream>
#include <memory>
#include <string>

#include "only_files.hpp"
#include "rondo/parallel/communicator.hpp"

#ifdef __SANITIZE_ADDRESS__
/// Keeps Open MPI's plug-ins loaded, so that the leak sanitizer can name the libraries in its suppressions.
extern "C" int dlclose(void*) noexcept {
  return 0;
}
#endif

namespace {

/// For ranks other than 0: silent but for failures, which name the rank.
class FailurePrinter : public testing::EmptyTestEventListener {
 public:
  explicit FailurePrinter(int rank) : rank_(rank) {}

  // Kept here, because GoogleTest holds a lock while it reports a failure and cannot be asked.
  void OnTestStart(const testing::TestInfo& test) override {
    test_ = std::string(test.test_suite_name()) + "." + test.name();
  }

  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (!result.failed()) return;
    std::cerr << "rank " << rank_ << ": " << test_ << " failed at "
              << (result.file_name() ? result.file_name() : "an unknown file") << ":" << result.line_number()
              << "\n"
              << result.message() << std::endl;
  }

 private:
  int rank_;
  std::string test_;
};

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (!rondo::keep_only_files(argc, argv)) return 64;
  if (GTEST_FLAG_GET(list_tests)) return RUN_ALL_TESTS();  // needs no MPI, and build systems call it without

  const rondo::MpiSession session(&argc, &argv);
  // A communicator of its own, so that the count below cannot meet a message that a failed test left behind.
  const std::unique_ptr<rondo::Communicator> world = rondo::make_world_communicator();
  if (!world->is_root()) {
    testing::TestEventListeners& listeners = testing::UnitTest::GetInstance()->listeners();
    delete listeners.Release(listeners.default_result_printer());
    listeners.Append(new FailurePrinter(world->rank()));
    GTEST_FLAG_SET(output, "");
  }

  const bool failed_here = RUN_ALL_TESTS() != 0;
  const double failed_ranks = world->sum(failed_here ? 1 : 0);
  if (world->is_root() && failed_ranks > 0) {
    std::cerr << "tests failed on " << failed_ranks << " of " << world->size() << " ranks" << std::endl;
  }
  return failed_ranks > 0 ? 1 : 0;
}
