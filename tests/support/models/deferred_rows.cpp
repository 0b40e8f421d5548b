// Kernels over rows of matrices, deferred with their host tables.
#include "deferred_backend.hpp"

#include <utility>
#include <vector>

namespace troupe::testing {

using namespace models;

void DeferredBackend::gather_rows(const RowList& list, ConstTypedPtr from,
                                  TypedPtr to) {
  later_with_tables([=, this, rows = kept_table(list.rows)] {
    inner_.gather_rows({rows, list.width, list.factor}, from, to);
  });
}

void DeferredBackend::add_rows(const RowList& list, ConstTypedPtr from,
                               TypedPtr to) {
  later_with_tables([=, this, rows = kept_table(list.rows)] {
    inner_.add_rows({rows, list.width, list.factor}, from, to);
  });
}

void DeferredBackend::scatter_rows(const RowList& list, ConstTypedPtr from,
                                   TypedPtr to) {
  later_with_tables([=, this, rows = kept_table(list.rows),
                     weights = kept_table(list.weights)] {
    inner_.scatter_rows({rows, list.width, list.factor, weights}, from, to);
  });
}

// The tokens are on the device.
void DeferredBackend::embed(const Embedding& from,
                            std::span<const DecodeToken> tokens, TypedPtr to) {
  later([=, this] { inner_.embed(from, tokens, to); });
}

void DeferredBackend::row_dots(const WholeRows& shape, ConstTypedPtr a,
                               ConstTypedPtr b, float* dots_R) {
  later([=, this] { inner_.row_dots(shape, a, b, dots_R); });
}

void DeferredBackend::scale_rows(std::span<const float> weights_R,
                                 std::int64_t width, TypedPtr x) {
  later_with_tables([=, this, weights = kept_table(weights_R)] {
    inner_.scale_rows(weights, width, x);
  });
}

} // namespace troupe::testing
