//===- mail.h - What one rank sends to one other ----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One Mail is one rank's end. A sender leaves a pointer and goes on, so no
// order of sends can block; a rank waits for nothing but a letter that has not
// been sent.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_COMM_MAIL_H
#define ZERO_RT_COMM_MAIL_H

#include "zero_rt/abi.h"

#include <atomic>
#include <tuple>

namespace zero_rt {

/// Names what is sent. The order of sends need not be that of receives.
struct Letter {
  uint64_t step = 0;
  int64_t window = 0; // how often the step was applied or discarded before
  int32_t activation = 0;
  bool isGradient = false; // of the activation; sent the other way
  bool isHeader = false;   // the extents, which go before what has them
  int64_t microBatch = 0;

  auto key() const {
    return std::tie(step, window, activation, isGradient, isHeader, microBatch);
  }
  bool operator<(const Letter &other) const { return key() < other.key(); }
};

/// What a sender keeps until the receiver has it.
struct Parcel {
  const void *data = nullptr;
  int64_t bytes = 0;
  std::atomic<bool> isTaken{false};
};

class Mail {
public:
  virtual ~Mail() = default;

  /// Offers |parcel| to rank |to| as |letter|, which is sent once, and returns
  /// at once. The parcel must live until it is taken or this rank has left the
  /// step. Equivalent to: MPI_Isend.
  virtual zero_rt_status send(int32_t to, const Letter &letter,
                              Parcel &parcel) = 0;

  /// Waits for |letter| from rank |from| and copies it to |data|. |what|
  /// describes it in messages. Errors: timeout (it did not come in time, or its
  /// sender has destroyed the step), mismatch (it has not |bytes| bytes); both
  /// leave everything as it was. Equivalent to: MPI_Recv.
  virtual zero_rt_status receive(int32_t from, const Letter &letter, void *data,
                                 int64_t bytes, const char *what) = 0;

  /// A letter of |window| of |step| that waits for this rank; false if there is
  /// none. |from| is its sender.
  virtual bool findUnread(uint64_t step, int64_t window, Letter &letter,
                          int32_t &from) = 0;
  /// Counts these and those of earlier windows as taken.
  virtual void dropUnread(uint64_t step, int64_t window) = 0;

  /// This rank sends nothing more of |step|. Waits until the others have taken
  /// what it sent, or have left the step themselves, or the timeout: then it is
  /// lost. Comes after
  /// Communicator::leaveStep. Equivalent to: MPI_Waitall.
  virtual void leaveStep(uint64_t step) = 0;
};

} // namespace zero_rt

#endif // ZERO_RT_COMM_MAIL_H
