//===- pending_save.h - A save that has begun -------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_CHECKPOINT_PENDING_SAVE_H
#define ZERO_RT_CHECKPOINT_PENDING_SAVE_H

#include "checkpoint/index.h"

#include <thread>

namespace zero_rt {

/// What this rank writes of a checkpoint. If the state was copied, a thread
/// writes the copies; it uses nothing else of the step.
struct PendingSave {
  PendingSave() = default;
  PendingSave(const PendingSave &) = delete;
  PendingSave &operator=(const PendingSave &) = delete;
  ~PendingSave() {
    if (writer.joinable())
      writer.join();
  }

  std::string folder;
  CheckpointIndex index; // without the files
  int64_t previous = 0;  // the save of the checkpoint that is there, or 0
  std::vector<OwnPiece> pieces;
  std::vector<std::unique_ptr<char[]>> copies; // of pieces, by number
  std::thread writer;

  // Of the file of this rank, once it is written.
  FileDigest digest;
  zero_rt_status status = ZERO_RT_OK;
  std::string message;
};

} // namespace zero_rt

#endif // ZERO_RT_CHECKPOINT_PENDING_SAVE_H
