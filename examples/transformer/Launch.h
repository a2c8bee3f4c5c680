//===- Launch.h - A rank that is a process ----------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_EXAMPLES_TRANSFORMER_LAUNCH_H
#define ZERO_EXAMPLES_TRANSFORMER_LAUNCH_H

#include "zero_rt/abi.h"

#include <functional>

namespace transformer {

/// The rank that this process is, where a launcher has started a process for
/// each rank.
struct Launch {
  int rank = 0;
  int ranks = 1;
  int localRank = 0; // on its machine
  /// This rank's end of their group, which the caller destroys. It waits for
  /// all ranks, and ends the program on any status that is not ok.
  std::function<zero_rt_group *()> connect;
};

/// The rank that torchrun, srun or mpiexec has put into the environment. Ends
/// the program if there is none.
Launch readLaunch();

} // namespace transformer

#endif // ZERO_EXAMPLES_TRANSFORMER_LAUNCH_H
