#include "engine_support.hpp"

#include "models/hf/safetensors.hpp"
#include "models/hf/stored_parameters.hpp"

#include "backend_support.hpp"

#include <barrier>
#include <cstring>
#include <fstream>
#include <random>

namespace troupe::testing {

namespace {

struct ThreadGroup {
  explicit ThreadGroup(std::uint32_t size)
    : barrier(static_cast<std::ptrdiff_t>(size)),
      data(size) {}
  std::barrier<> barrier;
  std::vector<void*> data;
};

class ThreadCollectives : public net::Collectives {
public:
  ThreadCollectives(std::shared_ptr<ThreadGroup> group, std::uint32_t rank)
    : group_(std::move(group)),
      rank_(rank) {}
  std::uint32_t rank() const noexcept override {
    return rank_;
  }
  std::uint32_t size() const noexcept override {
    return static_cast<std::uint32_t>(group_->data.size());
  }
  void all_reduce_sum(void* data, std::size_t count, DType dtype,
                      const char*) override {
    if (dtype == DType::f64)
      reduce<double>(data, count);
    else
      reduce<float>(data, count);
  }
  void all_gather(const void*, void*, std::size_t, DType,
                  const char*) override {
    std::abort();
  }
  void reduce_scatter_sum(const void*, void*, std::size_t, DType,
                          const char*) override {
    std::abort();
  }
  void broadcast(void*, std::size_t, DType, std::uint32_t,
                 const char*) override {
    std::abort();
  }
  void exchange(const net::Pieces&, const char*) override {
    std::abort();
  }
  void barrier(const char*) override {
    group_->barrier.arrive_and_wait();
  }
  std::optional<Failure> failure() override {
    return std::nullopt;
  }
  void abort(const Failure&) noexcept override {}

private:
  template <class T>
  void reduce(void* data, std::size_t count) {
    group_->data[rank_] = data;
    group_->barrier.arrive_and_wait();
    std::vector<T> sum(count, T{0});
    for (void* member : group_->data)
      for (std::size_t i = 0; i < count; ++i)
        sum[i] += static_cast<const T*>(member)[i];
    group_->barrier.arrive_and_wait();
    std::memcpy(data, sum.data(), count * sizeof(T));
    group_->barrier.arrive_and_wait();
  }

  std::shared_ptr<ThreadGroup> group_;
  std::uint32_t rank_;
};

} // namespace

void write_random_model(const std::filesystem::path& folder,
                        const ModelShape& shape, std::uint64_t seed) {
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "config.json") << print_hf_config(shape);
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal(0.0F, 0.1F);
  const std::vector<ParameterShape> all = parameters(shape);
  std::vector<std::vector<float>> data(all.size());
  std::vector<models::ParameterValues> values;
  for (std::size_t k = 0; k < all.size(); ++k) {
    const ParameterShape& p = all[k];
    std::vector<float>& own = data[k];
    const bool norm = p.name.find("norm") != std::string::npos;
    for (std::int64_t i = 0; i < p.num_elements(); ++i)
      own.push_back(normal(random) + (norm ? 1.0F : 0.0F));
    values.push_back({&p, std::as_bytes(std::span<const float>(own))});
  }
  models::write_weights(folder,
                        models::FileTensors(values, DType::f32).tensors());
}

std::vector<SampleId> first_samples(std::size_t count) {
  std::vector<SampleId> samples;
  for (std::size_t i = 0; i < count; ++i)
    samples.emplace_back(i);
  return samples;
}

models::Engine::Spec trained_actor(const std::filesystem::path& folder) {
  models::Engine::Spec spec;
  spec.backend = &backend_under_test();
  spec.folder = folder;
  spec.role = "actor";
  spec.trainable = true;
  spec.optimizer.lr = 1e-3;
  spec.optimizer.warmup = 0;
  spec.total_optimizer_steps = 10;
  return spec;
}

models::Engine::Spec compared_actor(const std::filesystem::path& folder) {
  models::Engine::Spec spec = trained_actor(folder);
  spec.optimizer.eps = 1e-6;
  return spec;
}

namespace {

// Sequences and the masks of their responses, random numbers being drawn in the
// order of their use.
struct RandomSequences {
  std::mt19937_64 random;
  std::vector<std::vector<std::int32_t>> ids = {};
  std::vector<std::vector<std::uint8_t>> masks = {};

  void append(std::size_t length, std::int32_t vocab) {
    const std::size_t prompt = 1 + random() % (length - 1);
    auto& own = ids.emplace_back();
    auto& mask = masks.emplace_back();
    for (std::size_t t = 0; t < length; ++t) {
      own.push_back(static_cast<std::int32_t>(
        random() % static_cast<std::uint64_t>(vocab)));
      mask.push_back(t >= prompt ? 1 : 0);
    }
  }
  net::Rows rows() const {
    return {first_samples(ids.size()),
            {column_of("sequence_ids", DType::i32, ids),
             column_of("loss_mask", DType::u8, masks)}};
  }
};

} // namespace

net::Rows random_sequences(std::size_t count, std::int32_t vocab,
                           std::size_t longest, std::uint64_t seed) {
  RandomSequences made{.random = std::mt19937_64(seed)};
  for (std::size_t i = 0; i < count; ++i)
    made.append(2 + made.random() % (longest - 1), vocab);
  return made.rows();
}

net::Rows sequences_of(const std::vector<std::size_t>& lengths,
                       std::int32_t vocab, std::uint64_t seed) {
  RandomSequences made{.random = std::mt19937_64(seed)};
  for (const std::size_t length : lengths)
    made.append(length, vocab);
  return made.rows();
}

net::Rows random_prompts(std::int32_t vocab) {
  constexpr std::size_t longest = 12;
  const auto sequences = random_sequences(6, vocab, longest, 6);
  auto ids = sequences.at("sequence_ids");
  ids.key = "prompt_ids";
  return {sequences.samples, {std::move(ids)}};
}

net::Rows random_responses(std::size_t prompts, std::size_t responses,
                           std::int32_t vocab, std::size_t longest,
                           std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto tokens = [&](std::size_t count) {
    std::vector<std::int32_t> made(count);
    for (auto& id : made)
      id = static_cast<std::int32_t>(random()
                                     % static_cast<std::uint64_t>(vocab));
    return made;
  };
  std::vector<std::vector<std::int32_t>> ids;
  std::vector<std::vector<std::uint8_t>> masks;
  for (std::size_t i = 0; i < prompts; ++i) {
    const auto prompt = tokens(1 + random() % longest);
    for (std::size_t j = 0; j < responses; ++j) {
      const auto response = tokens(random() % longest);
      ids.push_back(prompt);
      ids.back().insert(ids.back().end(), response.begin(), response.end());
      masks.emplace_back(prompt.size(), 0).resize(ids.back().size(), 1);
    }
  }
  return {first_samples(prompts * responses),
          {column_of("sequence_ids", DType::i32, ids),
           column_of("loss_mask", DType::u8, masks)}};
}

std::vector<std::shared_ptr<net::Collectives>>
thread_collectives(std::uint32_t size) {
  const auto group = std::make_shared<ThreadGroup>(size);
  std::vector<std::shared_ptr<net::Collectives>> members;
  for (std::uint32_t rank = 0; rank < size; ++rank)
    members.push_back(
      over_device(std::make_shared<ThreadCollectives>(group, rank)));
  return members;
}

} // namespace troupe::testing
