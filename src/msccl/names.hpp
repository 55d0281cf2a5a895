#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "rondo/msccl/program.hpp"

/// How the XML spells things, each once.
namespace rondo::msccl {

template <class Value, std::size_t N>
using Names = std::array<std::pair<Value, std::string_view>, N>;

inline constexpr Names<Buffer, 3> kBufferNames{
    {{Buffer::input, "i"}, {Buffer::output, "o"}, {Buffer::scratch, "s"}}};

inline constexpr Names<StepType, 9> kStepNames{{{StepType::send, "s"},
                                                {StepType::receive, "r"},
                                                {StepType::receive_copy_send, "rcs"},
                                                {StepType::receive_reduce_copy, "rrc"},
                                                {StepType::receive_reduce_send, "rrs"},
                                                {StepType::receive_reduce_copy_send, "rrcs"},
                                                {StepType::copy, "cpy"},
                                                {StepType::reduce, "re"},
                                                {StepType::nop, "nop"}}};

inline constexpr Names<Protocol, 3> kProtocolNames{
    {{Protocol::simple, "Simple"}, {Protocol::ll, "LL"}, {Protocol::ll128, "LL128"}}};

template <class Value, std::size_t N>
std::string_view name_of(Value value, const Names<Value, N>& names) {
  for (const auto& [known, name] : names) {
    if (known == value) return name;
  }
  return "?";
}

template <class Value, std::size_t N>
std::optional<Value> value_of(std::string_view name, const Names<Value, N>& names) {
  for (const auto& [value, known] : names) {
    if (known == name) return value;
  }
  return std::nullopt;
}

/// "i, o, s"
template <class Value, std::size_t N>
std::string list_of(const Names<Value, N>& names) {
  std::string list;
  for (const auto& [value, name] : names) {
    if (!list.empty()) list += ", ";
    list += name;
  }
  return list;
}

}  // namespace rondo::msccl
