//===- communicator.h - What the core needs from a group --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A Communicator is one rank's end of a process group. Every rank calls the
// same collectives in the same order with the same tags. An implementation
// reports the ranks that do not. The core counts collectives, for all
// implementations alike.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_COMM_COMMUNICATOR_H
#define ZERO_RT_COMM_COMMUNICATOR_H

#include "comm/lane.h"
#include "comm/messenger.h"
#include "comm/tag.h"
#include "device/device.h"

#include <memory>
#include <vector>

namespace zero_rt {

class Segment;

class Communicator {
public:
  virtual ~Communicator() = default;

  /// Sums the elements of |src| over the ranks into |dst|, which may be the
  /// same memory. |program| adds in the order of ranks 0..D-1, and rounds once.
  /// A fabric that sums f32 or f64 adds in another order. All ranks get the
  /// same bits.
  virtual zero_rt_status allReduce(const Tag &tag, Program &program,
                                   const void *src, void *dst) = 0;

  /// Sums this rank's slice of |src| into |dst|, which has only the slice. With
  /// |accumulate| the rounded sum is added to |dst|.
  virtual zero_rt_status reduceScatter(const Tag &tag, Program &program,
                                       const void *src, void *dst,
                                       bool accumulate) = 0;

  /// Receives the slices of |data| that other ranks own.
  virtual zero_rt_status allGather(const Tag &tag, void *data) = 0;

  /// Gathers a report of |bytes| bytes from every rank into |all|. Used at
  /// creation and after errors, and never in a step without errors.
  virtual zero_rt_status exchange(const Tag &tag, const void *mine, void *all,
                                  int64_t bytes) = 0;

  /// Posts |mine|, a report of |bytes| bytes about turn |turn| of |step|, for
  /// `collect`. Replaces the report of the previous turn. Does not wait.
  virtual zero_rt_status post(uint64_t step, uint64_t turn, const void *mine,
                              int64_t bytes) = 0;
  /// Gathers the reports that all ranks have posted for |turn| of the tag's
  /// step, as `exchange` does.
  virtual zero_rt_status collect(const Tag &tag, uint64_t turn, void *all,
                                 int64_t bytes) = 0;

  /// Creates this rank's end of a process group of |members|, ranks of this
  /// process group in ascending order, this rank included. All members call it
  /// with the same |step|, which distinguishes process groups of the same
  /// members. Equivalent to: ncclCommSplit, MPI_Comm_create_group.
  virtual zero_rt_status split(uint64_t step,
                               const std::vector<int32_t> &members,
                               std::unique_ptr<Communicator> &out) = 0;

  /// A number that all ranks agree on between two collectives, and that is
  /// never returned twice. Never 0.
  virtual uint64_t position() const = 0;

  /// Opens this rank's ends of |lanes| for |step|. Null: this rank has no end
  /// of the lane, or hosts exchange the data of devices. All ranks call it with
  /// the same lanes.
  virtual zero_rt_status openLanes(uint64_t step,
                                   const std::vector<LaneEnds> &lanes,
                                   std::vector<std::unique_ptr<Lane>> &out) {
    out.clear();
    out.resize(lanes.size());
    return ZERO_RT_OK;
  }

  /// Prepares the collectives of |step|. All ranks call it.
  virtual zero_rt_status joinStep(uint64_t step) = 0;
  /// Declares that this rank takes part in no further collective of |step|.
  virtual void leaveStep(uint64_t step) = 0;

  /// Memory for the buffers of collectives; null: any memory will do.
  virtual Segment *segment() { return nullptr; }
  /// The number of other processes whose memory this rank reads.
  virtual int64_t sharedRanks() const { return 0; }

  /// An error if queued work is known to have wrong results.
  virtual zero_rt_status check() { return ZERO_RT_OK; }
  /// Tells the ranks that wait for this rank that it cannot continue.
  virtual void giveUp(zero_rt_status code, const char *message) {}
};

/// The maximum number of ranks, which is also that of a mesh.
constexpr int32_t mostRanks = 1 << 20;

/// A process group of any kind.
struct Group {
  virtual ~Group() = default;
  virtual int32_t size() const = 0;
  /// The number of ranks of this process that have joined and not left.
  virtual int32_t members() = 0;
  /// Whether each rank has a device of its own, which communicates with the
  /// devices of other ranks directly if it can.
  virtual bool usesInterconnect() const { return false; }
  /// Creates the ends of |rank|. To destroy the communicator leaves the process
  /// group, and comes last. |device| outlives both.
  virtual zero_rt_status join(int32_t rank, int64_t timeoutMs, Device &device,
                              std::unique_ptr<Communicator> &out,
                              std::unique_ptr<Messenger> &messenger) = 0;
};

} // namespace zero_rt

#endif // ZERO_RT_COMM_COMMUNICATOR_H
