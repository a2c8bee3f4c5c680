//===- Shared.h - What ranks of one process share ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_EXAMPLES_TRANSFORMER_SHARED_H
#define ZERO_EXAMPLES_TRANSFORMER_SHARED_H

#include "examples/transformer/Launch.h"
#include "examples/transformer/Progress.h"
#include "examples/transformer/Reference.h"
#include "examples/transformer/Trainer.h"

#include <pthread.h>

#include <memory>

namespace transformer {

/// Data that the ranks of this process share: all ranks, or one. Between two
/// barriers a field is written by its rank, or by the first one alone.
struct Shared {
  Shared(const Options &options, const Text &text,
         const zero_rt_library &library, const Launch *launch);
  ~Shared() { pthread_barrier_destroy(&barrier); }
  Shared(const Shared &) = delete;
  Shared &operator=(const Shared &) = delete;

  bool isFirst(int rank) const { return rank == ranks.front(); }
  /// All ranks here have come.
  void wait() { pthread_barrier_wait(&barrier); }
  /// The loss of a step, the mean over the copies here, and what it reported.
  /// The first rank calls it, when all ranks here have come.
  void finishStep(int64_t step, double rate, double norm, bool isSkipped);
  /// Compares what all copies read with each other and with the reference. The
  /// first rank calls it, when all ranks have come; there is a reference.
  void compareRanks();

  const Options &options;
  const Text &text;
  const zero_rt_library &library;
  std::vector<Parameter> parameters;
  std::vector<std::vector<float>> initial;
  std::vector<int> ranks; // of this process, in order
  int firstGpu;           // of the first of them
  bool reports;           // this process prints the progress
  /// It needs the gradients of all ranks. Null where these are processes.
  std::unique_ptr<Reference> reference;
  Progress progress;
  pthread_barrier_t barrier;
  std::vector<double> losses;                    // of the step, by copy
  std::vector<std::vector<const float *>> views; // by copy, parameter
  TrainResult result;
};

} // namespace transformer

#endif // ZERO_EXAMPLES_TRANSFORMER_SHARED_H
