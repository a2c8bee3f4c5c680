//===- MpiReference.cpp - Collectives of MPI, on command ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// zero-bench-mpi BYTES: what zero-bench compares its collectives over TCP with.
// Rank 0 reads the number of a collective from each line of its input, and
// prints the milliseconds of the slowest rank.
//
//===----------------------------------------------------------------------===//

#include <cstdio>
#include <cstdlib>
#include <mpi.h>
#include <vector>

/// In the order of the rows of zero-bench.
static void run(int collective, std::vector<float> &from,
                std::vector<float> &to, int ranks) {
  int all = int(from.size()), slice = all / ranks;
  switch (collective) {
  case 0:
    MPI_Reduce_scatter_block(from.data(), to.data(), slice, MPI_FLOAT, MPI_SUM,
                             MPI_COMM_WORLD);
    break;
  case 1:
    MPI_Allreduce(from.data(), to.data(), all, MPI_FLOAT, MPI_SUM,
                  MPI_COMM_WORLD);
    break;
  case 2:
    MPI_Allgather(from.data(), slice, MPI_FLOAT, to.data(), slice, MPI_FLOAT,
                  MPI_COMM_WORLD);
    break;
  default:
    MPI_Allreduce(from.data(), to.data(), 64, MPI_FLOAT, MPI_SUM,
                  MPI_COMM_WORLD);
  }
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  size_t elements = argc > 1 ? std::strtoull(argv[1], nullptr, 10) / 4 : 64;
  std::vector<float> from(elements, 1), to(elements);
  for (;;) {
    char line[32] = "";
    int collective = rank == 0 && std::fgets(line, sizeof(line), stdin)
                         ? std::atoi(line)
                         : -1;
    MPI_Bcast(&collective, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (collective < 0)
      break;
    MPI_Barrier(MPI_COMM_WORLD);
    double begin = MPI_Wtime();
    run(collective, from, to, ranks);
    double mine = (MPI_Wtime() - begin) * 1000, slowest = 0;
    MPI_Reduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0) {
      std::printf("%.6f\n", slowest);
      std::fflush(stdout);
    }
  }
  MPI_Finalize();
  return 0;
}
