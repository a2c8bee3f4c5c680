//===- save_folder.cpp - The folder of a checkpoint -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "checkpoint/save_folder.h"

#include "core/status.h"

#include <algorithm>
#include <cstdio>

using namespace zero_rt;

/// |out| gets the save that the index in |folder| names, or 0 without one.
static zero_rt_status readSave(const std::string &folder, int64_t &out) {
  out = 0;
  bool isThere = false;
  ZERO_RT_TRY(exists(pathOfIndex(folder), isThere));
  if (!isThere)
    return ZERO_RT_OK;
  CheckpointIndex index;
  std::string checksum;
  ZERO_RT_TRY(readIndex(folder, index, checksum));
  out = index.save;
  return ZERO_RT_OK;
}

zero_rt_status zero_rt::openSave(const std::string &folder, int64_t &outSave,
                                 int64_t &outPrevious) {
  bool isThere = false;
  ZERO_RT_TRY(exists(folder, isThere));
  ZERO_RT_TRY(makeFolder(folder, /*mayExist=*/true));
  if (!isThere)
    ZERO_RT_TRY(syncFolder(folder + "/.."));
  if (zero_rt_status status = readSave(folder, outPrevious))
    return fail(status, "%s; remove the folder, or save to another one",
                lastMessage());
  int64_t last = outPrevious;
  // There may also be folders of saves that were cut off.
  std::vector<std::string> names;
  ZERO_RT_TRY(listFolder(folder, /*followsLinks=*/true, names));
  for (const std::string &name : names)
    last = std::max(last, readSaveName(name));
  if (last >= mostSaves)
    return fail(ZERO_RT_INVALID_ARGUMENT,
                "'%s' has no place for another save; remove it",
                pathOfSave(folder, last).c_str());
  ZERO_RT_TRY(makeFolder(pathOfSave(folder, last + 1), /*mayExist=*/false));
  outSave = last + 1;
  return syncFolder(folder);
}

/// Where the index of |save| is before it replaces that of another one. Each
/// save has a place of its own, because another job may save to the folder.
static std::string pathOfNextIndex(const std::string &folder, int64_t save) {
  return pathOfIndex(folder) + ".new-" + std::to_string(save);
}

/// Whether a file called |name| is one that a save writes.
static bool isRankFile(const std::string &name) {
  long long rank = 0;
  return std::sscanf(name.c_str(), "rank-%lld", &rank) == 1 &&
         pathOfRank("", 0, rank) == pathOfSave("", 0) + "/" + name;
}

/// Removes the files of |save|, and its folder if nothing else is in it. Goes
/// on where something cannot be removed.
static void removeSave(const std::string &folder, int64_t save) {
  std::string path = pathOfSave(folder, save);
  bool isThere = false;
  if (!exists(pathOfNextIndex(folder, save), isThere) && isThere)
    (void)removeFile(pathOfNextIndex(folder, save));
  std::vector<std::string> names;
  if (listFolder(path, /*followsLinks=*/false, names))
    return;
  for (const std::string &name : names)
    if (isRankFile(name))
      (void)removeFile(path + "/" + name);
  (void)removeFolder(path);
}

void zero_rt::dropSave(const std::string &folder, int64_t save) {
  int64_t named = 0;
  if (!readSave(folder, named) && named != save)
    removeSave(folder, save);
}

void zero_rt::removeEarlierSaves(const std::string &folder, int64_t kept) {
  std::vector<std::string> names;
  if (listFolder(folder, /*followsLinks=*/true, names))
    return;
  for (const std::string &name : names) {
    int64_t save = readSaveName(name);
    if (save && save < kept)
      removeSave(folder, save);
  }
}

/// Checks that no other program has saved to |folder| since |previous|.
static zero_rt_status requireAlone(const std::string &folder,
                                   int64_t previous) {
  int64_t now = 0;
  ZERO_RT_TRY(readSave(folder, now));
  if (now == previous)
    return ZERO_RT_OK;
  return fail(ZERO_RT_INVALID_ARGUMENT,
              "'%s' has another checkpoint than when the save began: another "
              "program saves to it; give each a folder of its own",
              folder.c_str());
}

zero_rt_status zero_rt::replaceIndex(const std::string &folder,
                                     const CheckpointIndex &index,
                                     int64_t previous) {
  // The other program may have removed the files.
  ZERO_RT_TRY(requireAlone(folder, previous));
  // A rank may have written to another folder of the same name.
  for (size_t r = 0; r < index.files.size(); ++r) {
    std::vector<StoredPiece> pieces;
    if (zero_rt_status status = readRankFile(
            pathOfRank(folder, index.save, int64_t(r)), index.files[r], pieces))
      return fail(status, "%s; all ranks must see one folder", lastMessage());
  }
  std::string text = formatIndex(index);
  std::string next = pathOfNextIndex(folder, index.save);
  OpenFile file;
  ZERO_RT_TRY(file.create(next));
  ZERO_RT_TRY(file.write(text.data(), text.size(), 0));
  ZERO_RT_TRY(file.finish());
  ZERO_RT_TRY(requireAlone(folder, previous));
  return renameFile(next, pathOfIndex(folder));
}
