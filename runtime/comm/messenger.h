//===- messenger.h - What one rank sends to one other -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A Messenger is one rank's end. A sender leaves a pointer and continues, so no
// order of sends blocks. A receive waits only for a message that has not been
// sent.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_COMM_MESSENGER_H
#define ZERO_RT_COMM_MESSENGER_H

#include "zero_rt/abi.h"

#include <atomic>
#include <tuple>

namespace zero_rt {

/// The name of a message. Messages may be received in another order than that
/// of their sends.
struct MessageName {
  uint64_t step = 0;
  int64_t window = 0; // the number of earlier applies and discards of the step
  int64_t microBatch = 0;
  int32_t activation = 0;
  int16_t isGradient = 0; // 1: of the activation, sent the other way
  int16_t isHeader = 0;   // 1: the extents, which are sent before the tensor

  auto key() const {
    return std::tie(step, window, activation, isGradient, isHeader, microBatch);
  }
  bool operator<(const MessageName &other) const { return key() < other.key(); }
};

/// The data of a message, which the sender keeps until the receiver has it.
struct Message {
  const void *data = nullptr;
  int64_t bytes = 0;
  std::atomic<bool> isTaken{false};
};

class Messenger {
public:
  virtual ~Messenger() = default;

  /// Offers |message| to rank |to| under the name |name|, once, and returns at
  /// once. The message must live until it is taken or this rank has left the
  /// step. Equivalent to: MPI_Isend.
  virtual zero_rt_status send(int32_t to, const MessageName &name,
                              Message &message) = 0;

  /// Waits for |name| from rank |from| and copies it to |data|. |what|
  /// describes the message in errors. Errors: timeout (it did not arrive in
  /// time, or its sender has destroyed the step), mismatch (it does not have
  /// |bytes| bytes). Both leave everything unchanged. Equivalent to: MPI_Recv.
  virtual zero_rt_status receive(int32_t from, const MessageName &name,
                                 void *data, int64_t bytes,
                                 const char *what) = 0;

  /// A message of |window| of |step| that waits for this rank; false if there
  /// is none. |from| is its sender. With |waits| this waits a moment for one
  /// that is on its way.
  virtual bool findUnread(uint64_t step, int64_t window, bool waits,
                          MessageName &name, int32_t &from) = 0;
  /// Counts the messages of this and earlier windows as taken.
  virtual void dropUnread(uint64_t step, int64_t window) = 0;

  /// Declares that this rank sends nothing more in |step|. Comes after
  /// Communicator::leaveStep.
  virtual void declareEnd(uint64_t step) = 0;
  /// Whether rank |other| has declared that it sends nothing more in |step|.
  virtual bool hasEnded(int32_t other, uint64_t step) = 0;
  /// Whether rank |other| has left |step|, and receives nothing more.
  virtual bool hasLeft(int32_t other, uint64_t step) = 0;
  /// Waits until the other ranks have taken the messages of this one or have
  /// left the step, at most for the timeout. Untaken messages are lost. Comes
  /// after `declareEnd`. Equivalent to: MPI_Waitall.
  virtual void leaveStep(uint64_t step) = 0;
};

} // namespace zero_rt

#endif // ZERO_RT_COMM_MESSENGER_H
