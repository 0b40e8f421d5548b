// The files of the run on the master's host, for workers whose hosts do not
// share them: serves what they read over a data plane of its own, and pulls
// from theirs what they wrote into the run folder. It listens only once a
// worker asks. Files and lines have a thread each, so that the lines of a step
// do not wait for a checkpoint. Parent: the session.
#pragma once

#include "actors/protocol/job_thread.hpp"
#include "actors/protocol/open_replies.hpp"
#include "net/data_plane/data_plane.hpp"

#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace troupe::actors {

struct FilesSetup {
  std::filesystem::path run_folder;
  std::vector<std::filesystem::path> read; ///< files and folders of the run
  bool must_be_shared = false;             ///< cluster.shared_files: true
  Incarnation incarnation;
  std::function<std::unique_ptr<net::DataPlane>()> listen;
};

/// Returns the files among `paths`, and those of a model directly in the
/// folders among them; paths that do not exist are left out.
std::vector<SharedFile>
list_files(const std::vector<std::filesystem::path>& paths);

class FileServer {
public:
  explicit FileServer(FilesSetup setup) : setup_(std::move(setup)) {}
  ~FileServer(); ///< calls stop()
  FileServer(const FileServer&) = delete;
  FileServer& operator=(const FileServer&) = delete;

  /// Serves the files from the first call on.
  OpenFilesDone open(const OpenFilesOrder& order);
  /// Pulls the bytes and writes them. Throws FailureError, as for a file
  /// outside the run folder.
  TakeFileDone take(const TakeFileOrder& order);
  /// Fails what is still being pulled.
  void stop();

private:
  void serve();
  net::DataPlane& data_plane();
  std::filesystem::path place_of(const std::string& file) const;
  template <class Write>
  void pull(const TakeFileOrder& order, Write write);

  FilesSetup setup_;
  std::mutex mutex_; ///< guards the next two until they are set
  OpenFilesDone served_;
  std::unique_ptr<net::DataPlane> data_plane_;
};

struct FilesState {
  FilesState() = default;
  ~FilesState(); ///< its threads wait for nobody

  std::string name = "files";
  Incarnation incarnation;
  OpenReplies open;
  std::shared_ptr<FileServer> server;
  std::shared_ptr<JobThread> files, lines;
};

FilesActor::behavior_type files_actor(Self<FilesActor, FilesState> self,
                                      FilesSetup setup);

} // namespace troupe::actors
