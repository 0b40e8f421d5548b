#include "models/parallel/tensor_peers.hpp"

#include "models/kernels/backend.hpp"
#include "models/parallel/run_context.hpp"
#include "net/collectives/collectives.hpp"
#include "net/collectives/stream_collectives.hpp"

#include <algorithm>

namespace troupe::models {

using net::StreamOrder;

TensorPeers::TensorPeers(const RunContext& context, Backend& backend,
                         bool split)
  : group_(context.groups.tp.get()),
    experts_(context.groups.experts.get()),
    context_(context.groups.cp.get()),
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
  const std::int64_t rows = share_of(tokens);
  const std::int64_t first = std::min(tokens, rows * rank_);
  return {first, std::min(tokens, first + rows) - first};
}

std::int64_t TensorPeers::gathered_rows(std::int64_t tokens) const {
  return split_ ? share_of(tokens) * size_ : tokens;
}

void TensorPeers::use_streams(const void* data) {
  if (size_ > 1)
    streams_ = group_->on_streams(data);
}

void TensorPeers::launch(const char* name,
                         const std::function<void()>& graph) const {
  if (streams_ == nullptr)
    return graph();
  streams_->launch(name, graph);
}

bool TensorPeers::all_agree(bool is_so, const char* name) const {
  if (size_ == 1)
    return is_so;
  std::int32_t others = is_so ? 0 : 1;
  group_->all_reduce_sum(&others, 1, DType::i32, name);
  return others == 0;
}

bool TensorPeers::all_captured(bool has_graph) const {
  const bool is_kept = all_agree(has_graph, "graphs that were captured");
  if (streams_ != nullptr)
    streams_->end_capture(is_kept);
  return is_kept;
}

void TensorPeers::check() const {
  if (streams_ != nullptr)
    streams_->check();
}

void TensorPeers::sum(TypedPtr x, std::int64_t count, const char* name) const {
  if (size_ == 1)
    return;
  if (streams_ != nullptr) {
    streams_->all_reduce_sum(x.data(), static_cast<std::size_t>(count),
                             x.type(), name, StreamOrder::in_line);
    return;
  }
  backend_->wait();
  group_->all_reduce_sum(x.data(), static_cast<std::size_t>(count), x.type(),
                         name);
}

void TensorPeers::to_stream(TypedPtr partial, TypedPtr stream,
                            std::int64_t tokens, std::int64_t width,
                            const char* name) const {
  if (!split_)
    return sum(stream, tokens * width, name);
  const auto count = static_cast<std::size_t>(share_of(tokens) * width);
  if (streams_ != nullptr) {
    streams_->reduce_scatter_sum(partial.data(), stream.data(), count,
                                 stream.type(), name, StreamOrder::in_line);
    return;
  }
  backend_->wait();
  group_->reduce_scatter_sum(partial.data(), stream.data(), count,
                             stream.type(), name);
}

ConstTypedPtr TensorPeers::gather(ConstTypedPtr stream, TypedPtr room,
                                  std::int64_t tokens, std::int64_t width,
                                  const char* name) const {
  if (!split_)
    return stream;
  collect(stream, room, share_of(tokens) * width, name);
  return room;
}

void TensorPeers::collect(ConstTypedPtr mine, TypedPtr all, std::int64_t count,
                          const char* name) const {
  if (streams_ != nullptr) {
    streams_->all_gather(mine.data(), all.data(),
                         static_cast<std::size_t>(count), mine.type(), name,
                         StreamOrder::in_line);
    return;
  }
  backend_->wait();
  group_->all_gather(mine.data(), all.data(), static_cast<std::size_t>(count),
                     mine.type(), name);
}

} // namespace troupe::models
