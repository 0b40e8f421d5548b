#include "models/losses/loss.hpp"

#include "config/base/error.hpp"

namespace troupe::models {

const at::Tensor& TrainBatch::at(std::string_view key) const {
  const auto it = columns.find(key);
  TROUPE_CHECK(it != columns.end(),
               "the rows did not bring '" + std::string(key) + "'");
  return it->second;
}

void take_carried(const LossEntry& loss, std::string_view name, double value,
                  LossSettings& settings) {
  for (const CarriedSetting& taken : loss.carried)
    if (taken.name == name)
      settings.*taken.setting = value;
}

void Losses::add(LossEntry entry) {
  for (const LossEntry& known : entries_)
    TROUPE_CHECK(known.name != entry.name,
                 "loss '" + entry.name + "' is there already");
  entries_.push_back(std::move(entry));
}

void Losses::set(LossEntry entry) {
  for (LossEntry& known : entries_)
    if (known.name == entry.name) {
      known = std::move(entry);
      return;
    }
  entries_.push_back(std::move(entry));
}

std::vector<std::string> Losses::names() const {
  std::vector<std::string> names;
  for (const auto& entry : entries_)
    names.push_back(entry.name);
  return names;
}

const LossEntry& Losses::find(std::string_view name) const {
  std::string known;
  for (const LossEntry& entry : entries_) {
    if (entry.name == name)
      return entry;
    known += (known.empty() ? "" : ", ") + entry.name;
  }
  throw ConfigError({.place = {},
                     .path = "fn",
                     .expected = "a loss (" + known + ")",
                     .got = "'" + std::string(name) + "'",
                     .hint = ""});
}

} // namespace troupe::models
