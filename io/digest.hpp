#pragma once

#include <memory>
#include <string>
#include <string_view>

struct XXH3_state_s;

namespace rondo {

/// digest_of() all that was added, without keeping it.
class Digest {
 public:
  Digest();

  void add(const void* data, std::size_t size);
  void add(std::string_view text) { add(text.data(), text.size()); }
  std::string text() const;

 private:
  struct Free {
    void operator()(XXH3_state_s* state) const;
  };
  std::unique_ptr<XXH3_state_s, Free> state_;
};

}  // namespace rondo
