// A connection to the keeper of this host, which it starts where there is none.
// As long as a client is connected, the keeper stays. Thread-safe.
#pragma once

#include "net/base/descriptor.hpp"

#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace troupe::net {

class KeeperClient {
public:
  /// `program` starts the keeper `name`: it writes a byte to its output once it
  /// listens (run_keeper). Connects at the first use.
  KeeperClient(std::string name, std::vector<std::string> program)
    : name_(std::move(name)),
      program_(std::move(program)) {}

  /// Returns the memory file of that name, empty if it is new, as it is if the
  /// keeper has ended meanwhile. Throws FailureError: io if no keeper can be
  /// started, peer_lost if it gives no file.
  Descriptor open(const std::string& file);
  /// Connects, ahead of the first use; what is wrong shows there.
  void start_if_none() noexcept;
  /// Returns whether this user has a keeper of this name on this host; connects
  /// to it.
  bool find();
  /// Ends the keeper, if there is one: its memory is freed.
  void end();

private:
  bool connect();
  bool connect_or_start();
  void start();
  std::optional<Descriptor> request(const std::string& file);

  std::string name_;
  std::vector<std::string> program_;
  std::mutex mutex_;
  Descriptor socket_;
};

} // namespace troupe::net
