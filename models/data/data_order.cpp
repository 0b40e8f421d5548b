#include "models/data/data_order.hpp"

#include "config/base/error.hpp"
#include "config/settings/data_files.hpp"
#include "config/settings/settings.hpp"
#include "models/data/philox.hpp"

#include <numeric>
#include <utility>

namespace troupe::models {

namespace {

// Separates these draws from other users of the run's seed.
constexpr std::uint32_t data_order_stream = 0x6461'7461; // "data"

/// Draws uniformly from [0, bound); the bias is below 2^-32.
std::uint32_t draw_below(std::uint32_t bound, std::uint32_t index,
                         std::uint64_t seed, std::uint64_t epoch) {
  const PhiloxKey key{static_cast<std::uint32_t>(seed),
                      static_cast<std::uint32_t>(seed >> 32)};
  const PhiloxBlock block = philox4x32_10(
    key, {index, static_cast<std::uint32_t>(epoch),
          static_cast<std::uint32_t>(epoch >> 32), data_order_stream});
  const std::uint64_t bits = (std::uint64_t{block[0]} << 32) | block[1];
  return static_cast<std::uint32_t>(
    (static_cast<unsigned __int128>(bits) * bound) >> 64);
}

} // namespace

std::vector<std::uint32_t>
epoch_order(std::uint32_t num_rows, std::uint64_t seed, std::uint64_t epoch) {
  std::vector<std::uint32_t> order(num_rows);
  std::iota(order.begin(), order.end(), 0U);
  for (std::uint32_t i = num_rows; i > 1; --i)
    std::swap(order[i - 1], order[draw_below(i, i, seed, epoch)]);
  return order;
}

DataOrder::DataOrder(std::uint32_t num_rows, std::uint32_t batch_rows,
                     std::uint64_t seed, bool shuffle, std::uint64_t num_epochs)
  : num_rows_(num_rows),
    batch_rows_(batch_rows),
    seed_(seed),
    shuffle_(shuffle),
    num_epochs_(num_epochs) {
  TROUPE_CHECK(num_rows > 0 && batch_rows > 0, "nothing to put in order");
}

DataOrder::DataOrder(Mixture mixture, std::uint32_t batch_rows)
  : num_rows_(mixture.num_rows()),
    batch_rows_(batch_rows),
    seed_(0),
    shuffle_(false),
    num_epochs_(0),
    mixture_(std::move(mixture)) {
  TROUPE_CHECK(batch_rows > 0, "nothing to put in order");
}

std::vector<std::uint32_t> DataOrder::batch(std::uint64_t step) {
  std::vector<std::uint32_t> rows;
  for (std::uint32_t i = 0; i < batch_rows_; ++i) {
    const std::uint64_t position = step * batch_rows_ + i;
    const std::uint64_t epoch = position / num_rows_;
    if (num_epochs_ > 0 && epoch >= num_epochs_)
      break;
    if (mixture_) {
      rows.push_back(mixture_->row_at(position));
      continue;
    }
    const auto place = static_cast<std::uint32_t>(position % num_rows_);
    rows.push_back(shuffle_ ? order_of(epoch)[place] : place);
  }
  return rows;
}

std::uint64_t DataOrder::epoch_of(std::uint64_t step) const {
  return step * batch_rows_ / num_rows_;
}

const std::vector<std::uint32_t>& DataOrder::order_of(std::uint64_t epoch) {
  if (epoch != cached_epoch_) {
    cached_order_ = epoch_order(num_rows_, seed_, epoch);
    cached_epoch_ = epoch;
  }
  return cached_order_;
}

namespace {

std::uint32_t batch_rows_of(const Settings& settings) {
  return static_cast<std::uint32_t>(settings.data.batch_size
                                    * settings.algorithm.group.rounds);
}

} // namespace

DataOrder data_order(const Settings& settings, std::uint32_t num_rows) {
  return {num_rows, batch_rows_of(settings), settings.run.seed,
          settings.data.shuffle,
          // a command reads its file once
          is_command_workflow(settings.workflow) ? 1U : 0U};
}

DataOrder data_order(const Settings& settings,
                     const std::vector<std::uint32_t>& usable) {
  const auto files = train_files(settings.data);
  if (!is_mixture(files))
    return data_order(settings,
                      std::accumulate(usable.begin(), usable.end(), 0U));
  TROUPE_CHECK(files.size() == usable.size(), "rows of other files");
  std::vector<MixedFile> mixed;
  for (std::size_t i = 0; i < files.size(); ++i)
    mixed.push_back({usable[i], files[i].weight});
  return {Mixture(std::move(mixed), settings.run.seed, settings.data.shuffle),
          batch_rows_of(settings)};
}

} // namespace troupe::models
