// The fields of a JSONL row after `data.fields`: names are mapped to columns
// ("answer", "reward_model.ground_truth") or templates over columns
// ("{question} Think first."); "{{" and "}}" are literal braces.
#pragma once

#include "config/error.hpp"

#include <nlohmann/json_fwd.hpp>

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace troupe::models::internal {

class FieldMapping {
public:
  FieldMapping() = default;
  /// ConfigError for a template with an unbalanced or empty brace; `places`
  /// says where the user set each field, `word` what "NAME=COLUMN" follows.
  FieldMapping(const std::map<std::string, std::string>& fields,
               const std::map<std::string, Place>& places,
               std::string word = "data.fields.");

  struct Part {
    bool is_column = false;
    std::string text; ///< the column, or literal text
  };
  struct Source {
    bool is_template = false; ///< else one column, whose value may be anything
    std::vector<Part> parts;
  };
  /// nullptr where `field` is not mapped.
  const Source* find(const std::string& field) const;
  const std::map<std::string, Source>& sources() const {
    return sources_;
  }
  /// What to try where a row lacks `field`.
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
  /// `row` and `mapping` must outlive this; the row must be an object.
  RowFields(const FieldMapping& mapping, const nlohmann::ordered_json& row,
            Place place);

  bool has(const std::string& field) const; ///< there and not null
  bool is_text(const std::string& field) const;
  bool is_mapped(const std::string& field) const;
  /// Every mapped field must find its columns, also those nobody reads yet.
  void check_mapped() const;
  std::string text(const std::string& field) const;
  /// Text as it is, anything else as JSON; "" if it is not there.
  std::string text_of_any(const std::string& field) const;
  /// Token ids, each in 0 .. end_id-1.
  std::vector<std::int32_t> ids(const std::string& field,
                                std::int32_t end_id) const;
  bool is_list(const std::string& field) const;
  /// A list of messages, each an object that names its role.
  nlohmann::ordered_json messages(const std::string& field) const;
  [[noreturn]] void expected(const std::string& field, const std::string& what,
                             const std::string& got,
                             const std::string& hint = "") const;

private:
  std::optional<nlohmann::ordered_json> value(const std::string& field) const;
  const nlohmann::ordered_json& column(const std::string& field,
                                       const std::string& name) const;
  std::string columns() const; ///< their names, for messages

  const FieldMapping& mapping_;
  const nlohmann::ordered_json& row_;
  Place place_;
};

} // namespace troupe::models::internal
