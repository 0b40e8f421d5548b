// The section `models` of a run's settings: where the weights of a role are,
// how they are stored, and how they are trained.
#pragma once

#include <array>
#include <string>
#include <vector>

namespace troupe {

struct OptimizerSettings {
  double lr = 1e-5;
  double weight_decay = 0.05;
  std::array<double, 2> betas = {0.9, 0.95};
  double eps = 1e-8;
  std::string schedule = "cosine"; ///< cosine | linear | constant
  double warmup = 0.02; ///< < 1: share of all optimizer steps, else steps
  double clip = 1.0;    ///< global gradient norm; 0: off
  double router_bias_rate = 0;     ///< of corrections of experts' scores
  double router_aux_loss_coef = 0; ///< of the balance of a sequence's experts
  bool operator==(const OptimizerSettings&) const = default;
};

/// Low-rank adapters (config/model/lora.hpp).
struct LoraSettings {
  int rank = 0; ///< 0: all weights are trained
  double alpha = 16;
  std::vector<std::string> targets = {"all-linear"};
};

struct ModelSettings {
  std::string path;
  std::string dtype = "auto";      ///< auto | fp32 | bf16
  std::string save_dtype = "auto"; ///< auto | fp32 | bf16
  OptimizerSettings optimizer;     ///< trained roles only
  LoraSettings lora;               ///< trained roles only
  double ema_decay = 1.0;          ///< of an EMA role; 1: frozen
  int ema_every = 1;               ///< in updates of the tracked role
};

} // namespace troupe
