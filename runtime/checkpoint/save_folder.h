//===- save_folder.h - The folder of a checkpoint ----------------*- C++
//-*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What rank 0 does for all ranks: the folder of the next save, the index, and
// the removal of what no index names.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_CHECKPOINT_SAVE_FOLDER_H
#define ZERO_RT_CHECKPOINT_SAVE_FOLDER_H

#include "checkpoint/index.h"

namespace zero_rt {

/// Chooses the number of the next save in |folder|, and creates its folder.
/// |outSave| gets the number once the folder of the save may exist, and
/// |outPrevious| the save that the index names, or 0.
zero_rt_status openSave(const std::string &folder, int64_t &outSave,
                        int64_t &outPrevious);

/// Removes what a save that failed has left, unless the index names it: a
/// rename may be done although it is reported as failed.
void dropSave(const std::string &folder, int64_t save);

/// Removes the folders of all saves before |kept|, as far as saves wrote what
/// is in them. If that fails, a later save tries again.
void removeEarlierSaves(const std::string &folder, int64_t kept);

/// Makes the save that |index| describes the checkpoint in |folder|. Checks
/// that the files of all ranks are there, and that the index still names
/// |previous|.
zero_rt_status replaceIndex(const std::string &folder,
                            const CheckpointIndex &index, int64_t previous);

} // namespace zero_rt

#endif // ZERO_RT_CHECKPOINT_SAVE_FOLDER_H
