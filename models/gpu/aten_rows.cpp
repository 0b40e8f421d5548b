// Kernels over listed and whole rows of aten_backend.hpp.
#include "models/gpu/aten_backend.hpp"
#include "models/gpu/fixed_order.hpp"
#include "models/gpu/kernels/scatter_rows.hpp"
#include "models/gpu/own_kernels.hpp"
#include "models/gpu/stored_type.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <vector>

namespace troupe::models {

namespace {

/// The rows that a list names, and their positions in the list.
struct NamedRows {
  std::size_t listed;
  std::vector<std::int64_t> rows;
  std::vector<std::int64_t> places;
  std::int64_t end = 0; ///< one past the largest row

  explicit NamedRows(const RowList& list) : listed(list.rows.size()) {
    for (std::size_t i = 0; i < list.rows.size(); ++i) {
      if (list.rows[i] < 0)
        continue;
      rows.push_back(list.rows[i]);
      places.push_back(static_cast<std::int64_t>(i));
      end = std::max(end, list.rows[i] + 1);
    }
  }
  /// Returns whether each entry of the list names a row.
  bool all() const {
    return rows.size() == listed;
  }
};

/// Lists of what is added to each row, in order, as a kernel reads them.
struct AddedRows {
  std::int64_t targets = 0;         ///< rows that are added to
  std::vector<std::int64_t> tables; ///< gpu::ScatterRows::lists

  explicit AddedRows(const NamedRows& named) {
    std::vector<std::int64_t> begin(static_cast<std::size_t>(named.end) + 1);
    for (const std::int64_t row : named.rows)
      ++begin[static_cast<std::size_t>(row) + 1];
    std::vector<std::int64_t> names;
    tables.push_back(0);
    for (std::size_t row = 0; row + 1 < begin.size(); ++row) {
      if (begin[row + 1] > 0) {
        names.push_back(static_cast<std::int64_t>(row));
        tables.push_back(tables.back() + begin[row + 1]);
      }
      begin[row + 1] += begin[row];
    }
    targets = std::ssize(names);
    tables.insert(tables.end(), names.begin(), names.end());
    const std::size_t first = tables.size();
    tables.resize(first + named.rows.size());
    for (std::size_t i = 0; i < named.rows.size(); ++i) {
      auto& next = begin[static_cast<std::size_t>(named.rows[i])];
      tables[first + static_cast<std::size_t>(next++)] = named.places[i];
    }
  }
  /// Returns what a kernel reads and writes of the rows.
  std::int64_t bytes(std::int64_t width, DType from, DType to) const {
    const std::int64_t added = std::ssize(tables) - 2 * targets - 1;
    return width
           * (added * static_cast<std::int64_t>(size_bytes(from))
              + 2 * targets * static_cast<std::int64_t>(size_bytes(to)));
  }
};

} // namespace

void AtenBackend::gather_rows(const RowList& list, ConstTypedPtr from,
                              TypedPtr to) {
  const NamedRows named(list);
  const auto count = static_cast<std::int64_t>(list.rows.size());
  at::Tensor rows = view(to, {count, list.width});
  if (named.all() && from.type() == to.type()) {
    at::index_select_out(rows, view(from, {named.end, list.width}), 0,
                         cached(named.rows));
  } else if (named.all()) {
    rows.copy_(
      view(from, {named.end, list.width}).index_select(0, cached(named.rows)));
  } else {
    rows.zero_();
    add_rows({list.rows, list.width}, from, to);
  }
  if (list.factor != 1.0F)
    scale(to, count * list.width, list.factor);
}

void AtenBackend::add_rows(const RowList& list, ConstTypedPtr from,
                           TypedPtr to) {
  const NamedRows named(list);
  const auto count = static_cast<std::int64_t>(list.rows.size());
  const at::Tensor added
    = view(from, {named.end, list.width}).index_select(0, indices(named.rows));
  at::Tensor rows = view(to, {count, list.width});
  if (named.all())
    rows.add_(added);
  else
    rows.index_add_(0, indices(named.places), added.to(rows.scalar_type()));
}

void AtenBackend::scatter_rows(const RowList& list, ConstTypedPtr from,
                               TypedPtr to) {
  const NamedRows named(list);
  const auto add = [&](auto in, auto out) {
    using Kernel = gpu::ScatterRows<typename decltype(in)::type,
                                    typename decltype(out)::type>;
    const AddedRows added(named);
    const at::Tensor lists = cached(added.tables);
    const at::Tensor weights
      = list.weights.empty() ? at::Tensor{} : cached(list.weights);
    gpu::run_kernel(
      device_,
      Kernel{in.at(from), out.at(to), lists.const_data_ptr<std::int64_t>(),
             weights.defined() ? weights.const_data_ptr<float>() : nullptr,
             list.factor, added.targets, list.width},
      added.targets,
      {"scatter_rows", added.bytes(list.width, from.type(), to.type())});
  };
  if (options_.own_kernels && gpu::with_rows(from.type(), to.type(), add))
    return;
  const auto count = static_cast<std::int64_t>(list.rows.size());
  const FixedOrder order; // for repeated rows
  at::Tensor added = view(from, {count, list.width});
  if (!list.weights.empty())
    added = added * cached(list.weights).unsqueeze(1);
  if (!named.all())
    added = added.index_select(0, indices(named.places));
  const at::Tensor stored = view(to, {named.end, list.width});
  at::Tensor sums = stored.to(at::kFloat); // repeated rows are rounded once
  sums.index_add_(0, cached(named.rows), added.to(at::kFloat), list.factor);
  if (to.type() != DType::f32)
    stored.copy_(sums);
}

void AtenBackend::row_dots(const WholeRows& shape, ConstTypedPtr a,
                           ConstTypedPtr b, float* dots_R) {
  at::Tensor dots = view(dots_R, {shape.rows});
  at::sum_out(dots,
              wide(a, {shape.rows, shape.width})
                * wide(b, {shape.rows, shape.width}),
              {1});
}

void AtenBackend::scale_rows(std::span<const float> weights_R,
                             std::int64_t width, TypedPtr x) {
  view(x, {static_cast<std::int64_t>(weights_R.size()), width})
    .mul_(cached(weights_R).unsqueeze(1));
}

} // namespace troupe::models
