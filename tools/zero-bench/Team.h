//===- Team.h - Ranks that run operations on command ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_ZERO_BENCH_TEAM_H
#define ZERO_TOOLS_ZERO_BENCH_TEAM_H

#include "zero_rt/library.h"

#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace zero::bench {

/// Ranks with a step each. Several teams can exist at the same time, so that
/// their times are taken in turn.
class Team {
public:
  /// Runs on each rank.
  using Operation = std::function<zero_rt_status(int32_t rank, zero_rt_step *)>;
  enum class Kind {
    threads,
    processes, // of one machine; started before any thread of this process
    tcp        // the same, as if each were on a machine of its own
  };

  Team(Kind kind, const zero_rt_library *library, int32_t ranks,
       std::vector<Operation> operations);
  ~Team();
  Team(const Team &) = delete;
  Team &operator=(const Team &) = delete;

  /// The milliseconds of the slowest rank for |operation|, which all ranks
  /// begin together; negative on an error.
  double run(size_t operation, std::string &message);

private:
  struct Reply {
    double timeMs;
    char message[248];
  };
  void runRank(int32_t rank, zero_rt_group *group, int command);
  void obey(int32_t rank, zero_rt_step *step, int command);

  const zero_rt_library *library;
  std::vector<Operation> operations;
  zero_rt_group *group = nullptr; // of threads
  std::vector<std::thread> threads;
  std::vector<int> processes;
  std::vector<int> commands; // sockets, by rank
};

} // namespace zero::bench

#endif // ZERO_TOOLS_ZERO_BENCH_TEAM_H
