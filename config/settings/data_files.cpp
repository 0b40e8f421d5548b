#include "config/settings/data_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <set>
#include <string_view>
#include <utility>

namespace troupe {

namespace {

constexpr const char* what_train_is
  = "a file, a list of files or a list of {path, weight}";

YamlNode text_node_of(std::string text) {
  YamlNode node;
  node.kind = YamlNode::Kind::scalar;
  node.text = std::move(text);
  return node;
}

std::string weight_text(double weight) {
  return fmt::format("{}", weight);
}

const std::string& path_of_source(const YamlNode& node,
                                  const std::string& path) {
  if (!node.is_scalar() || node.text.empty())
    yaml_wrong(node, path, "the name of a file", describe(node));
  return node.text;
}

DataSource read_weighed_source(const YamlNode& node, const std::string& path) {
  DataSource source;
  for (const auto& [key, value] : node.entries) {
    if (key == "path")
      source.path = path_of_source(value, path + ".path");
    else if (key == "weight")
      source.weight = yaml_number(value, path + ".weight");
    else
      yaml_wrong(value, path + "." + key, "path or weight", "'" + key + "'");
    if (key == "weight" && !(source.weight > 0 && std::isfinite(source.weight)))
      yaml_wrong(value, path + ".weight", "a number > 0", describe(value),
                 "leaving the file out, or 1");
  }
  if (source.path.empty())
    yaml_wrong(node, path + ".path", "the name of a file", "nothing");
  return source;
}

DataSource read_source(const YamlNode& node, const std::string& path) {
  if (node.is_mapping())
    return read_weighed_source(node, path);
  return {path_of_source(node, path), 0};
}

/// Checks that all files have a weight or none, and that none comes twice.
void check_sources(const YamlNode& node, const std::string& path,
                   const std::vector<DataSource>& files) {
  const bool mixes = is_mixture(files);
  std::set<std::string> seen;
  for (std::size_t i = 0; i < files.size(); ++i) {
    const auto key = fmt::format("{}[{}]", path, i);
    if (mixes && files[i].weight == 0)
      yaml_wrong(node.items[i], key + ".weight",
                 "a number > 0, as other files have one", "nothing",
                 fmt::format("{{path: {}, weight: 1}}", files[i].path));
    if (!seen.insert(files[i].path).second)
      yaml_wrong(node.items[i], key, "another file",
                 "'" + files[i].path + "' again",
                 "a weight that makes its rows come more often");
  }
}

/// Returns the part after the last '/', without a query.
std::string_view base_name(std::string_view path) {
  if (path.find("://") != path.npos)
    path = path.substr(0, path.find_first_of("?#"));
  return path.substr(path.rfind('/') + 1); // npos + 1 is 0
}

std::string_view folder_name(std::string_view path) {
  const auto slash = path.rfind('/');
  return slash == path.npos ? std::string_view{}
                            : base_name(path.substr(0, slash));
}

std::string_view without_endings(std::string_view name) {
  constexpr std::array<std::string_view, 5> endings
    = {".gz", ".jsonl", ".json", ".ndjson", ".parquet"};
  for (bool found = true; found;) {
    found = false;
    for (const auto ending : endings)
      if (name.size() > ending.size() && name.ends_with(ending)) {
        name.remove_suffix(ending.size());
        found = true;
      }
  }
  return name;
}

std::string metric_word(std::string_view text) {
  std::string word(text);
  for (char& letter : word)
    if (std::isalnum(static_cast<unsigned char>(letter)) == 0 && letter != '_'
        && letter != '-' && letter != '.')
      letter = '_';
  return word;
}

} // namespace

std::vector<DataSource> train_files(const DataSettings& data) {
  if (!data.sources.empty())
    return data.sources;
  return data.train.empty() ? std::vector<DataSource>{}
                            : std::vector{DataSource{data.train, 0}};
}

void set_train_files(DataSettings& data, std::vector<DataSource> files) {
  data.train.clear();
  data.sources.clear();
  if (files.size() == 1 && files.front().weight == 0)
    data.train = std::move(files.front().path);
  else
    data.sources = std::move(files);
}

bool is_mixture(const std::vector<DataSource>& files) {
  return std::ranges::any_of(
    files, [](const DataSource& file) { return file.weight > 0; });
}

std::string train_text(const DataSettings& data) {
  std::string text;
  for (const auto& file : train_files(data))
    text += (text.empty() ? "" : ", ") + file.path;
  return text;
}

std::vector<std::string> source_names(const std::vector<DataSource>& files) {
  std::vector<std::string> names;
  for (const auto& file : files)
    names.push_back(metric_word(without_endings(base_name(file.path))));
  const auto short_names = names;
  for (std::size_t i = 0; i < files.size(); ++i)
    if (const auto folder = folder_name(files[i].path);
        std::ranges::count(short_names, short_names[i]) > 1 && !folder.empty())
      names[i] = metric_word(folder) + "_" + short_names[i];
  std::set<std::string> taken;
  for (auto& name : names)
    for (const auto first = name; !taken.insert(name).second;)
      name = fmt::format("{}_{}", first, taken.size());
  return names;
}

void read_train_files(const YamlNode& node, const std::string& path,
                      DataSettings& data) {
  std::vector<DataSource> files;
  if (node.is_scalar()) {
    files.push_back({node.text, 0});
  } else if (node.is_sequence() && !node.items.empty()) {
    for (std::size_t i = 0; i < node.items.size(); ++i)
      files.push_back(
        read_source(node.items[i], fmt::format("{}[{}]", path, i)));
    check_sources(node, path, files);
  } else {
    yaml_wrong(node, path, what_train_is,
               node.is_sequence() ? "an empty list" : describe(node),
               node.is_mapping() ? "[" + print_yaml_flow(node) + "]" : "");
  }
  set_train_files(data, std::move(files));
}

YamlNode train_files_node(const DataSettings& data) {
  if (data.sources.empty())
    return text_node_of(data.train);
  YamlNode list;
  list.kind = YamlNode::Kind::sequence;
  for (const auto& source : data.sources) {
    if (source.weight == 0) {
      list.items.push_back(text_node_of(source.path));
      continue;
    }
    YamlNode item;
    item.kind = YamlNode::Kind::mapping;
    item.entries.push_back({"path", text_node_of(source.path)});
    item.entries.push_back(
      {"weight", text_node_of(weight_text(source.weight))});
    list.items.push_back(std::move(item));
  }
  return list;
}

} // namespace troupe
