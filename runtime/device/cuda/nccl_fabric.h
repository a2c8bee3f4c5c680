//===- nccl_fabric.h - GPUs of processes, over NCCL -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_DEVICE_CUDA_NCCL_FABRIC_H
#define ZERO_RT_DEVICE_CUDA_NCCL_FABRIC_H

#include "device/cuda/nccl.h"

#include <deque>
#include <functional>
#include <future>

namespace zero_rt {

class CudaDevice;

/// A communicator on the stream of a device. A communicator of the runtime is
/// non-blocking, so that it can be given up while ranks are missing.
class NcclFabric final : public Fabric {
public:
  NcclFabric(CudaDevice &device, const Nccl &nccl);
  ~NcclFabric() override;
  zero_rt_status initialize(const FabricId &id, int32_t rank, int32_t ranks,
                            bool hasQueue);
  /// |newLent| outlives this object. If this object gives the communicator up,
  /// |newLent| has none any more.
  void borrow(LentNccl &newLent) {
    lent = &newLent;
    comm = lent->comm;
  }

  bool canSum(int32_t dtype) const override;
  zero_rt_status allReduce(int32_t dtype, const void *src, void *dst,
                           int64_t elements) override;
  zero_rt_status reduceScatter(int32_t dtype, const void *src, void *dst,
                               int64_t elements) override;
  zero_rt_status allGather(const void *src, void *dst, int64_t bytes) override;
  zero_rt_status trade(const std::vector<Trade> &trades) override;
  zero_rt_stream *getQueue() override {
    return reinterpret_cast<zero_rt_stream *>(own);
  }

  zero_rt_status poll(bool &isReady) override;
  zero_rt_status beginCall() override;
  zero_rt_status endCall() override;
  zero_rt_status getProgress(uint64_t &done, bool &isRunning) override;
  zero_rt_status close() override;
  void abort() override;
  void awaitEnd() override;

private:
  void end(std::function<void(NcclComm)> function);
  zero_rt_status checkCall(NcclResult result, const char *call) const;
  zero_rt_status takeEvent(CUevent &out);
  CUstream queue() const;

  /// The times at which the queue reached a call, and at which the call was
  /// done.
  struct Call {
    CUevent begin = nullptr;
    CUevent end = nullptr; // null until the call is queued
  };
  CudaDevice &device;
  const Driver &driver;
  const Nccl &nccl;
  NcclComm comm = nullptr;
  LentNccl *lent = nullptr; // the owner of a lent communicator
  CUstream own = nullptr;   // null: operations go to the device's stream
  bool isClosed = false;
  std::future<void> ended; // a thread that ends the communicator
  uint64_t done = 0;
  std::deque<Call> calls; // calls that are not done
  std::vector<CUevent> spare;
};

/// The use of NCCL by a CudaDevice.
class NcclInterconnect final : public Interconnect {
public:
  NcclInterconnect(CudaDevice &device, const Nccl &nccl, const LentNccl &lent)
      : device(device), nccl(nccl), lent(lent) {}
  std::string describe() const override {
    return "NCCL " + describeNcclVersion(nccl.version);
  }
  zero_rt_status makeId(FabricId &out) override;
  zero_rt_status connect(const FabricId &id, int32_t rank, int32_t ranks,
                         bool hasQueue, std::unique_ptr<Fabric> *out) override;
  bool hasLent() const override { return lent.comm != nullptr; }
  zero_rt_status checkLent(int32_t rank, int32_t ranks) override;
  zero_rt_status borrow(std::unique_ptr<Fabric> *out) override;
  void setWatch(Watch *watch) override;

private:
  CudaDevice &device;
  const Nccl &nccl;
  LentNccl lent;
};

} // namespace zero_rt

#endif // ZERO_RT_DEVICE_CUDA_NCCL_FABRIC_H
