#pragma once

#include <span>
#include <string>

#include "chunk_columns.hpp"
#include "hdf5_reader.hpp"
#include "hdf5_writer.hpp"
#include "rondo/io/json_object.hpp"

namespace rondo {

/// Lists of numbers: an array of arrays in JSON, offsets and values in HDF5.
Json list_to_json(std::span<const std::int64_t> list);
Json lists_to_json(const RaggedColumn& column);
RaggedColumn read_lists(const JsonObject& object, const char* key);
/// NAME_index and NAME_value.
void write_ragged(const Hdf5GroupWriter& group, const std::string& name, const RaggedColumn& column);
RaggedColumn read_ragged(const Hdf5GroupReader& group, const std::string& name);

}  // namespace rondo
