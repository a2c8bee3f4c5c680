//===- MpiTraining.cpp - char_model on processes of MPI -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// mpiexec -n 4 char_model-mpi --mesh=pp=2,dp=2 ..., with the options of
// char_model, which is for TCP and shared memory alone.
//
//===----------------------------------------------------------------------===//

#include "MpiProcesses.h"

#include "examples/transformer/CharModel.h"
#include "examples/transformer/Check.h"

int main(int argc, char **argv) {
  zero::test::MpiProcesses processes(argc, argv);
  transformer::Launch launch;
  launch.rank = int(processes.getRank());
  launch.localRank = launch.rank; // on one machine
  launch.ranks = int(processes.getNumRanks());
  launch.connect = [&] {
    zero_rt_group *group = processes.createGroup();
    if (!group)
      transformer::fail(zero_rt_message());
    return group;
  };
  return transformer::runTool(argc, argv, &launch);
}
