#include "models/optimizer.hpp"

#include "models/host_simd.hpp"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace troupe::models {

namespace {

constexpr std::int64_t adamw_piece_floats = 1 << 15; // 128 KiB a plane
constexpr std::int64_t adamw_sum_floats = 1 << 10;   // of a float sum

struct AdamNumbers {
  float keep;  // 1 - lr * weight_decay, or 1
  float scale; // of the gradient
  float beta1;
  float beta2;
  float step; // lr / (1 - beta1^t)
  float root; // 1 / sqrt(1 - beta2^t)
  float eps;
};

struct AdamMemory {
  float* p;
  const float* g;
  float* m;
  float* v;
};

void adam_update(const AdamNumbers& n, const AdamMemory& at,
                 std::int64_t count) {
  on_best_isa([&] {
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) {
      const float g = at.g[i] * n.scale;
      const float m = at.m[i] + (1.0F - n.beta1) * (g - at.m[i]);
      const float v = at.v[i] * n.beta2 + (1.0F - n.beta2) * g * g;
      at.m[i] = m;
      at.v[i] = v;
      at.p[i]
        = at.p[i] * n.keep - n.step * m / (__builtin_sqrtf(v) * n.root + n.eps);
    }
  });
}

float adam_short_sum(const float* g, std::int64_t count) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < count; ++i)
    sum += g[i] * g[i];
  return sum;
}

// Short sums in float, which vectorise, added up in double.
double adam_sum_of_squares(const float* g, std::int64_t begin,
                           std::int64_t end) {
  double sum = 0;
  on_best_isa([&] {
    for (std::int64_t at = begin; at < end; at += adamw_sum_floats)
      sum += static_cast<double>(
        adam_short_sum(g + at, std::min(adamw_sum_floats, end - at)));
  });
  return sum;
}

} // namespace

std::vector<OptimizerRun> whole_runs(const Parameters& parameters) {
  std::vector<OptimizerRun> runs;
  for (std::size_t i = 0; i < parameters.shapes().size(); ++i) {
    const ParameterShape& shape = parameters.shapes()[i];
    const std::int64_t begin = parameters.offset(i);
    runs.push_back(
      {begin, begin + shape.num_elements(), begin, shape.decay, true});
  }
  return runs;
}

std::vector<OptimizerRun> optimizer_runs(const ModelPart& part,
                                         const Parameters& parameters) {
  std::vector<OptimizerRun> runs;
  for (const plans::Box& box : part.optimizer.boxes) {
    const PartBox& owner = part.owner(box.parameter);
    const auto moment
      = static_cast<std::int64_t>(box.offset_bytes / sizeof(float));
    const std::int64_t begin
      = plans::cuts_weights(part.strategy)
          ? moment // as the weights, which are cut likewise
          : parameters.offset(part.box_index(owner)) + owner.place_of(box);
    runs.push_back({begin, begin + box.num_elements(), moment,
                    part.parameters[box.parameter].decay, owner.first_owner});
  }
  return runs;
}

AdamW::AdamW(Parameters& parameters, const OptimizerSettings& settings)
  : AdamW(parameters, settings, whole_runs(parameters)) {}

AdamW::AdamW(Parameters& parameters, const OptimizerSettings& settings,
             const std::vector<OptimizerRun>& runs)
  : parameters_(parameters),
    settings_(settings) {
  for (const OptimizerRun& run : runs)
    for (std::int64_t at = run.begin; at < run.end; at += adamw_piece_floats)
      pieces_.push_back({at, std::min(run.end, at + adamw_piece_floats),
                         run.moment + at - run.begin, run.decay, run.counted});
}

double AdamW::gradient_norm() const {
  return std::sqrt(squared_norm());
}

double AdamW::squared_norm() const {
  const float* g = parameters_.plane(Plane::grad).data();
  std::vector<double> sums(pieces_.size());
  at::parallel_for(0, static_cast<std::int64_t>(pieces_.size()), 1,
                   [&](std::int64_t begin, std::int64_t end) {
                     for (auto i = static_cast<std::size_t>(begin);
                          i < static_cast<std::size_t>(end); ++i)
                       if (pieces_[i].counted)
                         sums[i] = adam_sum_of_squares(g, pieces_[i].begin,
                                                       pieces_[i].end);
                   });
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

double AdamW::clip_scale(double norm) const {
  return settings_.clip > 0 ? std::min(1.0, settings_.clip / (norm + 1e-6))
                            : 1.0;
}

void AdamW::apply(double learning_rate, double scale, std::uint64_t step) {
  const auto t = static_cast<double>(step);
  const double beta1 = settings_.betas[0];
  const double beta2 = settings_.betas[1];
  AdamNumbers n{};
  n.scale = static_cast<float>(scale);
  n.beta1 = static_cast<float>(beta1);
  n.beta2 = static_cast<float>(beta2);
  n.step = static_cast<float>(learning_rate / (1 - std::pow(beta1, t)));
  n.root = static_cast<float>(1 / std::sqrt(1 - std::pow(beta2, t)));
  n.eps = static_cast<float>(settings_.eps);
  const auto keep
    = static_cast<float>(1 - learning_rate * settings_.weight_decay);
  const AdamMemory at{parameters_.plane(Plane::weight).data(),
                      parameters_.plane(Plane::grad).data(),
                      parameters_.plane(Plane::m).data(),
                      parameters_.plane(Plane::v).data()};
  at::parallel_for(0, static_cast<std::int64_t>(pieces_.size()), 1,
                   [&](std::int64_t begin, std::int64_t end) {
                     AdamNumbers mine = n;
                     for (auto i = static_cast<std::size_t>(begin);
                          i < static_cast<std::size_t>(end); ++i) {
                       const OptimizerRun& run = pieces_[i];
                       mine.keep = run.decay ? keep : 1.0F;
                       adam_update(mine,
                                   {at.p + run.begin, at.g + run.begin,
                                    at.m + run.moment, at.v + run.moment},
                                   run.end - run.begin);
                     }
                   });
}

void AdamW::clear_gradient() {
  const std::span<float> g = parameters_.plane(Plane::grad);
  at::parallel_for(0, static_cast<std::int64_t>(g.size()), adamw_piece_floats,
                   [&](std::int64_t begin, std::int64_t end) {
                     std::fill(g.data() + begin, g.data() + end, 0.0F);
                   });
}

} // namespace troupe::models
