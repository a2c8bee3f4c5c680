//===- interconnect.h - Between the devices of processes --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Devices that reach each other without their hosts. What a fabric is asked for
// is queued like all else that is done to a device's memory, and needs the same
// of every other rank; so it may never be done, and who waits for a device must
// look after it.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_DEVICE_INTERCONNECT_H
#define ZERO_RT_DEVICE_INTERCONNECT_H

#include "zero_rt/status.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace zero_rt {

/// Names a fabric that is to be, to all its ranks. Equivalent to: ncclUniqueId.
struct FabricId {
  char bytes[128] = {};
};

/// What a rank sends to one other, and gets from it.
struct Trade {
  int32_t rank;
  const void *sent;
  int64_t sentBytes;
  void *received;
  int64_t receivedBytes;
};

/// One rank's end. Every rank asks for the same in the same order. What is
/// asked for is queued when the next `poll` says so. Equivalent to: ncclComm_t.
class Fabric {
public:
  virtual ~Fabric() = default;

  /// Whether sums of |dtype| lose nothing but what each addition rounds off.
  virtual bool canSum(int32_t dtype) const = 0;
  /// Sums in an order of its own, which is the same on all ranks. |src| and
  /// |dst| may be the same. Equivalent to: ncclAllReduce.
  virtual zero_rt_status allReduce(int32_t dtype, const void *src, void *dst,
                                   int64_t elements) = 0;
  /// |elements| of each rank. Equivalent to: ncclReduceScatter.
  virtual zero_rt_status reduceScatter(int32_t dtype, const void *src,
                                       void *dst, int64_t elements) = 0;
  /// |src| may be this rank's slice of |dst|. Equivalent to: ncclAllGather.
  virtual zero_rt_status allGather(const void *src, void *dst,
                                   int64_t bytes) = 0;
  /// All at once. Equivalent to: a group of ncclSend and ncclRecv.
  virtual zero_rt_status trade(const std::vector<Trade> &trades) = 0;

  /// Whether all that was asked for is queued; at first, whether all ranks have
  /// come. Errors: device_failed (also of what was asked for long ago).
  virtual zero_rt_status poll(bool &isReady) = 0;
  /// Begins what `endCall` ends: one or more of the above.
  virtual zero_rt_status beginCall() = 0;
  virtual zero_rt_status endCall() = 0;
  /// How many calls are done, of those that were made, and whether the next one
  /// is waiting for other ranks only: all before it in the queue is done.
  virtual zero_rt_status getProgress(uint64_t &done, bool &isRunning) = 0;
  /// Begins to end it in peace, after the last call: `poll` says when all has
  /// been sent. Equivalent to: ncclCommFinalize.
  virtual zero_rt_status close() = 0;
  /// Ends what is under way, whatever becomes of its memory; nothing but the
  /// destructor is left. Waits for other ranks no longer than a second. All
  /// fabrics of a device must be given up before one is waited for, so this
  /// only begins, and `awaitEnd` waits. Equivalent to: ncclCommAbort.
  virtual void abort() = 0;
  virtual void awaitEnd() = 0;
};

/// Looks after what a device waits for.
class Watch {
public:
  virtual ~Watch() = default;
  /// An error if that will not come.
  virtual zero_rt_status look() = 0;
};

class Interconnect {
public:
  virtual ~Interconnect() = default;
  /// "NCCL 2.28.9".
  virtual std::string describe() const = 0;
  virtual zero_rt_status makeId(FabricId &out) = 0;
  /// Begins to make this rank's end. Other ranks come when they do.
  virtual zero_rt_status connect(const FabricId &id, int32_t rank,
                                 int32_t ranks,
                                 std::unique_ptr<Fabric> *out) = 0;
  /// Whether the caller has lent this rank's end of a fabric of all ranks.
  virtual bool hasLent() const = 0;
  /// Whether it is that of |rank| of |ranks|. Errors: invalid_argument.
  virtual zero_rt_status checkLent(int32_t rank, int32_t ranks) = 0;
  /// The lent one; closing it leaves it to the caller.
  virtual zero_rt_status borrow(std::unique_ptr<Fabric> *out) = 0;
  /// While the device is waited for, |watch| looks; null: nobody does.
  virtual void setWatch(Watch *watch) = 0;
};

} // namespace zero_rt

#endif // ZERO_RT_DEVICE_INTERCONNECT_H
