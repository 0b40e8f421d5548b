// This file must be compiled with NDEBUG, as libtorch is: RecordFunction has
// other members without it.
#include "aten_counter.hpp"

#include "models/gpu/own_kernels.hpp"

#include <ATen/core/Tensor.h>
#include <ATen/core/function_schema.h>
#include <ATen/record_function.h>

#include "aten_costs.hpp"

#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>

namespace troupe::testing {

namespace {

/// The state of the callbacks of a thread.
struct Counting {
  AtenCounts* counts = nullptr; ///< null: nothing is counted
  /// Operands that were rounded to bf16 and widened again, which a product of
  /// the CPU needs and one of a GPU does not.
  std::set<const void*> widened;
  int inside = 0; ///< operations that are one launch, around the present one
};

thread_local Counting counting;

/// An operation between its two callbacks.
struct BegunCall final : at::ObserverContext {
  bool is_launch = false;
  bool widens = false;
  std::int64_t times_output = 0; ///< how often its outputs count
};

/// Returns the bytes of a tensor without what a stride of 0 repeats.
std::int64_t bytes_of(const at::Tensor& tensor) {
  if (!tensor.defined() || tensor.unsafeGetTensorImpl()->is_wrapped_number())
    return 0;
  const bool is_widened = counting.widened.contains(tensor.const_data_ptr());
  std::int64_t bytes = is_widened ? 2 : tensor.element_size();
  for (std::int64_t i = 0; i < tensor.dim(); ++i)
    if (tensor.stride(i) != 0)
      bytes *= tensor.size(i);
  return bytes;
}

std::int64_t bytes_of(const c10::IValue& value) {
  if (value.isTensor())
    return bytes_of(value.toTensor());
  std::int64_t bytes = 0;
  if (value.isList())
    for (const c10::IValue& inner : value.toListRef())
      bytes += bytes_of(inner);
  return bytes;
}

/// Returns the name without "aten::" and the underscore of an operation in
/// place, unless the other operation has this one as a part.
std::string short_name(std::string_view name) {
  if (name.starts_with("aten::"))
    name.remove_prefix(6);
  if (name.ends_with('_') && name != "masked_fill_")
    name.remove_suffix(1);
  return std::string(name);
}

/// Returns whether an operation overwrites the argument it changes.
bool only_writes(const std::string& name, const c10::Argument& argument) {
  return argument.kwarg_only() || name == "copy" || name == "fill"
         || name == "zero";
}

/// Bytes of the arguments that are known when a kernel begins.
std::int64_t argument_bytes(const std::string& name, AtenCost cost,
                            const c10::FunctionSchema& schema,
                            c10::ArrayRef<const c10::IValue> inputs) {
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const c10::Argument& argument = schema.arguments()[i];
    const std::int64_t own = bytes_of(inputs[i]);
    const bool is_table
      = i == 0 && (cost == AtenCost::picks || cost == AtenCost::places);
    if (is_table)
      continue;
    const bool is_written
      = argument.alias_info() != nullptr && argument.alias_info()->isWrite();
    bytes += is_written && !only_writes(name, argument) ? 2 * own : own;
    if (cost == AtenCost::picks && is_written)
      bytes += own; // what is read of the table
    if (cost == AtenCost::places && inputs[i].isTensor()
        && inputs[i].toTensor().is_floating_point())
      bytes += name.ends_with("add") ? 2 * own : own;
  }
  return bytes;
}

bool is_upload(const std::string& name, const at::RecordFunction& call) {
  if (name == "to")
    return std::string_view(call.overload_name()) == "dtype_layout";
  return name == "copy" && call.inputs()[0].isTensor()
         && call.inputs()[0].toTensor().scalar_type() == at::kByte;
}

/// Returns whether the host waits for an upload.
bool is_blocking(const std::string& name, const at::RecordFunction& call) {
  const c10::IValue& non_blocking = call.inputs()[name == "to" ? 5 : 2];
  return !non_blocking.toBool();
}

bool is_widening(const std::string& name, const at::RecordFunction& call) {
  return name == "_to_copy"
         && call.inputs()[0].toTensor().scalar_type() == at::kBFloat16;
}

void begin_kernel(const std::string& name, AtenCost cost,
                  const at::RecordFunction& call, BegunCall& begun) {
  begun.is_launch = true;
  ++counting.inside;
  begun.widens = is_widening(name, call);
  if (begun.widens)
    return;
  const c10::FunctionSchema schema = call.operator_schema().value();
  begun.times_output = cost == AtenCost::picks ? 2 : 1;
  for (const c10::Argument& argument : schema.arguments())
    if (argument.alias_info() != nullptr && argument.alias_info()->isWrite())
      begun.times_output = 0; // outputs are arguments
  const int launches = cost == AtenCost::groups ? 2 : 1;
  counting.counts->launches += launches;
  counting.counts->by_name[name] += launches;
  counting.counts->bytes += argument_bytes(name, cost, schema, call.inputs());
  if (name == "mm" || name == "addmm")
    counting.widened.clear(); // it took them
}

std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction& call) {
  auto begun = std::make_unique<BegunCall>();
  if (counting.counts == nullptr || counting.inside > 0)
    return begun;
  const std::string name = short_name(call.name());
  if (is_upload(name, call)) {
    (is_blocking(name, call) ? counting.counts->uploads
                             : counting.counts->queued)
      += 1;
    begun->is_launch = true; // its parts are not counted
    ++counting.inside;
    return begun;
  }
  const std::optional<AtenCost> cost = aten_cost(name);
  if (!cost)
    counting.counts->unknown.insert(name);
  else if (*cost == AtenCost::download)
    counting.counts->downloads += 1;
  else if (*cost != AtenCost::none && *cost != AtenCost::parts)
    begin_kernel(name, *cost, call, *begun);
  return begun;
}

void end(const at::RecordFunction& call, at::ObserverContext* context) {
  const auto& begun = static_cast<const BegunCall&>(*context);
  if (!begun.is_launch || counting.counts == nullptr)
    return;
  --counting.inside;
  if (begun.widens && !call.outputs().empty())
    counting.widened.insert(call.outputs()[0].toTensor().const_data_ptr());
  if (begun.times_output > 0)
    for (const c10::IValue& output : call.outputs())
      counting.counts->bytes += bytes_of(output) * begun.times_output;
}

constexpr std::size_t page = 4096;

} // namespace

AtenCounts AtenCounts::minus(const AtenCounts& others) const {
  AtenCounts rest = *this;
  rest.launches -= others.launches;
  rest.bytes -= others.bytes;
  rest.uploads -= others.uploads;
  rest.downloads -= others.downloads;
  rest.queued -= others.queued;
  for (const auto& [name, count] : others.by_name)
    if ((rest.by_name[name] -= count) == 0)
      rest.by_name.erase(name);
  return rest;
}

std::string AtenCounts::words() const {
  std::string words;
  for (const auto& [name, count] : by_name)
    words += (words.empty() ? "" : ", ") + name + " " + std::to_string(count);
  return words;
}

AtenCounter::AtenCounter()
  : handle_(
    at::addThreadLocalCallback(at::RecordFunctionCallback(&begin, &end)
                                 .needsInputs(true)
                                 .needsOutputs(true)
                                 .scopes({at::RecordScope::FUNCTION}))) {
  counting = {&counts_, {}, 0};
  models::gpu::observe_kernels(
    [](const models::gpu::KernelCost& cost) { add(cost.name, 1, cost.bytes); });
}

AtenCounter::~AtenCounter() {
  models::gpu::observe_kernels(nullptr);
  counting = {};
  at::removeCallback(handle_);
}

void AtenCounter::add(const char* name, std::int64_t launches,
                      std::int64_t bytes) {
  if (counting.counts == nullptr)
    return;
  counting.counts->launches += launches;
  counting.counts->bytes += bytes;
  counting.counts->by_name[name] += launches;
}

const net::BlockMemory& counted_memory() {
  static const net::BlockMemory memory{
    [](std::size_t size_bytes) -> void* {
      const std::size_t whole = (size_bytes + page - 1) / page * page;
      void* data = std::aligned_alloc(page, whole);
      std::memset(data, 0, whole);
      return data;
    },
    [](void* data) { std::free(data); },
    [](const void* from, void* to, std::size_t size_bytes) {
      std::memcpy(to, from, size_bytes);
      if (counting.counts != nullptr)
        ++counting.counts->downloads;
    },
    [](const void* from, void* to, std::size_t size_bytes) {
      std::memcpy(to, from, size_bytes);
      if (counting.counts != nullptr)
        ++counting.counts->uploads;
    },
    [](const void* from, void* to, std::span<const ByteRuns> runs) {
      for (const ByteRuns& part : runs)
        copy_runs(part, from, to);
    },
    [](const void* data) { return data != nullptr; }};
  return memory;
}

} // namespace troupe::testing
