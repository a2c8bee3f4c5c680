//===- Trainer.h - Training on several ranks --------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_EXAMPLES_TRANSFORMER_TRAINER_H
#define ZERO_EXAMPLES_TRANSFORMER_TRAINER_H

#include "examples/transformer/Options.h"
#include "examples/transformer/Text.h"
#include "zero_rt/step.h"

#include <vector>

namespace transformer {

struct TrainResult {
  int64_t first = 0;          // steps that another process made
  std::vector<double> losses; // mean over backward passes and copies, by step
  double seconds = 0;
  std::vector<zero_rt_counters> counters;     // by rank
  std::vector<std::vector<float>> parameters; // of copy 0, at the end
  bool ranksAgree = true;                     // bit by bit
  double difference = 0;                      // max |p - p_ref| over all ranks
  double tolerance = 0;                       // what rounding explains
  int64_t skipped = 0;                        // steps
  double lossScale = 1;                       // at the end
  double normDifference = 0; // max |norm - norm_ref| / norm_ref
};

/// Trains with one thread for each rank. Ends the program on any status that is
/// not ok.
TrainResult train(const Options &options, const Text &text,
                  const zero_rt_library &library);

/// Writes |count| characters, each drawn from what the model expects next.
std::string generate(const Options &options, const Text &text,
                     const std::vector<std::vector<float>> &parameters,
                     int64_t count);

} // namespace transformer

#endif // ZERO_EXAMPLES_TRANSFORMER_TRAINER_H
