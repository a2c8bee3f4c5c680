//===- interconnect.h - Between the devices of processes --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Devices that communicate without their hosts. A fabric queues operations on
// the memory of its device. An operation runs when every other rank has queued
// it, too. So it may never run, and a host that waits for its device must look
// for errors.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_DEVICE_INTERCONNECT_H
#define ZERO_RT_DEVICE_INTERCONNECT_H

#include "zero_rt/abi.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace zero_rt {

/// The id of a fabric, the same on all its ranks. Equivalent to: ncclUniqueId.
struct FabricId {
  char bytes[128] = {};
};

/// The data that a rank sends to one other rank, and receives from it.
struct Trade {
  int32_t rank;
  const void *sent;
  int64_t sentBytes;
  void *received;
  int64_t receivedBytes;
};

/// One rank's end of a fabric. Every rank calls the same operations in the same
/// order. An operation is queued when `poll` says so. Equivalent to:
/// ncclComm_t.
class Fabric {
public:
  virtual ~Fabric() = default;

  /// Whether the fabric sums |dtype| with no other error than the rounding of
  /// each addition.
  virtual bool canSum(int32_t dtype) const = 0;
  /// Sums in an order of the fabric, the same on all ranks. |src| and |dst| may
  /// be the same. Equivalent to: ncclAllReduce.
  virtual zero_rt_status allReduce(int32_t dtype, const void *src, void *dst,
                                   int64_t elements) = 0;
  /// |elements| is the size of each rank's slice. Equivalent to:
  /// ncclReduceScatter.
  virtual zero_rt_status reduceScatter(int32_t dtype, const void *src,
                                       void *dst, int64_t elements) = 0;
  /// |src| may be this rank's slice of |dst|. Equivalent to: ncclAllGather.
  virtual zero_rt_status allGather(const void *src, void *dst,
                                   int64_t bytes) = 0;
  /// Runs all |trades| at once. Equivalent to: a group of ncclSend and
  /// ncclRecv.
  virtual zero_rt_status trade(const std::vector<Trade> &trades) = 0;
  /// The stream of the operations, if it is the fabric's own; else null:
  /// operations are queued to the selected stream of the device.
  virtual zero_rt_stream *getQueue() = 0;

  /// Whether all operations are queued; before the first operation, whether all
  /// ranks have connected. Errors: device_failed (also of earlier operations).
  virtual zero_rt_status poll(bool &isReady) = 0;
  /// A call is one or more of the operations above, between `beginCall` and
  /// `endCall`.
  virtual zero_rt_status beginCall() = 0;
  virtual zero_rt_status endCall() = 0;
  /// The number of calls that are done, and whether the next call is waiting
  /// for other ranks only, since the work before it is done.
  virtual zero_rt_status getProgress(uint64_t &done, bool &isRunning) = 0;
  /// Begins a regular end after the last call. `poll` says when everything has
  /// been sent. Equivalent to: ncclCommFinalize.
  virtual zero_rt_status close() = 0;
  /// Gives up all operations, whose memory is undefined afterwards. Only the
  /// destructor may follow. `abort` begins, and `awaitEnd` waits, at most one
  /// second for other ranks. All fabrics of a device must be aborted before the
  /// end of one is awaited. Equivalent to: ncclCommAbort.
  virtual void abort() = 0;
  virtual void awaitEnd() = 0;
};

/// Looks for errors while a host waits for its device.
class Watch {
public:
  virtual ~Watch() = default;
  /// An error if the device will never be done.
  virtual zero_rt_status look() = 0;
};

class Interconnect {
public:
  virtual ~Interconnect() = default;
  /// The name and version, such as "NCCL 2.28.9".
  virtual std::string describe() const = 0;
  virtual zero_rt_status makeId(FabricId &out) = 0;
  /// Begins to connect this rank's end. The other ranks may connect later.
  /// |hasQueue|: the fabric has a stream of its own.
  virtual zero_rt_status connect(const FabricId &id, int32_t rank,
                                 int32_t ranks, bool hasQueue,
                                 std::unique_ptr<Fabric> *out) = 0;
  /// Whether the caller has lent its end of a fabric of all ranks.
  virtual bool hasLent() const = 0;
  /// Checks that the lent end is that of |rank| of |ranks|. Errors:
  /// invalid_argument.
  virtual zero_rt_status checkLent(int32_t rank, int32_t ranks) = 0;
  /// The lent end. Closing it does not destroy it.
  virtual zero_rt_status borrow(std::unique_ptr<Fabric> *out) = 0;
  /// Calls |watch| while a host waits for the device. Null: calls nothing.
  virtual void setWatch(Watch *watch) = 0;
};

} // namespace zero_rt

#endif // ZERO_RT_DEVICE_INTERCONNECT_H
