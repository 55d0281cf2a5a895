#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>
#include <vector>

#include "rondo/core/error.hpp"
#include "rondo/io/json_files.hpp"

namespace rondo {
namespace {

constexpr std::size_t kMostNested = 32;          // the formats need 5
constexpr std::size_t kMaxKeysOfObject = 1'000;  // objects are searched linearly
constexpr std::size_t kMaxReasonBytes = 200;

/// "line 3, column 14" of the `position`-th byte, counted from 1.
std::string line_and_column(std::string_view text, std::size_t position) {
  const std::string_view before = text.substr(0, position == 0 ? 0 : position - 1);
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const std::size_t line_start = before.rfind('\n') + 1;  // npos + 1 == 0: the first line
  return fmt::format("line {}, column {}", line, before.size() - line_start + 1);
}

/// The word (number, literal) that the `position`-th byte belongs to; "" where it belongs to none.
std::string word_at(std::string_view text, std::size_t position) {
  const auto in_word = [&](std::size_t i) {
    return i < text.size() && (std::isalnum(static_cast<unsigned char>(text[i])) ||
                               std::string_view("+-._").find(text[i]) != std::string_view::npos);
  };
  std::size_t first = position == 0 ? 0 : position - 1;
  if (!in_word(first)) return "";
  std::size_t last = first;
  while (first > 0 && in_word(first - 1)) --first;
  while (in_word(last)) ++last;
  return std::string(text.substr(first, std::min(last - first, kMaxReasonBytes)));
}

/// Builds the document. The library's own builder keeps the last of repeated keys and knows no limits.
class DocumentBuilder final : public nlohmann::json_sax<Json> {
 public:
  DocumentBuilder(const std::string& text, const std::string& what) : text_(text), what_(what) {}

  Json take() { return std::move(document_); }

  bool null() override { return put(nullptr); }
  bool boolean(bool value) override { return put(value); }
  bool number_integer(std::int64_t value) override { return put(value); }
  bool number_unsigned(std::uint64_t value) override { return put(value); }
  bool number_float(double value, const std::string&) override { return put(value); }
  bool string(std::string& value) override { return put(std::move(value)); }
  bool binary(Json::binary_t&) override { return false; }  // JSON text has none

  bool start_object(std::size_t) override { return open(Json::object()); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(std::string& name) override {
    const Json& object = *open_.back().node;
    if (object.contains(name)) refuse(fmt::format("key '{}' stands twice in {}", name, place()));
    if (object.size() >= kMaxKeysOfObject) {
      refuse(fmt::format("{} has more than {} keys", place(), kMaxKeysOfObject));
    }
    open_.back().key = std::move(name);
    return true;
  }

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception& error) override {
    const std::string where = line_and_column(text_, position);
    const std::string word = word_at(text_, position);
    constexpr int kNumberOverflow = 406;
    if (error.id == kNumberOverflow) {
      refuse(fmt::format("{}: {} is beyond the greatest number a double holds", where, word));
    }
    // The library's message repeats the position in front.
    std::string_view reason = error.what();
    reason.remove_prefix(std::min(reason.size(), reason.find(": ") + 2));
    if (position > text_.size()) {
      refuse(fmt::format("{}: the JSON text ends too early; is the file truncated?", where));
    }
    refuse(fmt::format("{}: invalid JSON{}: {}", where, word.empty() ? "" : " at '" + word + "'",
                       reason.substr(0, kMaxReasonBytes)));
  }

 private:
  struct Open {
    Json* node;
    std::string key;  // of the next member, in an object
  };

  Json* place_value(Json value) {
    if (open_.empty()) return &(document_ = std::move(value));
    Json& parent = *open_.back().node;
    if (parent.is_object()) return &(parent[open_.back().key] = std::move(value));
    parent.push_back(std::move(value));
    return &parent.back();
  }

  bool put(Json value) {
    place_value(std::move(value));
    return true;
  }

  bool open(Json empty) {
    if (open_.size() >= kMostNested)
      refuse(fmt::format("nested deeper than {} levels in {}", kMostNested, place()));
    open_.push_back({place_value(std::move(empty)), ""});
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  /// Where the innermost open value is: "links[3]".
  std::string place() const {
    std::string result;
    for (std::size_t i = 0; i + 1 < open_.size(); ++i) {
      const Open& parent = open_[i];
      if (parent.node->is_array()) {
        result += fmt::format("[{}]", parent.node->size() - 1);
      } else {
        result += (result.empty() ? "" : ".") + parent.key;
      }
    }
    return result.empty() ? "the top level" : result;
  }

  [[noreturn]] void refuse(const std::string& message) const {
    throw Error(ExitCode::bad_data, fmt::format("{}: {}", what_, message));
  }

  const std::string& text_;
  const std::string& what_;
  Json document_;
  std::vector<Open> open_;
};

bool is_leaf(const Json& value) {
  return std::none_of(value.begin(), value.end(), [](const Json& member) { return member.is_structured(); });
}

void append_json(const Json& value, std::size_t indent, std::string& out) {
  if (!value.is_structured() || is_leaf(value)) {
    out += value.dump(-1, ' ', false, Json::error_handler_t::replace);
    return;
  }
  out += value.is_object() ? "{\n" : "[\n";
  bool first = true;
  for (const auto& [key, member] : value.items()) {
    if (!first) out += ",\n";
    first = false;
    out.append(indent + 1, ' ');
    if (value.is_object()) out += Json(key).dump(-1, ' ', false, Json::error_handler_t::replace) + ": ";
    append_json(member, indent + 1, out);
  }
  out += '\n';
  out.append(indent, ' ');
  out += value.is_object() ? '}' : ']';
}

}  // namespace

Json parse_json(const std::string& text, const std::string& what) {
  DocumentBuilder builder(text, what);
  Json::sax_parse(text, &builder);
  return builder.take();
}

std::string format_json(const Json& json) {
  std::string text;
  append_json(json, 0, text);
  text += '\n';
  return text;
}

std::string format_number(double value) {
  return fmt::format("{}", value);
}

}  // namespace rondo
