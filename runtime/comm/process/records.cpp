//===- records.cpp - What ranks leave for each other, by note -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "comm/process/records.h"

#include "core/pause.h"
#include "core/status.h"

#include <algorithm>
#include <cstring>

using namespace zero_rt;

Records::Records(Notes &notes) : notes(notes) {
  auto reader = [this](int32_t from, const Note &note) { take(from, note); };
  notes.setReader(Note::Record, reader);
  notes.setReader(Note::LeftStep, [this](int32_t from, const Note &note) {
    this->notes.link.noteEnd(from, note.step);
    if (!this->notes.link.isOver(note.step))
      steps[note.step].left.insert(from);
  });
}

void Records::take(int32_t from, const Note &note) {
  if (notes.link.isOver(note.step))
    return;
  Step &step = steps[note.step];
  step.theirs[from] = note;
  // An error breaks the link, and later calls report it.
  (void)answer(step, from);
}

/// Sends the record of this rank if |to| asked for it, or for an earlier one,
/// and does not have it.
zero_rt_status Records::answer(Step &step, int32_t to) {
  auto theirs = step.theirs.find(to);
  if (theirs == step.theirs.end() || step.mine.turn < theirs->second.turn ||
      step.sent[to] == step.mine.turn)
    return ZERO_RT_OK;
  step.sent[to] = step.mine.turn;
  return notes.send(to, step.mine);
}

zero_rt_status Records::keep(uint64_t step, uint64_t turn, const void *record,
                             int64_t bytes) {
  if (bytes > int64_t(sizeof(Note::data)))
    return fail(ZERO_RT_INTERNAL,
                "a record of %lld bytes, expected at most %zu",
                (long long)bytes, sizeof(Note::data));
  // Ranks that asked for the previous record get it now.
  ZERO_RT_TRY(notes.poll());
  Step &state = steps[step];
  Note &mine = state.mine;
  mine.kind = Note::Record;
  mine.step = step;
  mine.turn = turn;
  mine.bytes = int32_t(bytes);
  std::memcpy(mine.data, record, size_t(bytes));
  for (const auto &[rank, note] : state.theirs)
    if (note.turn >= turn)
      ZERO_RT_TRY(answer(state, rank));
  return ZERO_RT_OK;
}

/// Waits for the record of |rank| of |turn|.
zero_rt_status Records::await(Step &step, int32_t rank, uint64_t turn,
                              Deadline end) {
  for (Pause pause;; pause()) {
    ZERO_RT_TRY(notes.link.check(/*waits=*/true));
    ZERO_RT_TRY(notes.poll());
    const Note &theirs = step.theirs[rank];
    if (theirs.turn == turn)
      return ZERO_RT_OK;
    if (theirs.turn > turn)
      return fail(ZERO_RT_MISMATCH,
                  "rank %d has applied its step again; read the results of a "
                  "refused step before the next apply of any rank",
                  rank);
    bool hasLeft = step.left.count(rank) != 0;
    if (hasLeft || notes.isGone(rank))
      return fail(ZERO_RT_TIMEOUT, "rank %d %s, and did not say what it lacks",
                  rank, hasLeft ? "has destroyed its step" : "is gone");
    if (std::chrono::steady_clock::now() >= end)
      return fail(ZERO_RT_TIMEOUT, "rank %d did not say in time what it lacks",
                  rank);
  }
}

zero_rt_status Records::collect(uint64_t step, uint64_t turn, void *all,
                                int64_t bytes, int64_t timeoutMs) {
  Step &state = steps[step];
  Deadline end =
      std::chrono::steady_clock::now() + std::chrono::milliseconds(timeoutMs);
  int32_t ranks = notes.link.ranks();
  for (int32_t rank = 0; rank < ranks; ++rank)
    if (rank != notes.link.rank() && state.sent[rank] != turn) {
      state.sent[rank] = turn;
      ZERO_RT_TRY(notes.send(rank, state.mine));
    }
  for (int32_t rank = 0; rank < ranks; ++rank) {
    const Note *note = &state.mine;
    if (rank != notes.link.rank()) {
      ZERO_RT_TRY(await(state, rank, turn, end));
      note = &state.theirs[rank];
      if (note->bytes != bytes)
        return fail(ZERO_RT_MISMATCH,
                    "rank %d sent a record of %d bytes, expected %lld", rank,
                    note->bytes, (long long)bytes);
    }
    std::memcpy(static_cast<char *>(all) + rank * bytes, note->data,
                size_t(bytes));
  }
  return ZERO_RT_OK;
}

void Records::leave(uint64_t step) {
  (void)notes.poll();
  Note farewell;
  farewell.kind = Note::LeftStep;
  farewell.step = step;
  notes.sendToAll(farewell);
  steps.erase(step);
  // Records of other steps may have arrived after these were left.
  for (auto other = steps.begin(); other != steps.end();)
    other =
        notes.link.isOver(other->first) ? steps.erase(other) : std::next(other);
}
