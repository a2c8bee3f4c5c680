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

#include "checkpoint/accumulation.h"
#include "checkpoint/agree.h"
#include "checkpoint/pending_save.h"
#include "checkpoint/save_folder.h"
#include "core/calls.h"
#include "core/numeric.h"
#include "core/protocol.h"
#include "core/state_entries.h"

#include <algorithm>
#include <cstring>
#include <exception>

using namespace zero_rt;

static zero_rt_status requireSavable(Step &step, const char *call,
                                     const char *folder, int64_t number) {
  if (!folder || !*folder)
    return fail(ZERO_RT_INVALID_ARGUMENT, "folder is %s",
                folder ? "empty" : "null");
  if (number < 0)
    return fail(ZERO_RT_INVALID_ARGUMENT, "number is %lld, expected at least 0",
                (long long)number);
  if (step.pendingSave)
    return fail(ZERO_RT_PROTOCOL,
                "the save to '%s' has not ended; call save_end first",
                step.pendingSave->folder.c_str());
  ZERO_RT_TRY(requireSavableState(step, call));
  ZERO_RT_TRY(requireWhole(step, call));
  ZERO_RT_TRY(checkUnwritten(step, call));
  return step.device().finish();
}

/// What the index says about |step|.
static zero_rt_status describeStep(Step &step, CheckpointIndex &index) {
  const zero_rt_library &library = *step.whole;
  index.planHash = library.plan_hash;
  index.step = library.name;
  index.batchRanks = library.batch_ranks;
  for (int64_t a = 0; a < library.num_axes; ++a)
    index.mesh.emplace_back(step.text(library.axes[a].name),
                            library.axes[a].size);
  double value = 0;
  for (size_t e = 0; e < step.entries.size(); ++e)
    if (step.entries[e].parameter < 0) {
      ZERO_RT_TRY(calls::state_read(&step, int64_t(e), &value, sizeof(value)));
      index.scalars.emplace_back(step.entries[e].role, value);
    }
  return calls::loss_scale(&step, &index.lossScale);
}

/// Reads |bytes| bytes of |piece| from the state, from byte |offset| on.
static zero_rt_status readState(Step &step, const OwnPiece &piece,
                                int64_t offset, int64_t bytes, void *out) {
  const StateEntry &entry = piece.source;
  if (piece.isArrivals()) {
    auto count = double(step.window.delivered(entry.parameter));
    std::memcpy(out, reinterpret_cast<char *>(&count) + offset, size_t(bytes));
    return ZERO_RT_OK;
  }
  void *memory = nullptr;
  ZERO_RT_TRY(dataOf(step, entry, &memory));
  offset += (piece.begin - entry.begin) * elementSize(piece.dtype);
  ZERO_RT_TRY(
      step.device().copy(out, static_cast<char *>(memory) + offset, bytes));
  return step.device().finish();
}

static zero_rt_status copyPieces(Step &step, PendingSave &save) {
  for (const OwnPiece &piece : save.pieces) {
    int64_t bytes = (piece.end - piece.begin) * elementSize(piece.dtype);
    save.copies.resize(piece.number + 1);
    std::unique_ptr<char[]> &copy = save.copies[piece.number];
    copy.reset(new char[size_t(bytes)]); // not filled with zeros before
    ZERO_RT_TRY(readState(step, piece, 0, bytes, copy.get()));
  }
  return ZERO_RT_OK;
}

/// The ranks agree on a save, and on its folder. |isCopied|: also copies the
/// state.
static zero_rt_status beginSave(Step &step, const char *call,
                                const char *folder, int64_t number,
                                bool isCopied,
                                std::unique_ptr<PendingSave> &out) {
  std::vector<PhaseReport> reports;
  bool isFirst = step.runtime->rank == 0;
  auto prepare = [&](PhaseReport &mine) -> zero_rt_status {
    ZERO_RT_TRY(requireSavable(step, call, folder, number));
    out = std::make_unique<PendingSave>();
    out->folder = folder;
    out->index.number = mine.number = number;
    mine.backwards = step.window.closedBackwards();
    out->index.backwards = mine.backwards;
    ZERO_RT_TRY(listWrittenPieces(step, mine.backwards > 0, out->pieces));
    if (isCopied)
      ZERO_RT_TRY(copyPieces(step, *out));
    if (isFirst) { // who writes the index
      ZERO_RT_TRY(describeStep(step, out->index));
      ZERO_RT_TRY(openSave(folder, out->index.save, out->previous));
    }
    mine.save = out->index.save;
    return ZERO_RT_OK;
  };
  zero_rt_status status = agree(step, call, prepare, reports);
  for (size_t r = 1; !status && r < reports.size(); ++r)
    if (reports[r].number != reports[0].number)
      status =
          fail(ZERO_RT_MISMATCH,
               "%s: rank %zu saves number %lld, rank 0 number %lld", call, r,
               (long long)reports[r].number, (long long)reports[0].number);
    else if (reports[r].backwards != reports[0].backwards)
      status = fail(ZERO_RT_MISMATCH,
                    "%s: rank %zu has made %lld backward passes, rank 0 %lld",
                    call, r, (long long)reports[r].backwards,
                    (long long)reports[0].backwards);
  if (!status) {
    out->index.save = reports[0].save;
    return ZERO_RT_OK;
  }
  std::string message = lastMessage();
  if (isFirst && out && out->index.save)
    dropSave(folder, out->index.save);
  out.reset();
  return fail(status, "%s", message.c_str());
}

/// Writes the file of |rank|, and keeps the result.
static void writeOwnFile(PendingSave &save, int32_t rank,
                         const PieceReader &read) {
  save.status = guarded("save", [&] {
    ZERO_RT_TRY(writeRankFile(pathOfRank(save.folder, save.index.save, rank),
                              save.pieces, read, save.digest));
    return syncFolder(pathOfSave(save.folder, save.index.save));
  });
  if (save.status)
    save.message = lastMessage();
}

/// Makes the files of all ranks the checkpoint, if all of them are written.
static zero_rt_status endSave(Step &step, const char *call,
                              std::unique_ptr<PendingSave> save) {
  std::vector<PhaseReport> reports;
  zero_rt_status status = agree(
      step, call,
      [&](PhaseReport &mine) -> zero_rt_status {
        if (!save)
          return fail(ZERO_RT_PROTOCOL,
                      "no save has begun; call save_begin first");
        if (save->writer.joinable())
          save->writer.join();
        if (save->status)
          return fail(save->status, "%s", save->message.c_str());
        mine.bytes = save->digest.bytes;
        mine.setChecksum(save->digest.checksum);
        return ZERO_RT_OK;
      },
      reports);

  bool isFirst = step.runtime->rank == 0;
  auto replace = [&](PhaseReport &) -> zero_rt_status {
    if (!isFirst)
      return ZERO_RT_OK;
    for (const PhaseReport &report : reports)
      save->index.files.push_back({report.bytes, report.checksum});
    ZERO_RT_TRY(replaceIndex(save->folder, save->index, save->previous));
    return syncFolder(save->folder);
  };
  if (!status)
    status = agree(step, call, replace, reports);
  if (!isFirst || !save)
    return status;
  std::string message = lastMessage();
  if (!status)
    removeEarlierSaves(save->folder, save->index.save);
  else
    dropSave(save->folder, save->index.save);
  return status ? fail(status, "%s", message.c_str()) : ZERO_RT_OK;
}

zero_rt_status calls::save(Step *step, const char *folder, int64_t number) {
  std::unique_ptr<PendingSave> save;
  ZERO_RT_TRY(
      beginSave(*step, "save", folder, number, /*isCopied=*/false, save));
  writeOwnFile(
      *save, step->runtime->rank,
      [&](const OwnPiece &piece, int64_t offset, int64_t bytes, void *out) {
        return readState(*step, piece, offset, bytes, out);
      });
  return endSave(*step, "save", std::move(save));
}

zero_rt_status calls::save_begin(Step *step, const char *folder,
                                 int64_t number) {
  std::unique_ptr<PendingSave> save;
  ZERO_RT_TRY(
      beginSave(*step, "save_begin", folder, number, /*isCopied=*/true, save));
  PendingSave &pending = *save;
  int32_t rank = step->runtime->rank;
  auto read = [&pending](const OwnPiece &piece, int64_t offset, int64_t bytes,
                         void *out) {
    std::copy_n(pending.copies[piece.number].get() + offset, bytes,
                static_cast<char *>(out));
    return ZERO_RT_OK;
  };
  step->pendingSave = std::move(save);
  // From here on a failure is one of save_end, for which all ranks wait.
  try {
    pending.writer = std::thread(
        [&pending, rank, read] { writeOwnFile(pending, rank, read); });
  } catch (const std::exception &error) {
    pending.status = ZERO_RT_OUT_OF_MEMORY;
    pending.message = std::string("cannot start a thread: ") + error.what();
  }
  return ZERO_RT_OK;
}

zero_rt_status calls::save_end(Step *step) {
  // Where the ranks cannot agree now, the save waits for a later call.
  std::vector<PhaseReport> reports;
  ZERO_RT_TRY(agree(
      *step, "save_end",
      [&](PhaseReport &) { return requireClosed(*step, "save_end"); },
      reports));
  return endSave(*step, "save_end", std::move(step->pendingSave));
}
