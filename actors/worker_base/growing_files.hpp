// Hands the logs and traces of a worker to the master as they grow, where the
// host does not share the run folder: every second, and once more at the end. A
// file that is removed here, as the oldest of a full trace, is removed there.
#pragma once

#include "actors/worker_base/file_exchange.hpp"

#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <string>
#include <thread>

namespace troupe::actors {

class GrowingFiles {
public:
  /// Begins with logs/ and trace/ in `folder`. The exchange must outlive it.
  GrowingFiles(std::filesystem::path folder, FileExchange& exchange);
  ~GrowingFiles(); ///< calls finish()
  GrowingFiles(const GrowingFiles&) = delete;
  GrowingFiles& operator=(const GrowingFiles&) = delete;

  /// Hands over what is left, unless the run was aborted.
  void finish();
  void abort();

private:
  void hand_over();
  void hand_over(const std::filesystem::path& file, const std::string& name);
  void run();
  void end(bool aborted);

  std::filesystem::path folder_;
  FileExchange& exchange_;
  std::map<std::string, std::uint64_t> given_; ///< bytes, by file
  std::mutex mutex_;                           ///< guards the next two
  bool ended_ = false, aborted_ = false;
  std::condition_variable ends_;
  std::thread thread_;
};

} // namespace troupe::actors
