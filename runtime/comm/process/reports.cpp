//===- reports.cpp - Reports of ranks that are processes ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "comm/process/reports.h"

#include "core/pause.h"
#include "core/status.h"

#include <algorithm>
#include <cstring>

using namespace zero_rt;

/// More steps than a process has at a time.
static constexpr size_t mostSteps = 16384;

Reports::Reports(ControlMessages &control) : control(control) {
  auto reader = [this](int32_t from, const ControlMessage &message) {
    return take(from, message);
  };
  control.setReader(ControlMessage::Report, reader);
  control.setReader(
      ControlMessage::LeftStep,
      [this](int32_t from, const ControlMessage &message) -> zero_rt_status {
        this->control.link.noteEnd(from, message.step);
        if (!this->control.link.isOver(message.step))
          steps[message.step].left.insert(from);
        return ZERO_RT_OK;
      });
}

zero_rt_status Reports::take(int32_t from, const ControlMessage &message) {
  if (control.link.isOver(message.step))
    return ZERO_RT_OK;
  if (!steps.count(message.step) && steps.size() >= mostSteps) {
    return control.link.breakWith(ZERO_RT_MISMATCH,
                                  "rank " + std::to_string(from) +
                                      " sent reports of too many steps");
  }
  Step &step = steps[message.step];
  step.theirs[from] = message;
  // An error breaks the link, and later calls report it.
  (void)answer(step, from);
  return ZERO_RT_OK;
}

/// Sends the report of this rank if |to| asked for it, or for an earlier one,
/// and does not have it.
zero_rt_status Reports::answer(Step &step, int32_t to) {
  auto theirs = step.theirs.find(to);
  if (theirs == step.theirs.end() || step.mine.turn < theirs->second.turn ||
      step.sent[to] == step.mine.turn)
    return ZERO_RT_OK;
  step.sent[to] = step.mine.turn;
  return control.send(to, step.mine);
}

zero_rt_status Reports::keep(uint64_t step, uint64_t turn, const void *report,
                             int64_t bytes) {
  if (bytes > int64_t(sizeof(ControlMessage::data)))
    return fail(ZERO_RT_INTERNAL,
                "a report of %lld bytes, expected at most %zu",
                (long long)bytes, sizeof(ControlMessage::data));
  // Ranks that asked for the previous report get it now.
  ZERO_RT_TRY(control.poll());
  Step &state = steps[step];
  ControlMessage &mine = state.mine;
  mine.kind = ControlMessage::Report;
  mine.step = step;
  mine.turn = turn;
  mine.bytes = int32_t(bytes);
  std::memcpy(mine.data, report, size_t(bytes));
  for (const auto &[rank, message] : state.theirs)
    if (message.turn >= turn)
      ZERO_RT_TRY(answer(state, rank));
  return ZERO_RT_OK;
}

/// Waits for the report of |rank| of |turn|.
zero_rt_status Reports::await(Step &step, int32_t rank, uint64_t turn,
                              Deadline end) {
  for (Pause pause;; pause()) {
    ZERO_RT_TRY(control.link.check(/*waits=*/true));
    ZERO_RT_TRY(control.poll());
    const ControlMessage &theirs = step.theirs[rank];
    if (theirs.turn == turn)
      return ZERO_RT_OK;
    if (theirs.turn > turn)
      return fail(ZERO_RT_MISMATCH,
                  "rank %d has applied its step again; read the results of a "
                  "refused step before the next apply of any rank",
                  rank);
    bool hasLeft = step.left.count(rank) != 0;
    if (hasLeft || control.isGone(rank))
      return fail(ZERO_RT_TIMEOUT, "rank %d %s, and did not say what it lacks",
                  rank, hasLeft ? "has destroyed its step" : "is gone");
    if (std::chrono::steady_clock::now() >= end)
      return fail(ZERO_RT_TIMEOUT, "rank %d did not say in time what it lacks",
                  rank);
  }
}

zero_rt_status Reports::collect(uint64_t step, uint64_t turn, void *all,
                                int64_t bytes, int64_t timeoutMs) {
  Step &state = steps[step];
  Deadline end =
      std::chrono::steady_clock::now() + std::chrono::milliseconds(timeoutMs);
  int32_t ranks = control.link.ranks();
  for (int32_t rank = 0; rank < ranks; ++rank)
    if (rank != control.link.rank() && state.sent[rank] != turn) {
      state.sent[rank] = turn;
      ZERO_RT_TRY(control.send(rank, state.mine));
    }
  for (int32_t rank = 0; rank < ranks; ++rank) {
    const ControlMessage *message = &state.mine;
    if (rank != control.link.rank()) {
      ZERO_RT_TRY(await(state, rank, turn, end));
      message = &state.theirs[rank];
      if (message->bytes != bytes)
        return fail(ZERO_RT_MISMATCH,
                    "rank %d sent a report of %d bytes, expected %lld", rank,
                    message->bytes, (long long)bytes);
    }
    std::memcpy(static_cast<char *>(all) + rank * bytes, message->data,
                size_t(bytes));
  }
  return ZERO_RT_OK;
}

void Reports::leave(uint64_t step) {
  (void)control.poll();
  ControlMessage farewell;
  farewell.kind = ControlMessage::LeftStep;
  farewell.step = step;
  control.sendToAll(farewell);
  steps.erase(step);
  // Reports of other steps may have arrived after these were left.
  for (auto other = steps.begin(); other != steps.end();)
    other = control.link.isOver(other->first) ? steps.erase(other)
                                              : std::next(other);
}
