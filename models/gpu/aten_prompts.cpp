#include "models/gpu/aten_prompts.hpp"

#include "models/gpu/aten_pages.hpp"
#include "models/gpu/prompt_calls.hpp"
#include "models/kernels/typed_tensor.hpp"

#include <ATen/ATen.h>

namespace troupe::models {

namespace {

/// Returns the keys that a call may copy with their values.
std::int64_t most_copied(const AtenOptions& options,
                         const DecodeAttention& what, const KvCache& cache) {
  const std::int64_t bytes
    = 2 * what.kv_heads * what.head_dim
      * static_cast<std::int64_t>(size_bytes(cache.type()));
  return options.copied_key_bytes / bytes;
}

} // namespace

bool fuses_prompts(const AtenOptions& options, const DecodeAttention& what,
                   const KvCache& cache) {
  return options.flash != nullptr
         && scalar_type(cache.type()) == options.flash->operands()
         && flash_takes_heads(what.head_dim, what.cap);
}

void attend_prompts_fused(const AtenViews& on, const DecodeAttention& what,
                          std::span<const DecodeGroup> groups,
                          const AtenHeads& heads, KvCache& cache,
                          const at::Tensor& context_RAD) {
  const AtenOptions& options = on.options();
  const at::ScalarType type = options.flash->operands();
  for (const PromptCall& call :
       prompt_calls(groups, cache.pages(), most_copied(options, what, cache))) {
    const auto count = static_cast<std::int64_t>(call.rows.size());
    const at::Tensor rows
      = call.is_range() ? at::Tensor{} : on.cached(call.rows);
    const auto of_rows = [&](const at::Tensor& x) {
      return rows.defined() ? x.index_select(0, rows)
                            : x.narrow(0, call.rows.front(), count);
    };
    const AtenKeys seen
      = call.copies_keys()
          ? AtenPages(on.device(), what, cache)
              .copy(on.cached(call.cached.pages), on.cached(call.cached.tokens))
          : AtenKeys{of_rows(heads.keys_RGD).to(type),
                     of_rows(heads.values_RGD).to(type)};
    const FlashContext found = options.flash->forward(
      {of_rows(heads.queries_RAD).to(type), seen.keys_KGD, seen.values_KGD,
       on.cached(call.query_starts), on.cached(call.key_starts),
       call.most_queries, call.most_keys, what.scale,
       what.window > 0 ? what.window - 1 : -1});
    at::Tensor context = context_RAD;
    if (rows.defined())
      context.index_copy_(0, rows, found.context_TAD.to(context.scalar_type()));
    else
      of_rows(context).copy_(found.context_TAD);
  }
}

} // namespace troupe::models
