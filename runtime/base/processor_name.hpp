// The processor and the GPUs of this machine by name, which profiles of it
// carry: one of its CPU never counts for its GPUs, nor the other way round.
#pragma once

#include <string>
#include <vector>

namespace troupe::runtime {

/// Returns "profiled on PROCESSOR", or "profiled on GPU, PROCESSOR" with each
/// kind of these GPUs once: the name of files that were measured here.
std::string profiled_name(const std::vector<std::string>& gpus = {});

} // namespace troupe::runtime
