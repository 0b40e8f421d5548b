// A later file or the command line may switch off what an earlier file set up:
// `eval.data=` ends the evaluation although the file says how often to run it.
// Settings that then have no reader are left out instead of refused.
#pragma once

#include "config/settings.hpp"
#include "config/yaml_tree.hpp"

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace troupe {

/// The layers that settings were merged from: files, then the command line.
struct MergedLayers {
  std::vector<std::string> files; ///< before the command line
  /// Each key that a null or a whole new mapping took away, with the number of
  /// the last layer that did so.
  std::map<std::string, std::size_t> removed;
};

/// Notes in `removed` what merging `layer`, the `number`-th, takes away.
void note_removed(const YamlNode& layer, std::size_t number,
                  std::map<std::string, std::size_t>& removed);

/// Resets each setting of an earlier layer whose reader a later layer switched
/// off, and forgets that it was set. Returns the dotted keys that were left
/// out, by the file that switched off what reads them, or "the command line".
std::map<std::string, std::vector<std::string>>
leave_out_switched_off(Settings& settings, const MergedLayers& layers);

} // namespace troupe
