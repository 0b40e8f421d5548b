#include "models/gpu/aten_pages.hpp"

#include "models/kernels/typed_tensor.hpp"

#include <ATen/ATen.h>
#include <ATen/TensorIndexing.h>

namespace troupe::models {

namespace {

using at::indexing::Slice;

at::Tensor pages_view(at::Device device, const void* data, at::ScalarType type,
                      at::IntArrayRef sizes,
                      at::OptionalIntArrayRef strides = std::nullopt) {
  return at::for_blob(const_cast<void*>(data), sizes)
    .strides(strides)
    .options(at::TensorOptions(type).device(device))
    .target_device(device)
    .make_tensor();
}

} // namespace

AtenPages::AtenPages(at::Device device, const DecodeAttention& what,
                     KvCache& cache)
  : page_tokens_(cache.page_tokens()),
    table_(pages_view(device, cache.table(), at::kInt,
                      {cache.num_slots(), cache.pages_per_slot()})) {
  const std::int64_t pages = cache.num_pages();
  const std::int64_t head = cache.head_stride();
  const auto type = scalar_type(cache.type());
  keys_PGDT_ = pages_view(device, cache.keys(what.layer, 0, 0).data(), type,
                          {pages, what.kv_heads, what.head_dim, page_tokens_},
                          {{what.kv_heads * head, head, page_tokens_, 1}});
  values_PGTD_
    = pages_view(device, cache.values(what.layer, 0, 0).data(), type,
                 {pages, what.kv_heads, page_tokens_, what.head_dim},
                 {{what.kv_heads * head, head, cache.value_stride(), 1}});
}

void AtenPages::write(const at::Tensor& slots_R, const at::Tensor& positions_R,
                      const at::Tensor& keys_RGD,
                      const at::Tensor& values_RGD) const {
  const at::Tensor entries
    = slots_R * table_.size(1) + at::floor_divide(positions_R, page_tokens_);
  const at::Tensor pages
    = table_.view({-1}).index_select(0, entries).to(at::kLong);
  const at::Tensor places = positions_R.remainder(page_tokens_);
  at::Tensor keys = keys_PGDT_;
  keys.index_put_({pages, Slice(), Slice(), places},
                  keys_RGD.to(keys.scalar_type()));
  at::Tensor values = values_PGTD_;
  values.index_put_({pages, Slice(), places},
                    values_RGD.to(values.scalar_type()));
}

// Into memory of the wanted order: the results of `index` have that of pages.
AtenKeys AtenPages::copy(const at::Tensor& pages_K,
                         const at::Tensor& places_K) const {
  const std::int64_t count = pages_K.size(0);
  const auto room = [&](const at::Tensor& all) {
    return at::empty({count, keys_PGDT_.size(1), keys_PGDT_.size(2)},
                     all.options());
  };
  AtenKeys found{room(keys_PGDT_), room(values_PGTD_)};
  at::index_out(found.keys_KGD, keys_PGDT_, {pages_K, {}, {}, places_K});
  at::index_out(found.values_KGD, values_PGTD_, {pages_K, {}, places_K});
  return found;
}

AtenCached AtenPages::gather(const at::Tensor& slots_S,
                             std::int64_t keys) const {
  const std::int64_t pages = (keys + page_tokens_ - 1) / page_tokens_;
  const at::Tensor chosen
    = table_.narrow(1, 0, pages).index_select(0, slots_S).reshape({-1});
  const auto by_sequence = [&](const at::Tensor& all) {
    const at::Tensor found = all.index_select(0, chosen);
    return found.reshape(
      {slots_S.size(0), pages, found.size(1), found.size(2), found.size(3)});
  };
  const std::int64_t heads = slots_S.size(0) * keys_PGDT_.size(1);
  return {by_sequence(keys_PGDT_)
            .permute({0, 2, 3, 1, 4})
            .reshape({heads, -1, pages * page_tokens_})
            .narrow(2, 0, keys),
          by_sequence(values_PGTD_)
            .transpose(1, 2)
            .reshape({heads, pages * page_tokens_, -1})
            .narrow(1, 0, keys)};
}

} // namespace troupe::models
