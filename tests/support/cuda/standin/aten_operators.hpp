// Operators of libtorch on a pretended GPU. Their kernels are machine code of a
// GPU, which nothing here executes; so each call goes two ways: libtorch's own
// CUDA code runs, which allocates results and launches kernels that are counted
// and do nothing, and the same operator of the CPU is put at the end of the
// current stream, over the same memory.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <vector>

namespace troupe::standin {

/// Ways that a call of an operator goes.
enum class Route {
  untouched,   ///< views, and what CUDA's runtime does alone
  of_others,   ///< it calls other operators or cuBLAS, which compute
  of_cpu,      ///< the CPU's operator fills the results when the stream runs
  at_once_cpu, ///< the same, waited for: its results' shape depends on values
};

/// Returns the route of an operator.
Route route_of(const c10::OperatorHandle& op);

/// Returns the tensor's memory as a tensor of the CPU.
at::Tensor host_view(const at::Tensor& tensor);

/// Runs an operator of route `of_cpu`.
void run_on_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack);
/// Runs an operator of route `at_once_cpu`.
void run_at_once(const c10::OperatorHandle& op, torch::jit::Stack* stack);

} // namespace troupe::standin
