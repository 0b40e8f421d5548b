#include "models/kernels/attention_parts.hpp"

#include "models/kernels/threads.hpp"

namespace troupe::models {

namespace {

std::vector<AttentionFamily> attention_families(const AttentionShape& shape) {
  std::vector<AttentionFamily> families;
  for (std::size_t s = 0; s + 1 < shape.cu_seqlens.size(); ++s) {
    const bool begins = shape.continues.empty() || shape.continues[s] < 0;
    if (begins)
      families.push_back({s, s, 0});
    AttentionFamily& family = families.back();
    const auto length = [&](std::size_t i) {
      return static_cast<double>(shape.cu_seqlens[i + 1] - shape.cu_seqlens[i]);
    };
    const double seen = length(s) + (begins ? 0 : length(family.first));
    family.last = s + 1;
    family.cost += length(s) * (seen + 64);
  }
  return families;
}

std::vector<AttentionTask>
attention_tasks(const std::vector<AttentionFamily>& families,
                std::int64_t kv_heads) {
  std::vector<AttentionTask> tasks;
  for (const AttentionFamily& family : families)
    for (std::int64_t g = 0; g < kv_heads; ++g)
      tasks.push_back({family, g, family.cost});
  return tasks;
}

void run_tasks(const std::vector<AttentionTask>& tasks,
               const std::function<void(const AttentionTask&)>& body) {
  std::vector<double> before(tasks.size() + 1, 0);
  for (std::size_t i = 0; i < tasks.size(); ++i)
    before[i + 1] = before[i] + tasks[i].cost;
  const int threads = compute_threads();
  const auto first_of = [&](std::int64_t part) {
    const double share = before.back() * static_cast<double>(part)
                         / static_cast<double>(threads);
    return static_cast<std::size_t>(
      std::lower_bound(before.begin(), before.end() - 1, share)
      - before.begin());
  };
  parallel_for(0, threads, 1, [&](std::int64_t begin, std::int64_t end) {
    const std::size_t last = end == threads ? tasks.size() : first_of(end);
    for (std::size_t i = first_of(begin); i < last; ++i)
      body(tasks[i]);
  });
}

} // namespace

void attention_for_each(const AttentionShape& shape,
                        const std::function<void(const AttentionTask&)>& body) {
  run_tasks(attention_tasks(attention_families(shape), shape.kv_heads), body);
}

void attention_for_each(const PieceShape& shape,
                        const std::function<void(const AttentionTask&)>& body) {
  run_tasks(attention_tasks(piece_families(shape), shape.heads.kv_heads), body);
}

HeadView attention_head(const AttentionShape& shape, const AttentionTask& task,
                        std::size_t s, std::int64_t member) {
  const std::int64_t d = shape.head_dim;
  const std::int64_t head
    = task.kv_head * (shape.heads / shape.kv_heads) + member;
  const std::size_t root = task.family.first;
  const auto length = [&](std::size_t i) {
    return shape.cu_seqlens[i + 1] - shape.cu_seqlens[i];
  };
  return {shape.cu_seqlens[s],
          length(s),
          shape.cu_seqlens[root],
          s == root ? 0 : length(root),
          head * d,
          (shape.heads + task.kv_head) * d,
          (shape.heads + shape.kv_heads + task.kv_head) * d,
          head * d};
}

HeadKeys attention_keys(const AttentionShape& shape, const float* qkv,
                        const HeadView& view, AlignedFloats& scratch) {
  const std::int64_t width = shape.columns();
  const std::int64_t d = shape.head_dim;
  if (view.past == 0) {
    const float* base = qkv + view.start * width;
    return {base + view.k, base + view.v, width};
  }
  float* both = scratch.reserve(2 * view.total() * d);
  for (std::int64_t i = 0; i < view.total(); ++i) {
    const float* row = qkv + view.token(i) * width;
    std::copy_n(row + view.k, d, both + 2 * i * d);
    std::copy_n(row + view.v, d, both + (2 * i + 1) * d);
  }
  return {both, both + d, 2 * d};
}

BlockMask attention_mask(const AttentionShape& shape, const RowBlock& block) {
  const std::int64_t oldest = block.aligned + 1 - shape.window;
  return {block.row, shape.window > 0 ? std::max<std::int64_t>(0, oldest) : 0,
          shape.window};
}

} // namespace troupe::models
