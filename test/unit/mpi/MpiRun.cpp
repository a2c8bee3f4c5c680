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

#include "tools/zero-run/Main.h"
#include "zero_rt/mpi.h"

#include <climits>
#include <cstdio>

namespace {

class MpiProcesses : public zero::Processes {
public:
  int64_t getRank() const override {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank;
  }
  int64_t getNumRanks() const override {
    int ranks = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    return ranks;
  }
  zero_rt_group *createGroup() const override {
    zero_rt_group *group = nullptr;
    (void)zero_rt_mpi_group_create(MPI_COMM_WORLD, &group);
    return group;
  }
  void broadcastBytes(int64_t root, void *data, size_t bytes) const override {
    if (bytes > INT_MAX)
      MPI_Abort(MPI_COMM_WORLD, 3);
    MPI_Bcast(data, int(bytes), MPI_BYTE, int(root), MPI_COMM_WORLD);
  }
};

} // namespace

int main(int argc, char **argv) {
  // Ranks run on a thread of their own, while the main thread waits for it.
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
  if (provided < MPI_THREAD_SERIALIZED) {
    std::fprintf(stderr, "MPI does not offer MPI_THREAD_SERIALIZED\n");
    MPI_Abort(MPI_COMM_WORLD, 3);
  }
  MpiProcesses processes;
  if (processes.getRank() != 0 && (!std::freopen("/dev/null", "w", stdout) ||
                                   !std::freopen("/dev/null", "w", stderr)))
    MPI_Abort(MPI_COMM_WORLD, 3);
  int code = zero::runTool(argc, argv, &processes);
  MPI_Finalize();
  return code;
}
