// A worker's way to the files of the master, where its host does not share
// them: requests go as messages of an actor of its own, so that they end when
// the run fails (I7), bytes over the data plane. Its calls wait on the threads
// that need the files.
#pragma once

#include "actors/protocol/ask.hpp"
#include "actors/worker_base/file_source.hpp"
#include "net/data_plane/data_plane.hpp"

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

namespace troupe::actors {

/// Sends the requests of other threads.
using FileAsker = caf::typed_actor<caf::reacts_to<take_atom>, ask_failed>;

struct FileAskerState {
  std::string name = "files";
  Asks asks;
};
using FileAskerSelf = Self<FileAsker, FileAskerState>;

/// Requests that the actor has not sent yet. Thread-safe.
class FileRequests {
public:
  using Request = std::function<void(FileAskerSelf)>;
  void put(Request request);
  Request take();

private:
  std::mutex mutex_;
  std::deque<Request> waiting_;
};

struct MasterFilesSetup {
  FilesActor master;
  std::string master_host;
  OpenFilesOrder self;
  Incarnation incarnation;
  std::shared_ptr<AskTable> asks;
};

class MasterFiles final : public FileExchange {
public:
  /// Both must outlive it.
  MasterFiles(caf::actor_system& system, net::DataPlane& data_plane,
              MasterFilesSetup setup);
  ~MasterFiles() override;

  std::vector<SharedFile> open() override;
  void read(std::uint64_t number, std::uint64_t offset,
            std::span<std::byte> into) override;
  void give(TakeFileOrder order, std::span<const std::byte> bytes) override;

private:
  OpenFilesDone opened();
  template <class Done, class Atom, class Order>
  Done ask_master(Atom atom, Order order, std::string name);

  net::DataPlane& data_plane_;
  MasterFilesSetup setup_;
  std::shared_ptr<FileRequests> requests_ = std::make_shared<FileRequests>();
  FileAsker asker_;
  std::once_flag opened_;
  OpenFilesDone found_; ///< set once
  std::atomic<std::uint64_t> next_number_ = 0;
};

} // namespace troupe::actors
