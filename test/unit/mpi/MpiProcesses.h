//===- MpiProcesses.h - Ranks that are processes of MPI ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TEST_UNIT_MPI_MPIPROCESSES_H
#define ZERO_TEST_UNIT_MPI_MPIPROCESSES_H

#include "tools/zero-run/Groups.h"
#include "zero_rt/mpi.h"

#include <climits>
#include <cstdio>

namespace zero::test {

/// The processes that mpiexec has started. MPI is initialized while it lives.
class MpiProcesses : public Processes {
public:
  /// Ends all processes if MPI does not offer what the runtime needs. Only rank
  /// 0 prints.
  MpiProcesses(int &argc, char **&argv) {
    // Ranks run on a thread of their own, while the main thread waits for it.
    int provided = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
    if (provided < MPI_THREAD_SERIALIZED) {
      std::fprintf(stderr, "MPI does not offer MPI_THREAD_SERIALIZED\n");
      MPI_Abort(MPI_COMM_WORLD, 3);
    }
    if (getRank() != 0 && (!std::freopen("/dev/null", "w", stdout) ||
                           !std::freopen("/dev/null", "w", stderr)))
      MPI_Abort(MPI_COMM_WORLD, 3);
  }
  ~MpiProcesses() override { MPI_Finalize(); }
  MpiProcesses(const MpiProcesses &) = delete;
  MpiProcesses &operator=(const MpiProcesses &) = delete;

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

} // namespace zero::test

#endif // ZERO_TEST_UNIT_MPI_MPIPROCESSES_H
