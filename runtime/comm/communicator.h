//===- communicator.h - What the core needs from a group --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One Communicator is one rank's end of a group. Collectives are called in the
// same order with the same tag on every rank; an implementation reports who did
// not. They count nothing: the core does, for all implementations alike.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_COMM_COMMUNICATOR_H
#define ZERO_RT_COMM_COMMUNICATOR_H

#include "comm/mail.h"
#include "comm/tag.h"
#include "device/device.h"

#include <memory>
#include <vector>

namespace zero_rt {

class Communicator {
public:
  virtual ~Communicator() = default;

  /// Sums the elements of |src| over the ranks into |dst|, which may be the
  /// same memory. Ranks are added in the order 0..D-1 with one final rounding,
  /// by |program|; or in another order, where a fabric adds f32 or f64. All get
  /// the same bits.
  virtual zero_rt_status allReduce(const Tag &tag, Program &program,
                                   const void *src, void *dst) = 0;

  /// Sums this rank's slice of |src| into |dst|, which holds the slice only;
  /// with |accumulate| adds the rounded sum to what |dst| holds.
  virtual zero_rt_status reduceScatter(const Tag &tag, Program &program,
                                       const void *src, void *dst,
                                       bool accumulate) = 0;

  /// Fills the slices of |data| that other ranks own.
  virtual zero_rt_status allGather(const Tag &tag, void *data) = 0;

  /// Gathers a record of |bytes| bytes of every rank into |all|. For creation
  /// and for errors; never part of a good step.
  virtual zero_rt_status exchange(const Tag &tag, const void *mine, void *all,
                                  int64_t bytes) = 0;

  /// Leaves |mine|, a record of |bytes| bytes about turn |turn| of |step|, for
  /// `collect`, in the place of that of the turn before. Waits for nobody.
  virtual zero_rt_status post(uint64_t step, uint64_t turn, const void *mine,
                              int64_t bytes) = 0;
  /// Gathers what all ranks posted for |turn| of the tag's step, as `exchange`
  /// does.
  virtual zero_rt_status collect(const Tag &tag, uint64_t turn, void *all,
                                 int64_t bytes) = 0;

  /// Makes this rank's end of a group of |members|, ranks of this group in
  /// ascending order and this one among them. All of them call it with the same
  /// |step|, which tells groups of the same members apart. Equivalent to:
  /// ncclCommSplit, MPI_Comm_create_group.
  virtual zero_rt_status split(uint64_t step,
                               const std::vector<int32_t> &members,
                               std::unique_ptr<Communicator> &out) = 0;

  /// A number that all ranks agree on between two collectives and that is not
  /// given twice. Never 0.
  virtual uint64_t position() const = 0;

  /// Makes ready for the collectives of |step|. All ranks call it.
  virtual zero_rt_status joinStep(uint64_t step) = 0;
  /// Says that this rank will never again take part in |step|.
  virtual void leaveStep(uint64_t step) = 0;

  /// Whether what is queued will be what it was meant to be, as far as is
  /// known.
  virtual zero_rt_status check() { return ZERO_RT_OK; }
  /// Says that this rank cannot go on, where others would wait for it in vain.
  virtual void giveUp(zero_rt_status code, const char *message) {}
};

/// No group has more, as no mesh has.
constexpr int32_t mostRanks = 1 << 20;

/// A group of any kind.
struct Group {
  virtual ~Group() = default;
  virtual int32_t size() const = 0;
  /// How many ranks of this process have joined and not left.
  virtual int32_t members() = 0;
  /// Whether ranks have devices of their own, which reach each other by
  /// themselves where they can.
  virtual bool usesInterconnect() const { return false; }
  /// Makes the ends of |rank|; destroying that of the collectives leaves the
  /// group, and comes last. |device| outlives it.
  virtual zero_rt_status join(int32_t rank, int64_t timeoutMs, Device &device,
                              std::unique_ptr<Communicator> &out,
                              std::unique_ptr<Mail> &mail) = 0;
};

} // namespace zero_rt

#endif // ZERO_RT_COMM_COMMUNICATOR_H
