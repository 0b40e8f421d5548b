// Which operators of libtorch the CPU computes, and their registration: before
// autograd, which this program does not use, for tensors of GPUs.
#include <torch/library.h>

#include "aten_operators.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <string>

namespace troupe::standin {

namespace {

using c10::DispatchKey;

bool has_tensors(const c10::FunctionSchema& schema) {
  return std::ranges::any_of(schema.arguments(), [](const c10::Argument& arg) {
    const std::string type = arg.type()->str();
    return type.find("Tensor") != std::string::npos;
  });
}

bool is_view(const c10::FunctionSchema& schema) {
  return std::ranges::any_of(schema.returns(), [](const c10::Argument& value) {
    return value.alias_info() != nullptr && !value.alias_info()->isWrite();
  });
}

/// Products, which the stand-in for cuBLAS computes.
bool is_product(const std::string& name) {
  static const std::set<std::string> names{
    "aten::mm",      "aten::addmm", "aten::addmm_", "aten::bmm",
    "aten::baddbmm", "aten::dot",   "aten::vdot",   "aten::baddbmm_"};
  return names.contains(name);
}

/// Operators whose work is done by CUDA's runtime alone.
bool is_of_runtime(const std::string& name) {
  static const std::set<std::string> names{
    "aten::_local_scalar_dense",
    "aten::set_",
    "aten::resize_",
    "aten::record_stream",
    "aten::is_pinned",
    "aten::_pin_memory",
    "aten::is_same_size",
    "aten::equal",
    "aten::empty_like",
    "aten::_has_compatible_shallow_copy_type",
    "aten::_nested_tensor_size"};
  return names.contains(name);
}

bool has_shape_of_values(const std::string& name) {
  static const std::set<std::string> names{"aten::nonzero",
                                           "aten::masked_select",
                                           "aten::_unique2",
                                           "aten::unique_dim",
                                           "aten::unique_consecutive",
                                           "aten::bincount",
                                           "aten::multinomial",
                                           "aten::topk"};
  return names.contains(name);
}

/// Returns whether an index is a mask, whose count is the result's length.
bool has_mask(const torch::jit::Stack& stack) {
  return std::ranges::any_of(stack, [](const c10::IValue& value) {
    if (!value.isList())
      return false;
    return std::ranges::any_of(value.toListRef(), [](const c10::IValue& each) {
      return each.isTensor() && each.toTensor().defined()
             && (each.toTensor().scalar_type() == at::kBool
                 || each.toTensor().scalar_type() == at::kByte);
    });
  });
}

void call_others(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  op.redispatchBoxed(c10::DispatchKeySet(DispatchKey::CUDA), stack);
}

void call(const c10::OperatorHandle& op, c10::DispatchKeySet,
          torch::jit::Stack* stack) {
  switch (route_of(op)) {
  case Route::at_once_cpu:
    return run_at_once(op, stack);
  case Route::of_cpu:
    if (op.operator_name().name == "aten::index" && has_mask(*stack))
      return run_at_once(op, stack);
    return run_on_cpu(op, stack);
  default:
    return call_others(op, stack);
  }
}

/// Registers `call` for every operator that computes.
void register_all() {
  static auto& library
    = *new torch::Library(torch::Library::IMPL, "aten",
                          DispatchKey::AutogradCUDA, __FILE__, __LINE__);
  for (const auto& name : c10::Dispatcher::singleton().getAllOpNames()) {
    if (name.name.rfind("aten::", 0) != 0
        || name.name.rfind("aten::_test", 0) == 0)
      continue;
    const auto op = c10::Dispatcher::singleton().findSchema(name);
    if (!op || route_of(*op) == Route::untouched)
      continue;
    library.impl(c10::toString(name).c_str(),
                 torch::CppFunction::makeFromBoxedFunction<&call>());
  }
}

const bool registered = (register_all(), true);

} // namespace

Route route_of(const c10::OperatorHandle& op) {
  const std::string& name = op.operator_name().name;
  const auto has
    = [&](DispatchKey key) { return op.hasKernelForDispatchKey(key); };
  if (!has_tensors(op.schema()) || is_view(op.schema()) || is_of_runtime(name)
      || has(DispatchKey::CompositeImplicitAutograd)
      || !op.hasComputedKernelForDispatchKey(DispatchKey::CUDA))
    return Route::untouched;
  if (has_shape_of_values(name))
    return Route::at_once_cpu;
  if (name == "aten::copy_")
    return Route::of_cpu;
  if (is_product(name) || !has(DispatchKey::CUDA)
      || !op.hasComputedKernelForDispatchKey(DispatchKey::CPU))
    return Route::of_others;
  return Route::of_cpu;
}

} // namespace troupe::standin
