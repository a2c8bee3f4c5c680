//===- MpiRun.cpp - zero-run on processes of MPI --------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// mpiexec -n 4 zero-run-mpi step.mlir --ranks=4, with the options of zero-run.
// Rank 0 prints.
//
//===----------------------------------------------------------------------===//

#include "MpiProcesses.h"

#include "tools/zero-run/Main.h"

int main(int argc, char **argv) {
  zero::test::MpiProcesses processes(argc, argv);
  return zero::runTool(argc, argv, &processes);
}
