// The CPU's operators over the memory of pretended GPUs.
#include <ATen/ATen.h>
#include <c10/cuda/CUDAStream.h>

#include "aten_operators.hpp"
#include "standin.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

namespace troupe::standin {

namespace {

using Values = std::vector<c10::IValue>;

template <class Each>
void each_tensor(const c10::IValue& value, const Each& each) {
  if (value.isTensor() && value.toTensor().defined())
    each(value.toTensor());
  else if (value.isList())
    for (const c10::IValue& inner : value.toListRef())
      each_tensor(inner, each);
}

/// Replaces the tensors in a value; a list becomes one of the same type.
template <class Change>
c10::IValue changed(const c10::IValue& value, const Change& change) {
  if (value.isTensor())
    return value.toTensor().defined() ? c10::IValue(change(value.toTensor()))
                                      : value;
  if (!value.isList())
    return value;
  const auto old = value.toList();
  c10::impl::GenericList made(old.elementType());
  for (const c10::IValue& inner : value.toListRef())
    made.push_back(changed(inner, change));
  return made;
}

Range range_of(const at::Tensor& tensor) {
  return {tensor.const_data_ptr(),
          tensor.numel() == 0
            ? 0
            : at::detail::computeStorageNbytes(tensor.sizes(), tensor.strides(),
                                               tensor.itemsize())};
}

bool is_written(const c10::Argument& argument) {
  return argument.alias_info() != nullptr && argument.alias_info()->isWrite();
}

/// A call whose tensors are views of the CPU's, so that it can run later.
struct CpuCall {
  Values args;
  std::vector<Range> ranges;
  std::optional<at::Device> device; ///< of the first tensor of a GPU
  bool writes_host = false;         ///< into memory that somebody reads next

  CpuCall(const c10::FunctionSchema& schema, const Values& given) {
    for (std::size_t i = 0; i < given.size(); ++i)
      args.push_back(changed(given[i], [&](const at::Tensor& tensor) {
        return argument(tensor, is_written(schema.arguments()[i]));
      }));
  }

private:
  // Memory of the host may be gone when the stream runs.
  at::Tensor argument(const at::Tensor& tensor, bool written) {
    if (tensor.is_cuda()) {
      if (!device)
        device = tensor.device();
      ranges.push_back(range_of(tensor));
      return host_view(tensor);
    }
    writes_host |= written;
    const bool stays
      = written || tensor.unsafeGetTensorImpl()->is_wrapped_number();
    return stays ? tensor : tensor.clone();
  }
};

Values last(const torch::jit::Stack& stack, std::size_t count) {
  return {stack.end() - static_cast<std::ptrdiff_t>(count), stack.end()};
}

void call_cpu(const c10::OperatorHandle& op, torch::jit::Stack& stack) {
  const at::AutoDispatchBelowADInplaceOrView below_us;
  op.callBoxed(stack);
}

/// Copies what the CPU found to where libtorch has allocated it.
void fill(const c10::IValue& to, const c10::IValue& from) {
  std::vector<at::Tensor> targets;
  each_tensor(to, [&](const at::Tensor& x) { targets.push_back(x); });
  std::size_t at = 0;
  each_tensor(from, [&](const at::Tensor& found) {
    if (at < targets.size() && targets[at].sizes() == found.sizes())
      targets[at].copy_(found);
    ++at;
  });
}

/// Returns views of the results that the operator has made, in the order of
/// its returns; what it wrote into an argument is none.
Values made_results(const c10::FunctionSchema& schema, const Values& returned,
                    std::vector<Range>& ranges) {
  Values made;
  for (std::size_t i = 0; i < returned.size(); ++i)
    made.push_back(is_written(schema.returns()[i])
                     ? c10::IValue()
                     : changed(returned[i], [&](const at::Tensor& tensor) {
                         ranges.push_back(range_of(tensor));
                         return host_view(tensor);
                       }));
  return made;
}

c10::cuda::CUDAStream stream_of(const CpuCall& call) {
  return c10::cuda::getCurrentCUDAStream(call.device ? call.device->index()
                                                     : -1);
}

/// Returns whether the caller waits for the result itself: of copies to
/// page-locked memory that it wants not to block.
bool is_left_to_stream(const c10::OperatorHandle& op, const Values& given) {
  return op.operator_name().name == "aten::copy_" && given.at(2).toBool()
         && given[0].toTensor().is_pinned();
}

void check(cudaError_t result) {
  TORCH_CHECK(result == cudaSuccess,
              "CUDA error: ", cudaGetErrorString(result));
}

} // namespace

at::Tensor host_view(const at::Tensor& tensor) {
  if (!tensor.is_cuda())
    return tensor;
  return at::from_blob(const_cast<void*>(tensor.const_data_ptr()),
                       tensor.sizes(), tensor.strides(),
                       tensor.options().device(at::kCPU));
}

void run_on_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const c10::FunctionSchema& schema = op.schema();
  const Values given = last(*stack, schema.arguments().size());
  {
    const Shadow shadow;
    const at::AutoDispatchBelowADInplaceOrView below_us;
    op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CUDA), stack);
  }
  // After libtorch's code, which gives results that are given their size.
  const auto call = std::make_shared<CpuCall>(schema, given);
  std::vector<Range> ranges = call->ranges;
  const Values made
    = made_results(schema, last(*stack, schema.returns().size()), ranges);
  const auto stream = stream_of(*call);
  check(enqueue(stream.stream(), stream.device_index(),
                {c10::toString(op.operator_name()), ranges, [op, call, made] {
                   torch::jit::Stack inner = call->args;
                   call_cpu(op, inner);
                   for (std::size_t i = 0; i < made.size(); ++i)
                     fill(made[i], inner[i]);
                 }}));
  if (call->writes_host && !is_left_to_stream(op, given))
    check(cudaStreamSynchronize(stream.stream()));
}

void run_at_once(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const c10::FunctionSchema& schema = op.schema();
  const auto call = std::make_shared<CpuCall>(
    schema, last(*stack, schema.arguments().size()));
  const auto stream = stream_of(*call);
  const auto found = std::make_shared<torch::jit::Stack>(call->args);
  const std::string name = c10::toString(op.operator_name());
  count_launch(name);
  check(enqueue(stream.stream(), stream.device_index(),
                {name, call->ranges, [op, found] { call_cpu(op, *found); }}));
  check(cudaStreamSynchronize(stream.stream()));
  torch::jit::drop(*stack, schema.arguments().size());
  for (const c10::IValue& value : *found)
    stack->push_back(changed(value, [&](const at::Tensor& tensor) {
      return tensor.to(at::Device(at::kCUDA, stream.device_index()));
    }));
}

} // namespace troupe::standin
