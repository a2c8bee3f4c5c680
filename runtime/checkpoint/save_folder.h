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
/// |outSave| gets the number once the folder of the save may exist.
zero_rt_status openSave(const std::string &folder, int64_t &outSave);

/// Removes the folder of |save|, which is no part of a checkpoint.
zero_rt_status removeSave(const std::string &folder, int64_t save);

/// Removes the folders of all saves but |kept|. If that fails, a later save
/// tries again.
void removeOtherSaves(const std::string &folder, int64_t kept);

/// Makes the save that |index| describes the checkpoint in |folder|.
zero_rt_status replaceIndex(const std::string &folder,
                            const CheckpointIndex &index);

} // namespace zero_rt

#endif // ZERO_RT_CHECKPOINT_SAVE_FOLDER_H
