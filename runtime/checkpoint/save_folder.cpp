//===- save_folder.cpp - The folder of a checkpoint
//---------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "checkpoint/save_folder.h"

#include "core/status.h"

#include <algorithm>

using namespace zero_rt;

zero_rt_status zero_rt::openSave(const std::string &folder, int64_t &outSave) {
  bool isThere = false;
  ZERO_RT_TRY(exists(folder, isThere));
  ZERO_RT_TRY(makeFolder(folder, /*mayExist=*/true));
  if (!isThere)
    ZERO_RT_TRY(syncFolder(folder + "/.."));
  int64_t last = 0;
  ZERO_RT_TRY(exists(pathOfIndex(folder), isThere));
  if (isThere) {
    CheckpointIndex previous;
    std::string checksum;
    if (zero_rt_status status = readIndex(folder, previous, checksum))
      return fail(status, "%s; remove the folder, or save to another one",
                  lastMessage());
    last = previous.save;
  }
  // There may also be folders of saves that were cut off.
  std::vector<std::string> names;
  ZERO_RT_TRY(listFolder(folder, names));
  for (const std::string &name : names)
    last = std::max(last, readSaveName(name));
  ZERO_RT_TRY(makeFolder(pathOfSave(folder, last + 1), /*mayExist=*/false));
  outSave = last + 1;
  return syncFolder(folder);
}

zero_rt_status zero_rt::removeSave(const std::string &folder, int64_t save) {
  std::string path = pathOfSave(folder, save);
  std::vector<std::string> names;
  ZERO_RT_TRY(listFolder(path, names));
  for (const std::string &name : names)
    if (name != "." && name != "..")
      ZERO_RT_TRY(removeFile(path + "/" + name));
  return removeFolder(path);
}

void zero_rt::removeOtherSaves(const std::string &folder, int64_t kept) {
  std::vector<std::string> names;
  if (listFolder(folder, names))
    return;
  for (const std::string &name : names) {
    int64_t save = readSaveName(name);
    if (save && save != kept)
      (void)removeSave(folder, save);
  }
}

zero_rt_status zero_rt::replaceIndex(const std::string &folder,
                                     const CheckpointIndex &index) {
  std::string text = formatIndex(index);
  std::string path = pathOfIndex(folder), next = path + ".new";
  bool isLeft = false; // by a save that was cut off
  ZERO_RT_TRY(exists(next, isLeft));
  if (isLeft)
    ZERO_RT_TRY(removeFile(next));
  OpenFile file;
  ZERO_RT_TRY(file.create(next));
  ZERO_RT_TRY(file.write(text.data(), text.size(), 0));
  ZERO_RT_TRY(file.finish());
  return renameFile(next, path);
}
