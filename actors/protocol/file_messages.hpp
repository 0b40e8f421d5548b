// Messages between the master and workers whose hosts do not share its files:
// which files there are, and which the master is to take. Their bytes travel
// over the data plane, which each side pulls from (net/data_plane).
#pragma once

#include "actors/protocol/export_numbers.hpp"
#include "actors/protocol/message_parts.hpp"

#include <map>

namespace troupe::actors {

/// A file that the run reads, as it is on the master's host.
struct SharedFile {
  std::string path; ///< as settings and orders name it
  std::uint64_t bytes = 0;
  std::int64_t changed_ns = 0; ///< time of its last change
};
TROUPE_INSPECT(SharedFile, x.path, x.bytes, x.changed_ns)

/// Request of a worker that does not share the master's files: it reads some,
/// and the master will take others from it.
struct OpenFilesOrder {
  WorkerId worker;
  std::string host; ///< address of its data port
  std::uint16_t data_port = 0;
};
TROUPE_INSPECT(OpenFilesOrder, x.worker, x.host, x.data_port)

/// The files that the master serves: number i is exported as
/// `shared_file_id(i)`.
struct OpenFilesDone {
  std::uint16_t data_port = 0; ///< of the master
  std::vector<SharedFile> files;
};
TROUPE_INSPECT(OpenFilesDone, x.data_port, x.files)

/// Number of the master among the peers of a data plane.
inline constexpr WorkerId master_peer{0xFFFF'FFFE};

/// Returns the number under which a process exports its `number`th file or
/// piece of one.
constexpr std::uint64_t shared_file_id(std::uint64_t number) {
  return file_export | number;
}

/// Ways in which the master puts the bytes of a TakeFileOrder into a file.
enum class TakeFile : std::uint8_t { whole, append, remove };

/// Makes the master pull bytes from a worker into a file of the run folder.
struct TakeFileOrder {
  WorkerId worker;
  std::string file; ///< within the run folder
  TakeFile how = TakeFile::whole;
  std::uint64_t bytes = 0;
  std::uint64_t number = 0; ///< they are exported as shared_file_id(number)
};
TROUPE_INSPECT(TakeFileOrder, x.worker, x.file, x.how, x.bytes, x.number)

struct TakeFileDone {
  std::uint64_t bytes = 0;
};
TROUPE_INSPECT(TakeFileDone, x.bytes)

/// The master's files, for workers whose hosts do not share them.
using FilesActor = caf::typed_actor<
  caf::replies_to<open_atom, Context, OpenFilesOrder>::with<OpenFilesDone>,
  caf::replies_to<take_atom, Context, TakeFileOrder>::with<TakeFileDone>,
  caf::reacts_to<done_atom, std::uint64_t>>;

/// How a worker finds out whether its host shares the master's files, and
/// gets the few texts that it needs before it can ask for others.
struct FileShare {
  std::string mode = "true"; ///< cluster.shared_files
  std::string probe;         ///< exists where the run folder is shared
  std::string folder;        ///< the run folder, as orders name it
  std::map<std::string, std::string> texts; ///< contents of files, by path
  std::string workflow;                     ///< the file among them; or empty
  FilesActor master;
};
TROUPE_INSPECT(FileShare, x.mode, x.probe, x.folder, x.texts, x.workflow,
               x.master)

} // namespace troupe::actors
