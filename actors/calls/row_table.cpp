#include "actors/calls/row_table.hpp"

#include "config/base/error.hpp"

#include <algorithm>
#include <numeric>
#include <set>
#include <unordered_map>
#include <utility>

namespace troupe::actors {

namespace {

/// Holder of samples that no call has produced yet.
constexpr std::uint32_t no_holder = dataset_holder - 1;

using SampleLists = std::map<std::uint32_t, std::vector<std::uint32_t>>;

/// Returns holder -> its samples, ascending.
SampleLists samples_by_holder(const std::string& key,
                              const std::vector<std::uint32_t>& holders,
                              std::span<const std::uint32_t> wanted) {
  SampleLists samples;
  for (const auto i : wanted)
    samples[holders[i]].push_back(i);
  TROUPE_CHECK(!samples.contains(no_holder),
               "rows of '" + key + "' are read before all were produced");
  return samples;
}

std::vector<SampleId> sample_ids(const std::vector<std::uint32_t>& numbers) {
  std::vector<SampleId> ids;
  for (const auto number : numbers)
    ids.emplace_back(number);
  return ids;
}

} // namespace

void RowTable::begin(StepId step, const DataBatch& batch, std::uint32_t n,
                     std::uint32_t rounds) {
  TROUPE_CHECK(rounds > 0 && batch.rows.size() % rounds == 0,
               "rounds have equal numbers of rows");
  Step& entry = steps_[step];
  entry.batch = batch;
  entry.rounds = rounds;
  entry.rows.clear();
  entry.tokens.clear();
  for (std::size_t i = 0; i < batch.rows.size(); ++i) {
    entry.rows.insert(entry.rows.end(), n, batch.rows[i]);
    entry.tokens.insert(entry.tokens.end(), n, batch.tokens[i]);
  }
}

bool RowTable::known(StepId step) const {
  return steps_.contains(step);
}

void RowTable::produced(StepId step, const RunDone& done) {
  Step& entry = steps_.at(step);
  for (const auto& key : done.keys) {
    auto& holders = entry.holders[key];
    holders.resize(entry.tokens.size(), no_holder);
    for (const SampleId sample : done.samples) {
      TROUPE_CHECK(holders.at(sample.value) == no_holder,
                   "I6: '" + key + "' was produced twice");
      holders[sample.value] = done.holder.value;
    }
  }
  for (std::size_t i = 0; i < done.tokens.size(); ++i)
    entry.tokens.at(done.samples.at(i).value) = done.tokens[i];
}

void RowTable::keep(StepId step, std::span<const SampleId> samples) {
  Step& entry = steps_.at(step);
  for (const SampleId sample : samples) {
    TROUPE_CHECK(entry.kept.empty() || entry.kept.back() < sample.value,
                 "kept samples come in their order");
    entry.kept.push_back(sample.value);
  }
  TROUPE_CHECK(entry.kept.size() <= num_samples(step),
               "more samples are kept than a round has");
}

void RowTable::fill_up(StepId step) {
  Step& entry = steps_.at(step);
  const std::set<std::uint32_t> kept(entry.kept.begin(), entry.kept.end());
  for (std::uint32_t i = 0; !is_full(step); ++i)
    if (!kept.contains(i))
      entry.kept.push_back(i);
  std::ranges::sort(entry.kept);
}

bool RowTable::is_full(StepId step) const {
  return at(step).kept.size() == num_samples(step);
}

std::vector<SampleId> RowTable::kept(StepId step) const {
  return sample_ids(at(step).kept);
}

std::vector<RowSource> RowTable::sources(StepId step,
                                         std::span<const std::string> keys,
                                         plans::SampleRange range,
                                         bool of_kept) const {
  const Step& entry = at(step);
  std::vector<std::uint32_t> wanted(range.count);
  std::iota(wanted.begin(), wanted.end(), range.first.value);
  for (auto& sample : wanted)
    sample = of_kept ? entry.kept.at(sample) : sample;
  std::map<std::uint32_t, std::map<std::vector<std::uint32_t>, RowSource>>
    by_holder;
  std::vector<RowSource> sources;
  RowSource dataset;
  dataset.holder = dataset_;
  for (const auto& key : keys) {
    const auto found = entry.holders.find(key);
    if (found == entry.holders.end()) {
      dataset.keys.push_back(key);
      continue;
    }
    for (const auto& [holder, ids] :
         samples_by_holder(key, found->second, wanted)) {
      RowSource& source = by_holder[holder][ids];
      source.holder = holder;
      source.keys.push_back(key);
      source.samples = sample_ids(ids);
    }
  }
  for (auto& [holder, sets] : by_holder)
    for (auto& [ids, source] : sets)
      sources.push_back(std::move(source));
  if (!dataset.keys.empty()) {
    for (const auto i : wanted) {
      dataset.samples.emplace_back(i);
      dataset.rows.push_back(entry.rows.at(i));
    }
    sources.push_back(std::move(dataset));
  }
  return sources;
}

const std::vector<std::uint32_t>& RowTable::tokens(StepId step) const {
  return at(step).tokens;
}

std::vector<std::uint32_t> RowTable::trained_tokens(StepId step) const {
  const Step& entry = at(step);
  if (entry.rounds == 1)
    return entry.tokens;
  std::vector<std::uint32_t> tokens;
  for (std::uint32_t i = 0; i < num_samples(step); ++i)
    tokens.push_back(entry.tokens.at(is_full(step) ? entry.kept[i] : i));
  return tokens;
}

std::uint32_t RowTable::num_samples(StepId step) const {
  const Step& entry = at(step);
  return static_cast<std::uint32_t>(entry.tokens.size()) / entry.rounds;
}

const DataBatch& RowTable::batch(StepId step) const {
  return at(step).batch;
}

void RowTable::commit(StepId step) {
  steps_.erase(step);
}

const RowTable::Step& RowTable::at(StepId step) const {
  const auto found = steps_.find(step);
  TROUPE_CHECK(found != steps_.end(),
               "step " + to_string(step) + " has no rows");
  return found->second;
}

std::vector<std::vector<RowSource>>
narrow(const std::vector<RowSource>& sources,
       const std::vector<std::vector<SampleId>>& shares) {
  std::unordered_map<std::uint32_t, std::size_t> share_of;
  for (std::size_t i = 0; i < shares.size(); ++i)
    for (const SampleId sample : shares[i])
      share_of[sample.value] = i;
  std::vector<std::vector<RowSource>> narrowed(shares.size());
  std::vector<const RowSource*> last(shares.size(), nullptr);
  for (const auto& source : sources)
    for (std::size_t i = 0; i < source.samples.size(); ++i) {
      const auto found = share_of.find(source.samples[i].value);
      if (found == share_of.end())
        continue;
      auto& parts = narrowed[found->second];
      if (std::exchange(last[found->second], &source) != &source)
        parts.push_back({source.holder, source.keys, {}, {}});
      parts.back().samples.push_back(source.samples[i]);
      if (!source.rows.empty())
        parts.back().rows.push_back(source.rows[i]);
    }
  return narrowed;
}

} // namespace troupe::actors
