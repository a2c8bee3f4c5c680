//===- Groups.cpp - How ranks of a run exchange data ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/zero-run/Groups.h"

#include "zero_rt/tcp.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <sys/resource.h>
#include <thread>

using namespace zero;

/// Lets this process open the sockets of |ranks|, each of which has one to each
/// other one.
static bool allowSockets(int64_t ranks, std::string &message) {
  // Files, and visitors before they are let in.
  constexpr int64_t kOthers = 512;
  auto needed = rlim_t(ranks * ranks + kOthers);
  rlimit limit = {};
  getrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur >= needed)
    return true;
  if (limit.rlim_max >= needed) {
    limit.rlim_cur = needed;
    if (setrlimit(RLIMIT_NOFILE, &limit) == 0)
      return true;
  }
  message = llvm::formatv("{0} ranks in one process need {1} open files, and "
                          "it may have {2}; raise the limit with ulimit -n, "
                          "or give fewer ranks",
                          ranks, needed, limit.rlim_max);
  return false;
}

/// The ends of ranks that find each other at a port of this machine.
static std::vector<zero_rt_group *> connectRanks(int64_t ranks,
                                                 std::string &message) {
  if (!allowSockets(ranks, message))
    return {};
  zero_rt_tcp_options options = {};
  options.struct_size = sizeof(options);
  options.ranks = int32_t(ranks);
  std::strcpy(options.host, "127.0.0.1");
  // Nobody else is to join.
  std::random_device random;
  std::snprintf(options.secret, sizeof(options.secret), "%08x%08x%08x%08x",
                random(), random(), random(), random());
  if (zero_rt_tcp_listen(&options)) {
    message = zero_rt_message();
    return {};
  }
  std::vector<zero_rt_group *> groups(ranks, nullptr);
  std::vector<std::string> messages(ranks);
  std::vector<std::thread> threads;
  for (int64_t r = 0; r < ranks; ++r)
    threads.emplace_back([&, r] {
      zero_rt_tcp_options mine = options;
      mine.rank = int32_t(r);
      mine.listener = r == 0 ? options.listener : 0;
      if (zero_rt_tcp_group_create(&mine, &groups[r]))
        messages[r] = zero_rt_message();
    });
  for (std::thread &thread : threads)
    thread.join();
  auto failed = llvm::find_if(
      messages, [](const std::string &one) { return !one.empty(); });
  if (failed == messages.end())
    return groups;
  message = *failed;
  for (zero_rt_group *group : groups)
    if (group)
      zero_rt_group_destroy(group);
  return {};
}

std::vector<zero_rt_group *> zero::createGroups(GroupKind kind, int64_t ranks,
                                                std::string &message) {
  if (kind != GroupKind::threads) {
    // Ranks read it when they join.
    setenv("ZERO_RT_SHARED_MEMORY", kind == GroupKind::shared ? "1" : "0",
           /*overwrite=*/1);
    return connectRanks(ranks, message);
  }
  zero_rt_group *group = nullptr;
  if (zero_rt_local_group_create(int32_t(ranks), &group)) {
    message = zero_rt_message();
    return {};
  }
  return {group};
}
