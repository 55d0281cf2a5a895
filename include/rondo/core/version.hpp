#pragma once

namespace rondo {

/// "rondo 0.1.0": the `producer` of files.
const char* producer();
/// "0.1.0"
const char* version();

}  // namespace rondo
