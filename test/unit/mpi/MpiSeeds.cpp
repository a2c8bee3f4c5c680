//===- MpiSeeds.cpp - The tests of seeds on processes of MPI --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// mpiexec -n 4 zero_seeds_mpi_tests: the tests of steps that are compiled for
// four ranks. Each process makes them all, and rank 0 prints.
//
//===----------------------------------------------------------------------===//

#include "MpiProcesses.h"

#include "test/unit/seeds/Steps.h"

using namespace zero::test;

int main(int argc, char **argv) {
  MpiProcesses processes(argc, argv);
  testing::InitGoogleTest(&argc, argv);
  setProcesses(&processes);
  int failed = RUN_ALL_TESTS();
  // A test may fail in one process only.
  MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  std::printf("%lld steps on %lld processes of MPI\n",
              (long long)getNumStepsOnProcesses(),
              (long long)processes.getNumRanks());
  return failed || getNumStepsOnProcesses() == 0;
}
