#include "models/parallel/tensor_peers.hpp"

#include "models/kernels/backend.hpp"
#include "models/parallel/run_context.hpp"
#include "net/collectives/collectives.hpp"

#include <algorithm>

namespace troupe::models {

namespace {

std::int64_t peers_rows(std::int64_t tokens, std::uint32_t size) {
  return (tokens + size - 1) / size;
}

} // namespace

TensorPeers::TensorPeers(const RunContext& context, Backend& backend,
                         bool split)
  : group_(context.groups.tp.get()),
    experts_(context.groups.experts.get()),
    backend_(&backend) {
  if (group_ == nullptr)
    return;
  rank_ = group_->rank();
  size_ = group_->size();
  split_ = split && size_ > 1;
}

TokenRange TensorPeers::own(std::int64_t tokens) const {
  if (!split_)
    return {0, tokens};
  const std::int64_t rows = peers_rows(tokens, size_);
  const std::int64_t first = std::min(tokens, rows * rank_);
  return {first, std::min(tokens, first + rows) - first};
}

std::int64_t TensorPeers::gathered_rows(std::int64_t tokens) const {
  return split_ ? peers_rows(tokens, size_) * size_ : tokens;
}

void TensorPeers::sum(TypedPtr x, std::int64_t count, const char* name) const {
  if (size_ == 1)
    return;
  backend_->wait();
  group_->all_reduce_sum(x.data(), static_cast<std::size_t>(count), x.type(),
                         name);
}

void TensorPeers::to_stream(TypedPtr partial, TypedPtr stream,
                            std::int64_t tokens, std::int64_t width,
                            const char* name) const {
  if (!split_)
    return sum(stream, tokens * width, name);
  backend_->wait();
  group_->reduce_scatter_sum(
    partial.data(), stream.data(),
    static_cast<std::size_t>(peers_rows(tokens, size_) * width), stream.type(),
    name);
}

ConstTypedPtr TensorPeers::gather(ConstTypedPtr stream, TypedPtr room,
                                  std::int64_t tokens, std::int64_t width,
                                  const char* name) const {
  if (!split_)
    return stream;
  collect(stream, room, peers_rows(tokens, size_) * width, name);
  return room;
}

void TensorPeers::collect(ConstTypedPtr mine, TypedPtr all, std::int64_t count,
                          const char* name) const {
  backend_->wait();
  group_->all_gather(mine.data(), all.data(), static_cast<std::size_t>(count),
                     mine.type(), name);
}

} // namespace troupe::models
