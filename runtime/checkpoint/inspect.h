//===- inspect.h - What is in a checkpoint ----------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For tools: a checkpoint without a step to compare it with.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_CHECKPOINT_INSPECT_H
#define ZERO_RT_CHECKPOINT_INSPECT_H

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace zero_rt {

struct CheckpointValue {
  std::string name;
  std::string part;   // empty: all of it
  std::string addend; // empty: the whole value
  std::string dtype;
  int64_t elements = 0;
  double scalar = 0; // its value, if it is the only element of an f64
};

struct CheckpointSummary {
  int64_t save = 0;
  int64_t number = 0;
  int64_t backwards = 0; // whose gradients it has
  std::string step;
  uint64_t planHash = 0;
  std::vector<std::pair<std::string, int64_t>> mesh;
  int64_t files = 0;
  int64_t bytes = 0;                   // of all files
  std::vector<CheckpointValue> values; // by name
};

/// Reads the index and the headers of all files of the checkpoint in |folder|.
/// With |readsData| also reads all data, and compares the checksums. Each thing
/// that is wrong is added to |errors|.
CheckpointSummary inspectCheckpoint(const std::string &folder, bool readsData,
                                    std::vector<std::string> &errors);

} // namespace zero_rt

#endif // ZERO_RT_CHECKPOINT_INSPECT_H
