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

/// What came for a GPU, until it has been copied there.
struct Incoming {
  Block block;
  zero_rt_timepoint copied = 0;
};

struct ActivationState {
  int64_t window = 0;
  std::map<std::pair<int32_t, int64_t>, Passage> passages;
  std::list<Outgoing> outgoing; // messages do not move
  std::list<Incoming> incoming;
};

/// The number of messages that this rank sent in this window, less the number
/// that it received. The sum over all ranks is the number of messages that no
/// rank received.
int64_t countSentLessReceived(const Step &step);

/// "activation 'hidden' of micro-batch 3 from rank 0".
std::string describe(const Step &step, const MessageName &name, int32_t from);

/// Begins the next window, and drops the messages that were not received.
void endWindow(Step &step);

/// Copies extents, or the |bytes| of a tensor after the work on |stream|, to
/// memory of the host that lives until the receiver has them. |name| is that of
/// the activation.
zero_rt_status packExtents(Step &step, const std::vector<int64_t> &extents,
                           const char *name, Outgoing *&out);
zero_rt_status packTensor(Step &step, const void *data, int64_t bytes,
                          zero_rt_stream *stream, const char *name,
                          Outgoing *&out);
/// Receives |bytes| with |receive|, which writes memory of the host, and copies
/// them to |data| between the earlier and the later work on |stream|.
zero_rt_status
receiveTensor(Step &step, void *data, int64_t bytes, zero_rt_stream *stream,
              const char *name,
              const std::function<zero_rt_status(void *, int64_t)> &receive);
/// Releases the copies, which no rank reads any more.
void releaseCopies(Step &step);

} // namespace zero_rt

#endif // ZERO_RT_CORE_ACTIVATIONS_H
