#include "ragged_columns.hpp"

#include <utility>

namespace rondo {

Json list_to_json(std::span<const std::int64_t> list) {
  return std::vector<std::int64_t>(list.begin(), list.end());
}

Json lists_to_json(const RaggedColumn& column) {
  Json lists = Json::array();
  for (std::size_t i = 0; i + 1 < column.index.size(); ++i) lists.push_back(list_to_json(column.row(i)));
  return lists;
}

RaggedColumn read_lists(const JsonObject& object, const char* key) {
  RaggedColumn column{.index = {0}};
  const Json& lists = object.array(key);
  for (std::size_t i = 0; i < lists.size(); ++i)
    column.add_row(integers_of(lists[i], element_place(object.place_of(key), i)));
  return column;
}

void write_ragged(const Hdf5GroupWriter& group, const std::string& name, const RaggedColumn& column) {
  group.put_array(name + "_index", column.index, H5T_STD_I64LE);
  group.put_array(name + "_value", column.value, H5T_STD_I32LE);
}

RaggedColumn read_ragged(const Hdf5GroupReader& group, const std::string& name) {
  return {.index = group.integers((name + "_index").c_str()),
          .value = group.integers((name + "_value").c_str())};
}

}  // namespace rondo
