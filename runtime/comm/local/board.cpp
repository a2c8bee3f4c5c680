//===- board.cpp - What ranks leave for each other to read ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "comm/local/board.h"

#include "core/status.h"

#include <algorithm>
#include <chrono>
#include <cstring>

using namespace zero_rt;

std::vector<Board::Note> &Board::notesOf(uint64_t step) {
  std::vector<Note> &notes = steps[step];
  notes.resize(size_t(ranks));
  return notes;
}

void Board::post(int32_t rank, uint64_t step, uint64_t turn, const void *record,
                 int64_t bytes) {
  std::lock_guard<std::mutex> lock(mutex);
  Note &note = notesOf(step)[size_t(rank)];
  auto *data = static_cast<const char *>(record);
  note.record.assign(data, data + bytes);
  note.turn = turn;
  changed.notify_all();
}

zero_rt_status Board::collect(uint64_t step, uint64_t turn, void *all,
                              int64_t bytes, int64_t timeoutMs) {
  std::unique_lock<std::mutex> lock(mutex);
  auto deadline =
      std::chrono::steady_clock::now() + std::chrono::milliseconds(timeoutMs);
  for (int32_t rank = 0; rank < ranks; ++rank) {
    Note &note = notesOf(step)[size_t(rank)];
    bool isThere = changed.wait_until(
        lock, deadline, [&] { return note.turn >= turn || note.isOver; });
    if (note.turn < turn)
      return fail(ZERO_RT_TIMEOUT,
                  isThere ? "rank %d has destroyed its step, and did not say "
                            "what it lacks"
                          : "rank %d did not say in time what it lacks",
                  rank);
    if (note.turn > turn)
      return fail(ZERO_RT_MISMATCH,
                  "rank %d has applied its step again; read the results of a "
                  "refused step before the next apply of any rank",
                  rank);
    std::memcpy(static_cast<char *>(all) + rank * bytes, note.record.data(),
                size_t(bytes));
  }
  return ZERO_RT_OK;
}

void Board::leave(int32_t rank, uint64_t step) {
  std::lock_guard<std::mutex> lock(mutex);
  std::vector<Note> &notes = notesOf(step);
  notes[size_t(rank)].isOver = true;
  if (std::all_of(notes.begin(), notes.end(),
                  [](const Note &note) { return note.isOver; }))
    steps.erase(step);
  changed.notify_all();
}
