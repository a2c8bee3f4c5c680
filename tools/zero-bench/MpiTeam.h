//===- MpiTeam.h - Processes of MPI that run collectives --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_ZERO_BENCH_MPITEAM_H
#define ZERO_TOOLS_ZERO_BENCH_MPITEAM_H

#include <cstdint>
#include <cstdio>
#include <string>

namespace zero::bench {

/// Processes of Open MPI over TCP, the reference of those of Team.
class MpiTeam {
public:
  MpiTeam(int32_t ranks, int64_t bytes);
  ~MpiTeam();
  MpiTeam(const MpiTeam &) = delete;
  MpiTeam &operator=(const MpiTeam &) = delete;

  /// Whether there was an MPI when zero-bench was built.
  static bool isAvailable();
  /// The milliseconds of the slowest rank for the collective with this number;
  /// negative on an error.
  double run(size_t collective, std::string &message);

private:
  int process = -1;
  std::FILE *commands = nullptr;
  std::FILE *replies = nullptr;
};

} // namespace zero::bench

#endif // ZERO_TOOLS_ZERO_BENCH_MPITEAM_H
