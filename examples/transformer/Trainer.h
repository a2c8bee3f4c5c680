//===- Trainer.h - Training on several ranks --------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_EXAMPLES_TRANSFORMER_TRAINER_H
#define ZERO_EXAMPLES_TRANSFORMER_TRAINER_H

#include "examples/transformer/Launch.h"
#include "examples/transformer/Options.h"
#include "examples/transformer/Text.h"
#include "zero_rt/step.h"

#include <vector>

namespace transformer {

struct TrainResult {
  int64_t first = 0; // steps that other processes made before
  int64_t steps = 0; // that this one made
  /// By step, the mean over backward passes and the copies of this process. A
  /// rank that is a process and not on the last stage knows none.
  std::vector<double> losses;
  double seconds = 0;
  int64_t skipped = 0;                    // steps
  double lossScale = 1;                   // at the end
  std::vector<zero_rt_counters> counters; // by rank, of those of this process
  // The rest needs all ranks in one process.
  std::vector<std::vector<float>> parameters; // of copy 0, at the end
  bool ranksAgree = true;                     // bit by bit
  double difference = 0;                      // max |p - p_ref| over all ranks
  double tolerance = 0;                       // what rounding explains
  double normDifference = 0; // max |norm - norm_ref| / norm_ref
};

/// Trains with one thread for each rank, or, with |launch|, the rank that this
/// process is. Ends the program on any status that is not ok.
TrainResult train(const Options &options, const Text &text,
                  const zero_rt_library &library, const Launch *launch);

/// Writes |count| characters, each drawn from what the model expects next.
std::string generate(const Options &options, const Text &text,
                     const std::vector<std::vector<float>> &parameters,
                     int64_t count);

} // namespace transformer

#endif // ZERO_EXAMPLES_TRANSFORMER_TRAINER_H
