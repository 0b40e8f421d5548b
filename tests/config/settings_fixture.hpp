// Files of settings in their own folder, and the lines that users see for the
// mistakes in them.
#pragma once

#include "config/settings/mistakes.hpp"
#include "config/settings/settings.hpp"

#include <gtest/gtest.h>

#include "tests/support/temp_folder.hpp"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace troupe::support {

class SettingsFixture : public ::testing::Test {
protected:
  SettingsFixture() {
    std::filesystem::current_path(folder_.path());
    write("ppo.yaml", "workflow: ppo\n"
                      "run: {steps: 60}\n"
                      "models:\n"
                      "  actor: {path: a}\n"
                      "  critic: {path: c}\n"
                      "  reward: {path: r}\n"
                      "data: {train: p.jsonl}\n");
    write("sft.yaml", "workflow: sft\n"
                      "run: {steps: 60}\n"
                      "models: {actor: {path: a}}\n"
                      "data: {train: p.jsonl}\n");
  }
  ~SettingsFixture() override {
    std::filesystem::current_path("/");
  }
  static void write(const std::string& name, const std::string& text) {
    std::ofstream(name) << text;
  }
  /// The lines of all mistakes.
  static std::vector<std::string>
  errors(const std::vector<std::string>& files,
         const std::vector<std::string>& overrides) {
    std::vector<std::string> lines;
    try {
      load_settings(files, overrides);
    } catch (const ConfigErrors& caught) {
      for (const auto& mistake : caught.all())
        lines.emplace_back(mistake.what());
    } catch (const ConfigError& caught) {
      lines.emplace_back(caught.what());
    }
    return lines;
  }
  static std::string error(const std::vector<std::string>& files,
                           const std::vector<std::string>& overrides) {
    try {
      load_settings(files, overrides);
    } catch (const ConfigError& caught) {
      return caught.what();
    }
    return "no error";
  }
  /// Returns the mistakes of `text` merged over the valid ppo.yaml.
  static std::string ppo(const std::string& text) {
    write("x.yaml", text);
    return error({"ppo.yaml", "x.yaml"}, {});
  }
  static std::string sft(const std::string& text) {
    write("x.yaml", text);
    return error({"sft.yaml", "x.yaml"}, {});
  }
  static std::string over(const std::string& text) {
    return error({"ppo.yaml"}, {text});
  }
  TempFolder folder_;
};

} // namespace troupe::support
