// The bytes of a GPU that a process may take, and has taken: one number for
// planes, scratch, caches and the temporaries of operations, since all of them
// come from libtorch's caching allocator. At its limit the allocator gives back
// what it keeps for reuse before it refuses. Memory that is not the allocator's
// (the driver's context, NCCL's buffers) is outside.
#pragma once

#include <cstdint>
#include <exception>
#include <string>

namespace troupe::models {

/// Lets the allocator take at most so many bytes of a GPU, counted from 0 in
/// this process; without effect in a build without CUDA.
void limit_gpu_memory(int gpu, std::uint64_t bytes);

/// Begins the peak of a GPU anew, from what is taken now.
void begin_gpu_peak(int gpu);
/// Returns the most bytes that were taken of it since, by all devices of this
/// process that share it.
std::uint64_t gpu_peak_bytes(int gpu);

/// Gives the memory that the allocator keeps for reuse back to the driver, for
/// other processes.
void release_kept_gpu_memory();

/// Returns what an error says, without libtorch's call stack, if an operation
/// or a block found too little memory; else an empty string.
std::string out_of_memory_text(const std::exception& error);

} // namespace troupe::models
