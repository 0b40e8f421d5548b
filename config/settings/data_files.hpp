// The files of data.train. They are written as one name, as a list of names
// (read as one file after the other), or as a list of {path, weight} (a
// mixture, in which weights and not sizes decide how often a file's rows come).
#pragma once

#include "config/settings/settings_types.hpp"
#include "config/yaml/yaml_tree.hpp"

#include <string>
#include <vector>

namespace troupe {

/// Returns the files in the order in which they were written; those without a
/// weight have 0.
std::vector<DataSource> train_files(const DataSettings& data);
/// Replaces the files, so that one file is written as a name again.
void set_train_files(DataSettings& data, std::vector<DataSource> files);
/// Returns true if the files have weights.
bool is_mixture(const std::vector<DataSource>& files);
/// Returns "a.jsonl, b.jsonl" for tables and messages.
std::string train_text(const DataSettings& data);

/// Returns a short name of each file, no two the same: its own without folders
/// and endings, with the folder's where that is needed to tell them apart.
/// Letters that no metric's name has become "_".
std::vector<std::string> source_names(const std::vector<DataSource>& files);

/// Reads the value of data.train. Throws ConfigError with `path`.
void read_train_files(const YamlNode& node, const std::string& path,
                      DataSettings& data);
/// Returns it as it would be written.
YamlNode train_files_node(const DataSettings& data);

} // namespace troupe
