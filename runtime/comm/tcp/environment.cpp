//===- environment.cpp - What launchers tell a process --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "zero_rt/tcp.h"

#include "comm/tcp/authentication.h"
#include "core/structs.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

using namespace zero_rt;

/// The variables of a launcher.
namespace {
struct Launcher {
  const char *rank;
  const char *ranks;
  const char *localRank;
};
} // namespace

static const Launcher launchers[] = {
    {"RANK", "WORLD_SIZE", "LOCAL_RANK"},
    {"SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_RANK"}};

static zero_rt_status readNumber(const char *name, int32_t least, int32_t most,
                                 int32_t &out) {
  const char *text = std::getenv(name);
  if (!text)
    return fail(ZERO_RT_INVALID_ARGUMENT, "%s is not set", name);
  char *end = nullptr;
  long value = std::strtol(text, &end, 10);
  if (end == text || *end || value < least || value > most)
    return fail(ZERO_RT_INVALID_ARGUMENT,
                "%s is '%s', expected a number from %d to %d", name, text,
                least, most);
  out = int32_t(value);
  return ZERO_RT_OK;
}

static zero_rt_status readRank(zero_rt_tcp_options &options) {
  for (const Launcher &launcher : launchers) {
    if (!std::getenv(launcher.rank) && !std::getenv(launcher.ranks))
      continue;
    ZERO_RT_TRY(readNumber(launcher.ranks, 1, 1 << 20, options.ranks));
    if (std::getenv(launcher.localRank))
      ZERO_RT_TRY(readNumber(launcher.localRank, 0, options.ranks - 1,
                             options.local_rank));
    return readNumber(launcher.rank, 0, options.ranks - 1, options.rank);
  }
  return fail(ZERO_RT_INVALID_ARGUMENT,
              "RANK and WORLD_SIZE are not set; start the ranks with torchrun, "
              "srun or mpiexec, or set them");
}

/// The first node of a list such as "a[03-07,9],b": "a03".
static std::string firstNode(const char *list) {
  std::string node(list, std::strcspn(list, ",["));
  if (list[node.size()] == '[') {
    const char *number = list + node.size() + 1;
    node.append(number, std::strcspn(number, ",-]"));
  }
  return node;
}

/// Copies |value|, which variable |name| gives, to a field of the options.
template <size_t size>
static zero_rt_status copyValue(const char *name, const std::string &value,
                                char (&out)[size]) {
  if (value.size() >= size)
    return fail(ZERO_RT_INVALID_ARGUMENT,
                "%s gives %zu characters, expected at most %zu", name,
                value.size(), size - 1);
  if (value.find('\0') != std::string::npos)
    return fail(ZERO_RT_INVALID_ARGUMENT,
                "%s gives a value with a zero byte, which would end it; write "
                "random bytes as text, such as base64",
                name);
  std::snprintf(out, size, "%s", value.c_str());
  return ZERO_RT_OK;
}

/// What distinguishes this job from others on the same machines.
static zero_rt_status readJob(zero_rt_tcp_options &options) {
  const char *step = std::getenv("SLURM_STEP_ID");
  for (const char *name :
       {"ZERO_RT_JOB", "TORCHELASTIC_RUN_ID", "SLURM_JOB_ID", "PMIX_NAMESPACE"})
    if (const char *value = std::getenv(name)) {
      std::string job = value;
      if (step && std::strcmp(name, "SLURM_JOB_ID") == 0)
        job += std::string(".") + step;
      return copyValue(name, job, options.job);
    }
  return ZERO_RT_OK;
}

static zero_rt_status readSecretOf(zero_rt_tcp_options &options) {
  const char *name = "ZERO_RT_SECRET_FILE";
  std::string secret;
  if (const char *path = std::getenv(name))
    ZERO_RT_TRY(readSecret(path, secret));
  else if (const char *value = std::getenv(name = "ZERO_RT_SECRET"))
    secret = value;
  else
    return ZERO_RT_OK;
  if (secret.empty())
    return fail(ZERO_RT_INVALID_ARGUMENT, "%s gives no secret", name);
  return copyValue(name, secret, options.secret);
}

ZERO_RT_EXPORT zero_rt_status
zero_rt_tcp_environment(zero_rt_tcp_options *out_options) {
  ZERO_RT_TRY(checkStruct(out_options, "out_options"));
  zero_rt_tcp_options options = {};
  ZERO_RT_TRY(readRank(options));
  constexpr int32_t mostPort = 65535;
  if (std::getenv("ZERO_RT_PORT")) {
    ZERO_RT_TRY(readNumber("ZERO_RT_PORT", 1, mostPort, options.port));
  } else if (std::getenv("MASTER_PORT")) {
    ZERO_RT_TRY(readNumber("MASTER_PORT", 1, mostPort - 1, options.port));
    ++options.port;
  } else {
    options.port = 29501;
  }
  const char *nodes = std::getenv("SLURM_JOB_NODELIST");
  const char *host = std::getenv("MASTER_ADDR");
  std::string name = host ? host : nodes ? firstNode(nodes) : "127.0.0.1";
  if (name.empty() || name.size() >= sizeof(options.host))
    return fail(ZERO_RT_INVALID_ARGUMENT, "%s is no host: '%s'",
                host ? "MASTER_ADDR" : "SLURM_JOB_NODELIST", name.c_str());
  std::snprintf(options.host, sizeof(options.host), "%s", name.c_str());
  ZERO_RT_TRY(readJob(options));
  ZERO_RT_TRY(readSecretOf(options));
  const char *interface = "ZERO_RT_INTERFACE";
  if (const char *value = std::getenv(interface))
    ZERO_RT_TRY(copyValue(interface, value, options.network_interface));
  writeStruct(options, out_options);
  return ZERO_RT_OK;
}
