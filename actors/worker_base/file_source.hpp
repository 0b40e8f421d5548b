// The files of the master's host as a worker sees them. Where hosts share them,
// every path is what it was. Elsewhere a file that is read is fetched once per
// host into a folder in TMPDIR, and one that is written in the run folder is
// written in that folder and handed to the master; logs and traces follow as
// they grow. One place decides, so nothing else of a worker knows which case it
// is. Thread-safe; everything but the constructor may wait for the network.
#pragma once

#include "actors/worker_base/file_exchange.hpp"
#include "actors/worker_base/growing_files.hpp"
#include "actors/worker_base/host_folder.hpp"
#include "models/records/rollout_record.hpp"

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace troupe::actors {

/// Files that are read of a model's folder.
enum class ModelFiles : std::uint8_t { all, all_but_weights };

/// Returns the numbers of the files that reading `path` needs: its own, or for
/// a folder those directly in it.
std::vector<std::size_t> files_needed(const std::vector<SharedFile>& files,
                                      const std::filesystem::path& path,
                                      ModelFiles wanted);

/// Returns `path` relative to `folder`; nothing if it is not within it.
std::optional<std::filesystem::path>
path_within(const std::filesystem::path& folder,
            const std::filesystem::path& path);

class FileSource {
public:
  /// Everything is in place.
  FileSource() = default;
  /// Looks for the probe; where it is missing, makes the folder on this host.
  /// `run_folder` is that of the master, absolute. Throws FailureError (io).
  FileSource(FileShare share, const std::filesystem::path& run_folder,
             const std::string& run_id, WorkerId worker);
  FileSource(const FileSource&) = delete;
  FileSource& operator=(const FileSource&) = delete;

  bool is_shared() const {
    return !host_;
  }
  /// Returns where this worker writes the files of the run folder.
  const std::filesystem::path& run_folder() const {
    return run_folder_;
  }
  const FilesActor& master() const {
    return share_.master;
  }
  /// Connects with the master and begins to hand logs and traces over.
  void connect(std::unique_ptr<FileExchange> exchange);

  /// Returns the path on this host of a file or folder that the run reads.
  /// Throws FailureError (io), as when TMPDIR has no room for it.
  std::filesystem::path local(const std::filesystem::path& path,
                              ModelFiles wanted = ModelFiles::all);
  /// Returns where to write a file or folder of the run folder.
  std::filesystem::path to_write(const std::filesystem::path& path) const;
  /// Hands a file over that was written there; returns its path on the
  /// master's host.
  std::filesystem::path give(const std::filesystem::path& written);
  /// Appends to a file of the run folder, which is created if it is missing.
  void append(const std::filesystem::path& path, const std::string& text);

  /// Hands the rest of logs and traces over and leaves the folder of the host.
  void close();
  /// Leaves the folder of the host, in a process that is about to exit.
  void leave();
  /// Ends waits for other processes of this host.
  void abort();
  /// Returns a counter that grows while a file arrives.
  std::uint64_t progress() const {
    return progress_;
  }

private:
  FileExchange& exchange();
  const std::vector<SharedFile>& listed();
  std::filesystem::path master_path(const std::filesystem::path& path) const;
  std::filesystem::path place_of_copy(const std::filesystem::path& path) const;
  bool is_in_place(const SharedFile& file) const;
  void fetch(std::size_t number, const SharedFile& file);
  void wait_for(HostFileLock& lock);
  void receive(std::size_t number, const SharedFile& file,
               const std::filesystem::path& target);

  /// Ends waits for other processes.
  struct Abort {
    std::mutex mutex; ///< guards the next
    bool came = false;
    std::condition_variable comes;
  };

  FileShare share_;
  std::filesystem::path run_folder_;
  std::unique_ptr<HostFolder> host_; ///< null: files are shared
  std::unique_ptr<FileExchange> exchange_;
  std::mutex reading_; ///< one fetch at a time; guards the next
  std::optional<std::vector<SharedFile>> files_;
  std::mutex appending_; ///< guards the next
  std::map<std::filesystem::path, models::AppendFile> appended_;
  std::atomic<std::uint64_t> progress_ = 0;
  Abort abort_;
  std::unique_ptr<GrowingFiles> growing_; ///< uses the exchange
};

} // namespace troupe::actors
