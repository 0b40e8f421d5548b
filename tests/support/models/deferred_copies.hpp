// Copies beside the kernels of the deferred device (net/base/copy_stream.hpp),
// each as late as it may be: when somebody waits for it, when kernels that wait
// for it run, or when a block that it uses gets other content. Who forgets to
// wait reads what was there before.
#pragma once

#include "net/base/copy_stream.hpp"

#include <cstddef>

namespace troupe::testing {

class FarMemory;

/// Memory of the device, for all blocks.
FarMemory& deferred_memory();

const net::CopyStream& deferred_copies();
/// Runs the copies that keep the memory of a block which is freed.
void finish_deferred_copies(const void* block);
/// Returns the bytes of the host that are page-locked.
std::size_t deferred_locked_bytes();

} // namespace troupe::testing
