// Numbers of NCCL's types and their sums, for the stand-in for NCCL.
#pragma once

#include "nccl_between.hpp"

#include <cstddef>
#include <map>
#include <vector>

namespace troupe::standin {

/// Returns the bytes of a number of NCCL's type.
std::size_t size_of(int type);
bool can_reduce(int type, int operation);
/// Reduces in the order of ranks; sums of fp32 are rounded after each, as GPUs'
/// are, and those of int64 are exact.
std::vector<char> reduced(const std::map<int, Call>& calls, std::size_t count,
                          int type, int operation);

} // namespace troupe::standin
