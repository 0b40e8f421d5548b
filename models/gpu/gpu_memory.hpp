// Memory of GPUs for planes, scratch and the KV cache. It comes from libtorch's
// caching allocator, like the temporaries of operations, so that one budget has
// it all: what one of them keeps for reuse is there for the other. Blocks are
// freed in the order of the device's stream, without waiting.
#pragma once

#include "net/base/block_memory.hpp"

namespace troupe::models {

/// Returns the memory of the GPUs of this process; blocks are on the device of
/// the thread that takes them. Only for processes that have a GPU.
const net::BlockMemory& gpu_memory();

} // namespace troupe::models
