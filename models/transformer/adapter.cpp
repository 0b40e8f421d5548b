#include "models/transformer/adapter.hpp"

#include "models/kernels/typed_tensor.hpp"

namespace troupe::models {

TypedPtr AdapterMath::narrow(const Adapter& adapter, ConstRowsView x) const {
  const std::int64_t rank = adapter.rank();
  const TypedPtr narrow_TR = workspace.take(rows.count * rank, x.data.type());
  linear(backend, rows, x, adapter.a, {}, {narrow_TR, rank});
  backend.scale(narrow_TR, rows.count * rank, scale);
  return narrow_TR;
}

void AdapterMath::add(const Adapter& adapter, ConstRowsView x,
                      RowsView y) const {
  const Workspace::Mark mark = workspace.mark();
  linear(backend, rows, {narrow(adapter, x), adapter.rank()}, adapter.b, {}, y,
         /*accumulate=*/true);
  workspace.rewind(mark);
}

TypedPtr AdapterMath::narrow_gradient(const Adapter& adapter,
                                      ConstRowsView dy) const {
  const std::int64_t rank = adapter.rank();
  const TypedPtr d_narrow_TR
    = workspace.take(rows.count * rank, dy.data.type());
  linear_grad_input(backend, rows, dy, adapter.b, {d_narrow_TR, rank});
  backend.scale(d_narrow_TR, rows.count * rank, scale);
  return d_narrow_TR;
}

void AdapterMath::input_gradient(const Adapter& adapter, ConstRowsView dy,
                                 RowsView dx) const {
  const Workspace::Mark mark = workspace.mark();
  linear_grad_input(backend, rows,
                    {narrow_gradient(adapter, dy), adapter.rank()}, adapter.a,
                    dx, /*accumulate=*/true);
  workspace.rewind(mark);
}

void AdapterMath::weight_gradients(const Adapter& adapter, const Adapter& grads,
                                   ConstRowsView dy, ConstRowsView x) const {
  const Workspace::Mark mark = workspace.mark();
  const std::int64_t rank = adapter.rank();
  linear_grad_weight(backend, rows, dy, {narrow(adapter, x), rank}, grads.b);
  linear_grad_weight(backend, rows, {narrow_gradient(adapter, dy), rank}, x,
                     grads.a);
  workspace.rewind(mark);
}

void merge_adapter(Backend& backend, const Adapter& adapter, float scale,
                   float* weight, float* scratch) {
  const std::int64_t rank = adapter.rank();
  const std::int64_t in = adapter.a.size(1);
  const std::int64_t out = adapter.b.size(0);
  backend.copy(numbers_of(adapter.a), scratch, rank * in);
  backend.scale(scratch, rank * in, scale);
  backend.gemm({out, in, rank}, {numbers_of(adapter.b), rank, 1},
               {scratch, in, 1}, {weight, in}, {.accumulate = true});
}

} // namespace troupe::models
