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

#include <functional>
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

/// Memory of a tensor on its way.
struct Copy {
  Block block;
  /// The work that uses it is done then.
  zero_rt_timepoint usedUntil = 0;
  bool isHeld = false; // for a receive of the caller
};

/// A tensor that a call sends or receives.
struct Payload {
  void *data;
  int64_t bytes;
  zero_rt_stream *stream; // of the caller
  const char *activation; // its name
  bool isOnHost;          // of a device that has its own memory
};

struct ActivationState {
  int64_t window = 0;
  std::map<std::pair<int32_t, int64_t>, Passage> passages;
  std::list<Outgoing> outgoing; // messages do not move
  std::list<Copy> incoming;     // for a GPU, until it has been copied there
};

/// The number of messages that this rank sent in this window, less the number
/// that it received. The sum over all ranks is the number of messages that no
/// rank received.
int64_t countSentLessReceived(const Step &step);

/// "activation 'hidden' of micro-batch 3 from rank 0".
std::string describe(const Step &step, const MessageName &name, int32_t from);

/// A message of this window that waits for this rank, as in Messenger.
bool findUnread(Step &step, bool waits, MessageName &name, int32_t &from);

/// Begins the next window, and drops the messages that were not received.
void endWindow(Step &step);

/// Finds memory for |payload| that nothing uses, or makes more, on the selected
/// stream.
zero_rt_status takeCopy(Step &step, std::list<Copy> &copies, int32_t space,
                        const Payload &payload, Copy *&out);

/// Copies extents, or a tensor after the work on its stream, to memory of the
/// host that lives until the receiver has them. |name| is that of the
/// activation.
zero_rt_status packExtents(Step &step, const std::vector<int64_t> &extents,
                           const char *name, Outgoing *&out);
zero_rt_status packTensor(Step &step, const Payload &payload, Outgoing *&out);
/// Receives with |receive|, which writes memory of the host, and copies that to
/// |payload| between the earlier and the later work on its stream.
zero_rt_status
receiveTensor(Step &step, const Payload &payload,
              const std::function<zero_rt_status(void *, int64_t)> &receive);
/// Releases the copies, which no rank reads any more.
void releaseCopies(Step &step);

} // namespace zero_rt

#endif // ZERO_RT_CORE_ACTIVATIONS_H
