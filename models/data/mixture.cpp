#include "models/data/mixture.hpp"

#include "config/base/error.hpp"
#include "models/data/data_order.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::models {

namespace {

/// Weights become whole numbers of this many parts, so that no sum depends on
/// how a machine rounds.
constexpr double parts_of_all = 1U << 30;

/// Keeps the orders of a mixture's files apart from each other: the odd number
/// nearest to 2^64 divided by the golden ratio.
constexpr std::uint64_t seed_step = 0x9E3779B97F4A7C15;

/// Returns how many of the first `positions` go to the first of two that share
/// them: the nearest whole number.
std::uint64_t given_of(std::uint64_t positions, std::uint64_t share,
                       std::uint64_t of) {
  const auto scaled
    = static_cast<unsigned __int128>(positions) * share + of / 2;
  return static_cast<std::uint64_t>(scaled / of);
}

} // namespace

Mixture::Mixture(std::vector<MixedFile> files, std::uint64_t seed, bool shuffle)
  : seed_(seed),
    shuffle_(shuffle) {
  TROUPE_CHECK(!files.empty(), "nothing to mix");
  double all = 0;
  for (const auto& file : files)
    all += file.weight;
  std::uint64_t of = 0;
  for (const auto& file : files) {
    TROUPE_CHECK(file.rows > 0 && file.weight > 0, "a file without a share");
    const auto parts = std::llround(file.weight / all * parts_of_all);
    File& mixed = files_.emplace_back();
    mixed.rows = file.rows;
    mixed.first = num_rows_;
    mixed.share = static_cast<std::uint64_t>(std::max(parts, 1LL));
    num_rows_ += file.rows;
    of += mixed.share;
  }
  for (auto& file : files_) {
    file.of = of;
    of -= file.share;
  }
}

Mixture::Turn Mixture::turn_at(std::uint64_t position) const {
  for (std::size_t i = 0; i + 1 < files_.size(); ++i) {
    const auto& file = files_[i];
    const auto before = given_of(position, file.share, file.of);
    if (given_of(position + 1, file.share, file.of) > before)
      return {i, before};
    position -= before; // among those of the files after it
  }
  return {files_.size() - 1, position};
}

std::uint32_t Mixture::row_at(std::uint64_t position) {
  const auto turn = turn_at(position);
  auto& file = files_[turn.file];
  const auto place = static_cast<std::uint32_t>(turn.before % file.rows);
  if (!shuffle_)
    return file.first + place;
  const auto epoch = turn.before / file.rows;
  if (epoch != file.cached_epoch) {
    file.cached_order
      = epoch_order(file.rows, seed_ + (turn.file + 1) * seed_step, epoch);
    file.cached_epoch = epoch;
  }
  return file.first + file.cached_order[place];
}

} // namespace troupe::models
