// Kernels of picked and of kept tokens of deferred_backend.hpp.
#include "deferred_backend.hpp"

namespace troupe::testing {

namespace {

models::PickedIds with(models::PickedIds picked,
                       const std::vector<std::int64_t>& ids) {
  picked.ids_RK = ids;
  return picked;
}

} // namespace

void DeferredBackend::picked_logits(const models::PickedIds& picked,
                                    const float* logits_RV, float* to_RK) {
  later_with_tables([=, this, ids = kept_table(picked.ids_RK)] {
    inner_.picked_logits(with(picked, ids), logits_RV, to_RK);
  });
}

void DeferredBackend::join_picked(const models::PickedIds& picked,
                                  std::uint32_t peers, const float* logits_PRK,
                                  const float* lse_R,
                                  const models::PickedStatistics& found) {
  later_with_tables([=, this, ids = kept_table(picked.ids_RK)] {
    inner_.join_picked(with(picked, ids), peers, logits_PRK, lse_R, found);
  });
}

void DeferredBackend::picked_gradient(const models::PickedIds& picked,
                                      const float* logits_RK,
                                      const float* d_logprobs_RK,
                                      float* d_logits_RV) {
  later_with_tables([=, this, ids = kept_table(picked.ids_RK)] {
    inner_.picked_gradient(with(picked, ids), logits_RK, d_logprobs_RK,
                           d_logits_RV);
  });
}

void DeferredBackend::keep_logits(const models::KeptIds& shape,
                                  float* logits_RV) {
  later_with_tables([=, this, offsets = kept_table(shape.offsets_R1),
                     ids = kept_table(shape.ids)] {
    models::KeptIds own = shape;
    own.offsets_R1 = offsets;
    own.ids = ids;
    inner_.keep_logits(own, logits_RV);
  });
}

void DeferredBackend::largest_logits(const models::LargestLogits& shape,
                                     const float* logits_RV, float* values_RK,
                                     std::int32_t* ids_RK) {
  later(
    [=, this] { inner_.largest_logits(shape, logits_RV, values_RK, ids_RK); });
}

} // namespace troupe::testing
