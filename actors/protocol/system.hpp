// The CAF configuration of every process of a run: message types, scheduler
// policy (`sharing`: no polling, even distribution), middleman, and a node id
// that differs between containers.
#pragma once

#include "actors/protocol/messages.hpp"

#include <caf/io/all.hpp>

namespace troupe::actors {

class SystemConfig : public caf::actor_system_config {
public:
  /// \param number 0 for the master, worker number + 1 for workers: makes the
  /// node ids of equal pids in different containers differ.
  explicit SystemConfig(std::uint32_t number);
};

/// Registers every type of messages.hpp.
void add_message_types(caf::actor_system_config& config);

} // namespace troupe::actors
