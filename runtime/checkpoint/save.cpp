//===- save.cpp - Writes a checkpoint -------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each rank writes a file of its own in a new folder beside that of the
// previous checkpoint. After all files are on the disk, rank 0 replaces the
// index, and then removes the previous folder. So at every moment the index
// names files that are whole.
//
//===----------------------------------------------------------------------===//

#include "checkpoint/agree.h"
#include "checkpoint/index.h"
#include "core/calls.h"
#include "core/numeric.h"
#include "core/protocol.h"
#include "core/state_entries.h"

#include <algorithm>

using namespace zero_rt;

/// Chooses the number of the next save in |folder|, and creates its folder.
static zero_rt_status openSave(const std::string &folder, int64_t &outSave) {
  bool isThere = false;
  ZERO_RT_TRY(exists(folder, isThere));
  ZERO_RT_TRY(makeFolder(folder, /*mayExist=*/true));
  if (!isThere)
    ZERO_RT_TRY(syncFolder(folder + "/.."));
  ZERO_RT_TRY(exists(pathOfIndex(folder), isThere));
  if (isThere) {
    CheckpointIndex previous;
    std::string checksum;
    if (zero_rt_status status = readIndex(folder, previous, checksum))
      return fail(status, "%s; remove the folder, or save to another one",
                  lastMessage());
    outSave = previous.save;
  }
  // There may also be folders of saves that were cut off.
  std::vector<std::string> names;
  ZERO_RT_TRY(listFolder(folder, names));
  for (const std::string &name : names)
    outSave = std::max(outSave, readSaveName(name));
  ++outSave;
  ZERO_RT_TRY(makeFolder(pathOfSave(folder, outSave), /*mayExist=*/false));
  return syncFolder(folder);
}

/// Removes the folder of |save|, which is no part of a checkpoint.
static zero_rt_status removeSave(const std::string &folder, int64_t save) {
  std::string path = pathOfSave(folder, save);
  std::vector<std::string> names;
  ZERO_RT_TRY(listFolder(path, names));
  for (const std::string &name : names)
    if (name != "." && name != "..")
      ZERO_RT_TRY(removeFile(path + "/" + name));
  return removeFolder(path);
}

/// Removes the folders of all saves but |kept|. If that fails, a later save
/// tries again.
static void removeOtherSaves(const std::string &folder, int64_t kept) {
  std::vector<std::string> names;
  if (listFolder(folder, names))
    return;
  for (const std::string &name : names) {
    int64_t save = readSaveName(name);
    if (save && save != kept)
      (void)removeSave(folder, save);
  }
}

/// Writes the file of this rank.
static zero_rt_status writeOwnFile(Step &step, const std::string &folder,
                                   int64_t save, FileDigest &digest) {
  std::vector<OwnPiece> pieces;
  ZERO_RT_TRY(listWrittenPieces(step, pieces));
  auto read = [&](const OwnPiece &piece, int64_t offset, int64_t bytes,
                  void *out) -> zero_rt_status {
    const StateEntry &entry = step.entries[piece.entry];
    void *memory = nullptr;
    ZERO_RT_TRY(dataOf(step, entry, &memory));
    offset += (piece.begin - entry.begin) * elementSize(piece.dtype);
    ZERO_RT_TRY(
        step.device().copy(out, static_cast<char *>(memory) + offset, bytes));
    return step.device().finish();
  };
  ZERO_RT_TRY(writeRankFile(pathOfRank(folder, save, step.runtime->rank),
                            std::move(pieces), read, digest));
  return syncFolder(pathOfSave(folder, save));
}

/// Reads the scalars that this rank has.
static zero_rt_status readScalars(Step &step, CheckpointIndex &index) {
  double value = 0;
  for (size_t e = 0; e < step.entries.size(); ++e)
    if (step.entries[e].parameter < 0) {
      ZERO_RT_TRY(calls::state_read(&step, int64_t(e), &value, sizeof(value)));
      index.scalars.emplace_back(step.entries[e].role, value);
    }
  return calls::loss_scale(&step, &index.lossScale);
}

/// Makes the files that |reports| describe the checkpoint in |folder|.
static zero_rt_status replaceIndex(Step &step, const std::string &folder,
                                   const std::vector<PhaseReport> &reports) {
  const zero_rt_library &library = *step.whole;
  CheckpointIndex index;
  index.save = reports[0].save;
  index.number = reports[0].number;
  index.planHash = library.plan_hash;
  index.step = library.name;
  for (int64_t a = 0; a < library.num_axes; ++a)
    index.mesh.emplace_back(step.text(library.axes[a].name),
                            library.axes[a].size);
  ZERO_RT_TRY(readScalars(step, index));
  for (const PhaseReport &report : reports)
    index.files.push_back({report.bytes, report.checksum});
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

static zero_rt_status requireSavable(const Step &step, const char *folder) {
  if (!folder || !*folder)
    return fail(ZERO_RT_INVALID_ARGUMENT, "folder is %s",
                folder ? "empty" : "null");
  ZERO_RT_TRY(requireIdle(step, "save"));
  ZERO_RT_TRY(requireWhole(step, "save"));
  return step.device().finish();
}

zero_rt_status calls::save(Step *step, const char *folder, int64_t number) {
  bool isFirst = step->runtime->rank == 0;
  std::vector<PhaseReport> reports;
  ZERO_RT_TRY(agree(
      *step, "save",
      [&](PhaseReport &mine) -> zero_rt_status {
        ZERO_RT_TRY(requireSavable(*step, folder));
        mine.number = number;
        if (number < 0)
          return fail(ZERO_RT_INVALID_ARGUMENT,
                      "number is %lld, expected at least 0", (long long)number);
        return isFirst ? openSave(folder, mine.save) : ZERO_RT_OK;
      },
      reports));
  int64_t save = reports[0].save;

  zero_rt_status status = agree(
      *step, "save",
      [&](PhaseReport &mine) -> zero_rt_status {
        for (size_t r = 1; r < reports.size(); ++r)
          if (reports[r].number != reports[0].number)
            return fail(ZERO_RT_MISMATCH,
                        "rank %zu saves number %lld, rank 0 number %lld", r,
                        (long long)reports[r].number,
                        (long long)reports[0].number);
        FileDigest digest;
        ZERO_RT_TRY(writeOwnFile(*step, folder, save, digest));
        mine.save = save;
        mine.number = number;
        mine.bytes = digest.bytes;
        mine.setChecksum(digest.checksum);
        return ZERO_RT_OK;
      },
      reports);

  bool isReplaced = false;
  if (!status)
    status = agree(
        *step, "save",
        [&](PhaseReport &) -> zero_rt_status {
          if (!isFirst)
            return ZERO_RT_OK;
          ZERO_RT_TRY(replaceIndex(*step, folder, reports));
          isReplaced = true;
          return syncFolder(folder);
        },
        reports);
  if (isFirst && !step->poisonedBy[0]) {
    std::string message = lastMessage();
    if (!status)
      removeOtherSaves(folder, save);
    else if (!isReplaced)
      (void)removeSave(folder, save);
    if (status)
      return fail(status, "%s", message.c_str());
  }
  return status;
}
