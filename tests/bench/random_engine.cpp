#include "random_engine.hpp"

#include "config/model/model_shape.hpp"
#include "models/gpu/gpu.hpp"
#include "models/kernels/host_backend.hpp"
#include "models/parallel/parameters.hpp"

#include "tests/support/temp_folder.hpp"

#include <algorithm>
#include <random>

namespace troupe::bench {
namespace {

/// Odd, so that rows of a matrix begin at other places of the block.
constexpr std::int64_t random_block_floats = (1 << 20) + 7;

/// Random matrices; norms are ones.
void fill_random(models::Parameters& parameters, models::Backend& backend) {
  RandomBlock random(backend);
  float* plane = parameters.plane(models::Plane::weight).data();
  for (std::size_t i = 0; i < parameters.shapes().size(); ++i) {
    const ParameterShape& own = parameters.shapes()[i];
    float* data = plane + parameters.offset(i);
    if (own.vector)
      backend.fill(data, own.num_elements(), 1.0F);
    else
      random.write(data, own.num_elements());
  }
  backend.wait();
}

} // namespace

models::Backend& backend_of(const Options& options, std::uint32_t index) {
  return options.device == "gpu" ? models::gpu_backend(index)
                                 : models::host_backend();
}

RandomBlock::RandomBlock(models::Backend& backend)
  : backend_(backend),
    block_(backend.memory()) {
  std::mt19937 random(20240607);
  std::normal_distribution<float> normal(0.0F, 0.02F);
  std::vector<float> drawn(random_block_floats);
  for (float& x : drawn)
    x = normal(random);
  backend_.write(drawn.data(), block_.reserve(random_block_floats),
                 drawn.size() * sizeof(float));
}

void RandomBlock::write(float* to, std::int64_t count) {
  while (count > 0) {
    const auto piece = std::min(random_block_floats - at_, count);
    backend_.copy(block_.data() + at_, to, piece);
    at_ = (at_ + piece) % random_block_floats;
    to += piece;
    count -= piece;
  }
}

std::unique_ptr<models::Engine> random_engine(const ModelShape& shape,
                                              const Options& options,
                                              models::Engine::Spec spec) {
  const support::TempFolder folder;
  support::write_text(folder / "config.json", print_hf_config(shape));
  spec.folder = folder.path();
  spec.role = "actor";
  spec.dtype = dtype_of(options);
  models::Backend& backend
    = backend_of(options, index_of(spec.strategy, spec.where));
  spec.backend = &backend;
  auto engine = std::make_unique<models::Engine>(std::move(spec));
  fill_random(engine->parameters(), backend);
  engine->weights_changed();
  return engine;
}

net::Rows random_rows(const std::string& column, std::int64_t count,
                      std::int64_t length, std::int64_t vocab_size) {
  std::mt19937 random(1);
  std::uniform_int_distribution<std::int32_t> token(
    3, static_cast<std::int32_t>(vocab_size) - 1);
  std::vector<std::int32_t> ids(static_cast<std::size_t>(count * length));
  for (std::int32_t& id : ids)
    id = token(random);
  net::Rows rows;
  for (std::int64_t i = 0; i < count; ++i)
    rows.samples.emplace_back(static_cast<std::uint64_t>(i));
  const std::vector<std::uint32_t> lengths(static_cast<std::size_t>(count),
                                           static_cast<std::uint32_t>(length));
  rows.add(net::make_column(column, DType::i32, lengths, ids.data()));
  return rows;
}

} // namespace troupe::bench
