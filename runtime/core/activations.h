//===- activations.h - What a rank has sent and received --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A window are the calls between two of apply or discard. In one of them each
// micro-batch of an activation is sent once, and its gradient comes back once.
// What is sent is copied, and the copies are kept for the next ones.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_CORE_ACTIVATIONS_H
#define ZERO_RT_CORE_ACTIVATIONS_H

#include "comm/mail.h"
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

/// A copy that the receiver has, or will take.
struct Outgoing {
  Parcel parcel;
  Block block;
};

struct ActivationState {
  int64_t window = 0;
  std::map<std::pair<int32_t, int64_t>, Passage> passages;
  std::list<Outgoing> outgoing; // parcels do not move
};

/// What this rank sent in this window less what it received. The sum over all
/// ranks is what nobody received.
int64_t countSentLessReceived(const Step &step);

/// "activation 'hidden' of micro-batch 3 from rank 0".
std::string describe(const Step &step, const Letter &letter, int32_t from);

/// Begins the next window. What was not received is dropped.
void endWindow(Step &step);

/// Gives back the copies. Nobody reads them any more.
void releaseOutgoing(Step &step);

} // namespace zero_rt

#endif // ZERO_RT_CORE_ACTIVATIONS_H
