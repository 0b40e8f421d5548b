// Settings that a later layer switches off: a later file or the command line
// may disable what an earlier file set up. `eval.data=` ends the evaluation
// although the file gives its period. Settings that then have no reader are
// left out instead of refused.
#pragma once

#include "config/settings/settings.hpp"
#include "config/yaml/yaml_tree.hpp"

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace troupe {

/// The layers from which settings were merged: files, then the command line.
struct MergedLayers {
  std::vector<std::string> files; ///< before the command line
  /// Each key that a null or a whole new mapping removed, with the number of
  /// the last layer that did so.
  std::map<std::string, std::size_t> removed;
};

/// Records in `removed` the keys that merging `layer`, with index `number`,
/// removes.
void note_removed(const YamlNode& layer, std::size_t number,
                  std::map<std::string, std::size_t>& removed);

/// Resets each setting of an earlier layer whose reader a later layer switched
/// off, so that it no longer counts as set. Returns the dotted keys that were
/// left out, by the file that switched off their reader, or "the command line".
std::map<std::string, std::vector<std::string>>
leave_out_switched_off(Settings& settings, const MergedLayers& layers);

} // namespace troupe
