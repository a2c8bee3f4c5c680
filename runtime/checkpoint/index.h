//===- index.h - The index of a checkpoint ----------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A checkpoint is a folder with the index, checkpoint.json, and a folder with a
// file for each rank. The index names that folder. So to replace the index is
// to replace the checkpoint.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_CHECKPOINT_INDEX_H
#define ZERO_RT_CHECKPOINT_INDEX_H

#include "checkpoint/rank_file.h"

#include <utility>

namespace zero_rt {

/// The most saves that a folder counts.
constexpr int64_t mostSaves = 999'999'999'999'999'998;

/// The most backward passes of a step that the proof looks at.
constexpr int64_t mostBackwards = int64_t(1) << 26;

struct CheckpointIndex {
  int64_t save = 0;   // counted in this folder, from 1
  int64_t number = 0; // of the caller, such as the number of steps
  /// The backward passes whose gradients are in the checkpoint.
  int64_t backwards = 0;
  /// How many ranks had batches of their own. 0: not known.
  int64_t batchRanks = 0;
  uint64_t planHash = 0;
  std::string step;
  std::vector<std::pair<std::string, int64_t>> mesh;
  /// Counters and the like, for people who read the index; loads read the files
  /// of the ranks.
  std::vector<std::pair<std::string, double>> scalars;
  double lossScale = 1;          // 1 without one
  std::vector<FileDigest> files; // by rank
};

std::string pathOfIndex(const std::string &folder);
std::string pathOfSave(const std::string &folder, int64_t save);
std::string pathOfRank(const std::string &folder, int64_t save, int64_t rank);

/// The number of the save that has a folder called |name|; 0 for another name.
int64_t readSaveName(const std::string &name);

std::string formatIndex(const CheckpointIndex &index);

/// Reads the index in |folder|. |outChecksum| gets its checksum, which differs
/// for different checkpoints.
zero_rt_status readIndex(const std::string &folder, CheckpointIndex &out,
                         std::string &outChecksum);

} // namespace zero_rt

#endif // ZERO_RT_CHECKPOINT_INDEX_H
