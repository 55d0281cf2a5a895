#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <initializer_list>
#include <random>
#include <string>

#include "expect_error.hpp"
#include "rondo/io/user_block.hpp"
#include "temporary_folder.hpp"

namespace rondo {

/// Flips bits of the file, cuts it short and doubles it; every time `read` has to refuse it by name.
inline void expect_damage_refused(const std::filesystem::path& path, const std::function<void()>& read) {
  const std::string whole = content_of(path);
  const auto expect_refused = [&](const std::string& damaged) {
    set_content(path, damaged);
    expect_error(ExitCode::bad_data, {path.filename().string()}, read);
  };
  std::mt19937_64 random(1);
  std::vector<std::size_t> places = {0, 100, 511, 512, 520, whole.size() / 2, whole.size() - 1};
  for (int i = 0; i < 200; ++i) places.push_back(random() % whole.size());
  for (const std::size_t place : places) {
    std::string damaged = whole;
    damaged[place] = static_cast<char>(damaged[place] ^ (1 << (place % 8)));
    SCOPED_TRACE(place);
    expect_refused(damaged);
  }
  for (const std::size_t length : {std::size_t{0}, std::size_t{1}, std::size_t{511}, std::size_t{512},
                                   std::size_t{513}, whole.size() / 2, whole.size() - 1}) {
    SCOPED_TRACE(length);
    expect_refused(whole.substr(0, length));
  }
  expect_refused(whole + whole);
}

/// Replaces the first `from` in the file by `to`, of the same length, behind a right checksum: `read` has to
/// refuse what it says, with every one of `fragments`. Leaves the file as it was.
inline void expect_content_refused(const std::filesystem::path& path, const std::function<void()>& read,
                                   const std::string& from, const std::string& to,
                                   std::initializer_list<std::string> fragments) {
  const std::string whole = content_of(path);
  const UserBlock sealed = verify_user_block(path);
  std::string changed = whole;
  const std::size_t at = changed.find(from);
  ASSERT_NE(at, std::string::npos) << from;
  changed.replace(at, from.size(), to);
  set_content(path, changed);
  seal_user_block(path, sealed.problem_digest, sealed.round);
  expect_error(ExitCode::bad_data, fragments, read);
  set_content(path, whole);
}

}  // namespace rondo
