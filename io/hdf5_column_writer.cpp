#include "hdf5_column_writer.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <mpi.h>

#include <cerrno>
#include <exception>
#include <functional>
#include <optional>
#include <string>

#include "file_descriptor.hpp"
#include "hdf5_handle.hpp"

namespace rondo {
namespace {

/// Collective. Runs `step` everywhere; where it fails on any rank, all throw the failure of the first of
/// them. The calls of HDF5 are collective, so nobody may go on to the next while another has given up.
void together(const Communicator& communicator, const std::filesystem::path& shown,
              const std::function<void()>& step) {
  std::string failure;
  try {
    step();
  } catch (const std::exception& exception) {
    failure = exception.what();
  }
  for (const Bytes& bytes : communicator.all_gather(to_bytes(failure))) {
    if (bytes.empty()) continue;
    throw Error(ExitCode::cannot_create,
                fmt::format("cannot write '{}': {}", shown.string(), to_text(bytes)));
  }
}

void check(bool succeeded, const std::string& what) {
  if (!succeeded) throw Error(ExitCode::cannot_create, "HDF5 cannot " + what);
}

/// A rank that does not see the file would leave the others waiting in a collective open.
void check_visible(const std::filesystem::path& path) {
  const FileDescriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!file.valid()) throw_system_error(ExitCode::cannot_create, "cannot open", path, errno);
}

/// Opens for writing; by all ranks of `mpi` together unless it is null.
Hdf5Handle open_file(const std::filesystem::path& path, const MPI_Comm* mpi) {
  const Hdf5Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  // No other process knows the file name, and some file systems have no locks.
  bool ready = H5Pset_file_locking(access.id(), false, true) >= 0;
  if (mpi != nullptr) ready = ready && H5Pset_fapl_mpio(access.id(), *mpi, MPI_INFO_NULL) >= 0;
  check(ready, "prepare the file");
  Hdf5Handle file(H5Fopen(path.c_str(), H5F_ACC_RDWR, access.id()), H5Fclose);
  check(file.valid(), "open the file");
  return file;
}

Hdf5Handle transfer_properties(const MPI_Comm* mpi) {
  Hdf5Handle transfer(H5Pcreate(H5P_DATASET_XFER), H5Pclose);
  check(mpi == nullptr || H5Pset_dxpl_mpio(transfer.id(), H5FD_MPIO_COLLECTIVE) >= 0, "prepare the writing");
  return transfer;
}

/// One dimension of `num_rows` of which `rows` are selected.
Hdf5Handle select_rows(std::size_t num_rows, RowRange rows) {
  const hsize_t extent = num_rows;
  Hdf5Handle space(H5Screate_simple(1, &extent, nullptr), H5Sclose);
  const hsize_t first = rows.first;
  const hsize_t count = rows.size();
  check((count > 0 ? H5Sselect_hyperslab(space.id(), H5S_SELECT_SET, &first, nullptr, &count, nullptr)
                   : H5Sselect_none(space.id())) >= 0,
        "select rows");
  return space;
}

struct OpenColumns {
  Hdf5Handle file;
  std::vector<Hdf5Handle> datasets = {};  // of the columns with rows
};

/// The parts of one collective write that a rank prepares on its own.
struct PreparedRows {
  std::vector<char> values;
  Hdf5Handle in_file;
  Hdf5Handle in_memory;
};

PreparedRows prepare(const RoundColumn& column, RowRange rows) {
  return {.values = column.pack(rows),
          .in_file = select_rows(column.num_rows, rows),
          .in_memory = select_rows(rows.size(), {.first = 0, .end = rows.size()})};
}

/// `ranks` speaks for all that take part; with an MPI_Comm behind it, or one rank alone.
void write_together(const std::vector<const RoundColumn*>& columns, const std::filesystem::path& path,
                    const std::filesystem::path& shown, const Communicator& ranks) {
  const Hdf5Silence silence;
  const MPI_Comm* mpi = ranks.size() > 1 ? static_cast<const MPI_Comm*>(ranks.mpi_communicator()) : nullptr;
  std::optional<OpenColumns> open;
  std::optional<Hdf5Handle> transfer;
  together(ranks, shown, [&] {
    check_visible(path);
    transfer.emplace(transfer_properties(mpi));
  });
  together(ranks, shown, [&] { open.emplace(OpenColumns{.file = open_file(path, mpi)}); });
  together(ranks, shown, [&] {
    for (const RoundColumn* column : columns) {
      open->datasets.emplace_back(H5Dopen2(open->file.id(), column->place().c_str(), H5P_DEFAULT), H5Dclose);
      check(open->datasets.back().valid(), "open " + column->place());
    }
  });
  for (std::size_t c = 0; c < columns.size(); ++c) {
    std::optional<PreparedRows> rows;
    together(ranks, shown, [&] {
      rows.emplace(prepare(*columns[c], rows_of_rank(columns[c]->num_rows, ranks.rank(), ranks.size())));
    });
    together(ranks, shown, [&] {
      check(H5Dwrite(open->datasets[c].id(), columns[c]->type, rows->in_memory.id(), rows->in_file.id(),
                     transfer->id(), rows->values.data()) >= 0,
            "write " + columns[c]->place());
    });
  }
  // Each rank's own rows reach the disk here: an fsync by the root alone need not cover other nodes' caches.
  together(ranks, shown, [&] { check(H5Fflush(open->file.id(), H5F_SCOPE_GLOBAL) >= 0, "flush the file"); });
  open.reset();
}

}  // namespace

void write_columns(const std::vector<RoundColumn>& columns, const std::filesystem::path& path,
                   const std::filesystem::path& shown, const Communicator& communicator) {
  std::vector<const RoundColumn*> with_rows;
  for (const RoundColumn& column : columns) {
    if (column.num_rows > 0) with_rows.push_back(&column);
  }
  if (communicator.size() == 1 || communicator.mpi_communicator() != nullptr) {
    write_together(with_rows, path, shown, communicator);
    return;
  }
  on_root(communicator, [&] {  // ranks that HDF5 cannot speak to
    write_together(with_rows, path, shown, *make_local_communicator());
    return Bytes{};
  });
}

}  // namespace rondo
