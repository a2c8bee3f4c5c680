//===- activations.h - What a rank has sent and received --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A window consists of the calls between two calls of apply or discard. In a
// window each micro-batch of an activation is sent once, and its gradient comes
// back once. A send copies its tensor, and later sends reuse the memory of the
// copies.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_CORE_ACTIVATIONS_H
#define ZERO_RT_CORE_ACTIVATIONS_H

#include "comm/messenger.h"
#include "core/memory.h"

#include <list>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace zero_rt {

struct Step;

/// One micro-batch of one activation, on this rank.
struct Passage {
  bool isSent = false;
  bool isReceived = false;
  std::vector<int64_t> shape; // once it is known
};

/// A copy that the receiver has taken or will take.
struct Outgoing {
  Message message;
  Block block;
};

struct ActivationState {
  int64_t window = 0;
  std::map<std::pair<int32_t, int64_t>, Passage> passages;
  std::list<Outgoing> outgoing; // messages do not move
};

/// The number of messages that this rank sent in this window, less the number
/// that it received. The sum over all ranks is the number of messages that no
/// rank received.
int64_t countSentLessReceived(const Step &step);

/// "activation 'hidden' of micro-batch 3 from rank 0".
std::string describe(const Step &step, const MessageName &name, int32_t from);

/// Begins the next window, and drops the messages that were not received.
void endWindow(Step &step);

/// Releases the copies, which no rank reads any more.
void releaseOutgoing(Step &step);

} // namespace zero_rt

#endif // ZERO_RT_CORE_ACTIVATIONS_H
