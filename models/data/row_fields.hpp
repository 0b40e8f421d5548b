// The fields of a JSONL row after `data.fields`: names are mapped to columns
// ("answer", "reward_model.ground_truth") or templates over columns
// ("{question} Think first."); "{{" and "}}" are literal braces.
#pragma once

#include "config/base/error.hpp"

#include <nlohmann/json_fwd.hpp>

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace troupe::models::internal {

class FieldMapping {
public:
  FieldMapping() = default;
  /// Throws ConfigError for a template with an unbalanced or empty brace;
  /// `places` has the place where the user set each field, `word` the prefix of
  /// "NAME=COLUMN".
  FieldMapping(const std::map<std::string, std::string>& fields,
               const std::map<std::string, Place>& places,
               std::string word = "data.fields.");

  struct Part {
    bool is_column = false;
    std::string text; ///< column, or literal text
  };
  struct Source {
    bool is_template = false; ///< else one column with a value of any type
    std::vector<Part> parts;
  };
  /// Returns nullptr if `field` is not mapped.
  const Source* find(const std::string& field) const;
  const std::map<std::string, Source>& sources() const {
    return sources_;
  }
  /// Returns what to try if a row lacks `field`.
  std::string hint(const std::string& field) const {
    return word_ + field + "=COLUMN";
  }

private:
  std::map<std::string, Source> sources_;
  std::string word_ = "data.fields.";
};

/// One parsed row; accessors throw ConfigError FILE:LINE: field: ...
class RowFields {
public:
  /// Creates a view; `row`, which must be an object, and `mapping` must outlive
  /// it.
  RowFields(const FieldMapping& mapping, const nlohmann::ordered_json& row,
            Place place);

  bool has(const std::string& field) const; ///< present and not null
  bool is_text(const std::string& field) const;
  bool is_mapped(const std::string& field) const;
  /// Checks that every mapped field finds its columns, including fields that
  /// are not read yet.
  void check_mapped() const;
  std::string text(const std::string& field) const;
  /// Returns text as it is, anything else as JSON; "" if absent.
  std::string text_of_any(const std::string& field) const;
  /// Returns token ids, each in [0, end_id).
  std::vector<std::int32_t> ids(const std::string& field,
                                std::int32_t end_id) const;
  double number(const std::string& field) const; ///< finite
  bool boolean(const std::string& field) const;
  bool is_list(const std::string& field) const;
  /// Returns a list of messages, each an object that names its role.
  nlohmann::ordered_json messages(const std::string& field) const;
  [[noreturn]] void expected(const std::string& field, const std::string& what,
                             const std::string& got,
                             const std::string& hint = "") const;

private:
  std::optional<nlohmann::ordered_json> value(const std::string& field) const;
  const nlohmann::ordered_json& column(const std::string& field,
                                       const std::string& name) const;
  std::string columns() const; ///< for messages

  const FieldMapping& mapping_;
  const nlohmann::ordered_json& row_;
  Place place_;
};

} // namespace troupe::models::internal
