#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "rondo/core/round.hpp"
#include "rondo/parallel/communicator.hpp"

/// The round files of a run (FORMATS.md 4): FOLDER/rounds/round-00000.h5 and so on, FOLDER being the run's.
namespace rondo {

/// FOLDER/rounds/round-NNNNN.h5.
std::filesystem::path round_file_path(const std::filesystem::path& folder, std::int64_t round);

/// Whether there are round files, whole or not.
bool has_rounds(const std::filesystem::path& folder);

/// Collective: every rank passes the same record. Writes the file whole or not at all, in place of an earlier
/// one of that round; the bytes do not depend on the number of ranks nor on who wrote them. A file whose rows
/// have `together_from` bytes or more is written by all ranks together, a smaller one by the root: to open a
/// file together takes longer than to write it then. The root needs memory for twice the file meanwhile.
/// FOLDER/rounds is made where it is missing, FOLDER is not. When it returns, the file is on the disk and has
/// been read back. Throws the same Error on every rank and leaves nothing behind then: Error(cannot_create),
/// with the system's reason, for a full disk or a folder that is read-only or absent; Error(internal) for a
/// record that read_round_file would refuse.
void write_round_file(const std::filesystem::path& folder, const RoundRecord& record,
                      const std::string& problem_digest, const Communicator& communicator,
                      std::uint64_t together_from = std::uint64_t{1} << 22);

/// One file, verified before HDF5 sees it. Not collective. Throws Error(no_input), Error(bad_data) with file
/// and place, Error(io).
RoundRecord read_round_file(const std::filesystem::path& path);

/// The rounds from which a run can resume.
struct RoundPrefix {
  std::vector<RoundRecord> rounds = {};  ///< 0, 1, ...
  /// Why there are no more: "" when there is no further file, else the defect of the next one.
  std::string stopped_by = {};
};

/// The longest prefix of whole round files that belong to the problem and follow one another: in number, and
/// each begins when the one before ended. A damaged or missing file, or one of another problem, ends it; what
/// stands behind that is of no use and has to be removed before a round is written. Not collective. Throws
/// Error(io) for files that cannot be read at all.
RoundPrefix read_round_files(const std::filesystem::path& folder, const std::string& problem_digest);

/// Removes the round files from number `first` on, the lowest first, so that what an interrupted call leaves
/// is no prefix; and the temporary files of killed runs. Not collective: for the root of a run that has
/// locked the folder. Throws Error(cannot_create).
void remove_round_files(const std::filesystem::path& folder, std::int64_t first);

}  // namespace rondo
