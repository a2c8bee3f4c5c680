//===- Team.cpp - Ranks that run operations on command --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/zero-bench/Team.h"

#include "tools/zero-bench/Bench.h"
#include "zero_rt/step.h"
#include "zero_rt/tcp.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace zero::bench;

static zero_rt_tcp_options listenAtFreePort(int32_t ranks) {
  zero_rt_tcp_options options = {};
  options.struct_size = sizeof(options);
  options.ranks = ranks;
  std::snprintf(options.host, sizeof(options.host), "127.0.0.1");
  // An error is that of the process group, too.
  (void)zero_rt_tcp_listen(&options);
  return options;
}

Team::Team(Kind kind, const zero_rt_library *library, int32_t ranks,
           std::vector<Operation> operations)
    : library(library), operations(std::move(operations)) {
  bool isForked = kind != Kind::threads;
  zero_rt_tcp_options options = {};
  if (isForked)
    options = listenAtFreePort(ranks);
  else
    (void)zero_rt_local_group_create(ranks, &group);
  for (int32_t rank = 0; rank < ranks; ++rank) {
    int ends[2] = {-1, -1};
    // Without a socket or a process, the reply is missing.
    (void)socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends);
    commands.push_back(ends[0]);
    if (!isForked) {
      threads.emplace_back([=] { runRank(rank, group, ends[1]); });
      continue;
    }
    processes.push_back(fork());
    if (processes.back() == 0) {
      for (int command : commands)
        close(command);
      options.rank = rank;
      if (rank != 0)
        options.listener = 0;
      if (kind == Kind::tcp)
        setenv("ZERO_RT_SHARED_MEMORY", "0", /*overwrite=*/1);
      zero_rt_group *mine = nullptr;
      (void)zero_rt_tcp_group_create(&options, &mine);
      runRank(rank, mine, ends[1]);
      _exit(0);
    }
    close(ends[1]);
  }
  if (isForked && options.listener > 0)
    close(options.listener);
}

Team::~Team() {
  for (int command : commands)
    close(command);
  for (std::thread &thread : threads)
    thread.join();
  for (int process : processes)
    if (process > 0)
      waitpid(process, nullptr, 0);
  if (group)
    zero_rt_group_destroy(group);
}

void Team::runRank(int32_t rank, zero_rt_group *group, int command) {
  zero_rt_runtime *runtime = nullptr;
  zero_rt_step *step = nullptr;
  if (group && !zero_rt_create(group, rank, nullptr, &runtime))
    (void)zero_rt_step_create(runtime, library, nullptr, &step);
  obey(rank, step, command);
  close(command);
  if (step)
    zero_rt_step_destroy(step);
  if (runtime)
    zero_rt_destroy(runtime);
}

/// Without a step, the message is that of the call that failed.
void Team::obey(int32_t rank, zero_rt_step *step, int command) {
  size_t number = 0;
  while (recv(command, &number, sizeof(number), MSG_WAITALL) ==
         ssize_t(sizeof(number))) {
    bool isOk = step != nullptr;
    // Only handlers make this call otherwise.
    if (isOk) {
      const auto &calls =
          **reinterpret_cast<const zero_rt_calls *const *>(step);
      isOk = !calls.all_reduce_scalars(step, 0, 1, 0, ZERO_RT_STREAM_COMPUTE);
    }
    Reply reply = {};
    reply.timeMs =
        measure([&] { isOk = isOk && !operations[number](rank, step); });
    if (!isOk) {
      reply.timeMs = -1;
      std::snprintf(reply.message, sizeof(reply.message), "rank %d: %s", rank,
                    zero_rt_message());
    }
    (void)send(command, &reply, sizeof(reply), MSG_NOSIGNAL);
  }
}

double Team::run(size_t operation, std::string &message) {
  for (int command : commands)
    (void)send(command, &operation, sizeof(operation), MSG_NOSIGNAL);
  double slowest = 0;
  for (int command : commands) {
    Reply reply = {};
    if (recv(command, &reply, sizeof(reply), MSG_WAITALL) !=
        ssize_t(sizeof(reply))) {
      reply.timeMs = -1;
      std::snprintf(reply.message, sizeof(reply.message), "a rank is gone");
    }
    if (reply.timeMs < 0)
      message = reply.message;
    slowest =
        reply.timeMs < 0 || slowest < 0 ? -1 : std::max(slowest, reply.timeMs);
  }
  return slowest;
}
