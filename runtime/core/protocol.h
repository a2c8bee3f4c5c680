//===- protocol.h - The automaton that a library brings ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_CORE_PROTOCOL_H
#define ZERO_RT_CORE_PROTOCOL_H

#include "core/step.h"

namespace zero_rt {

/// Finds the transition of |event| in the present state. |call| is for the
/// message.
zero_rt_status findTransition(const Step &step, int32_t event, const char *call,
                              const zero_rt_transition_row **out);

/// Runs the handlers of |row| and enters its next state. |caller| is the stream
/// of the caller in these handlers.
zero_rt_status runTransition(Step &step, const zero_rt_transition_row &row,
                             const zero_rt_event &event, const char *call,
                             const CallerStream &caller = {});

/// Runs one handler. If the handler fails, buffers may be half written, so the
/// step is poisoned.
zero_rt_status runHandler(Step &step, int64_t handler,
                          const zero_rt_event &event, const char *call);

/// Poisons the step: only destroy is allowed from now on. The cause is the last
/// message and |status|. Tells the ranks that wait for this rank. Does nothing
/// if the step is poisoned.
void poisonStep(Step &step, const char *call, zero_rt_status status);

/// Refuses |call| in every state but the initial one.
zero_rt_status requireIdle(const Step &step, const char *call);

/// The state of the protocol between two backward passes in which a checkpoint
/// may be saved; -1: there is none.
int64_t findResumableState(const Step &step);

/// Refuses |call| but between steps, and between two backward passes where a
/// checkpoint may be saved.
zero_rt_status requireClosed(const Step &step, const char *call);

/// Refuses |call| between measure and the apply or discard that follows.
zero_rt_status requireNotMeasured(const Step &step, const char *call);

/// `results` waits for the work of the step so far.
zero_rt_status markResults(Step &step);

} // namespace zero_rt

#endif // ZERO_RT_CORE_PROTOCOL_H
