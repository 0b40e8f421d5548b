// A Kubernetes manifest: a JobSet of one master and a pod per node, whose
// workers are started again by a loop in the pod, so that the master recovers
// inside the run before Kubernetes starts anything anew. Master and workers
// find each other by the master's DNS name and know a secret that lasts.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace troupe {
struct Settings;
}

namespace troupe::runtime {

struct K8sOptions {
  std::string image = "troupe:latest";
  std::string name_space = "default";
  std::string claim = "troupe"; ///< PersistentVolumeClaim with models and runs
  std::string folder = "/data"; ///< where pods mount it; paths begin there
  std::string secret;           ///< of the cluster; empty: part of the manifest
  std::uint32_t cpus = 0;       ///< of a node's pod; 0: one per CPU device
};

/// Returns JobSet and Secret as YAML. `program` is what pods run, `words`
/// CONFIG... [key=value ...] of the command line, `secret_text` the contents of
/// a secret file.
std::string k8s_manifest(const Settings& settings, const K8sOptions& options,
                         const std::string& program,
                         const std::vector<std::string>& words,
                         const std::string& secret_text);

/// Returns a run's name as Kubernetes takes names: at most 40 small letters,
/// digits and '-'.
std::string k8s_name(const std::string& run_name);

} // namespace troupe::runtime
