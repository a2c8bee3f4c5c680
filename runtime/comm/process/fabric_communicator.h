//===- fabric_communicator.h - Collectives of devices -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Ranks are processes, and each has a device that communicates with the other
// devices directly. Work on memory is queued, and hosts do not wait for it. The
// hosts meet over the link when steps begin.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_COMM_PROCESS_FABRIC_COMMUNICATOR_H
#define ZERO_RT_COMM_PROCESS_FABRIC_COMMUNICATOR_H

#include "comm/process/communicator.h"
#include "comm/process/watchdog.h"

namespace zero_rt {

class FabricCommunicator final : public Communicator {
public:
  /// |members| are ranks of the link, this rank included. |host| is the
  /// communicator of their hosts.
  FabricCommunicator(std::shared_ptr<Watchdog> watchdog,
                     std::shared_ptr<Reports> reports, Device &device,
                     std::unique_ptr<Communicator> host,
                     std::vector<int32_t> members, int64_t timeoutMs,
                     bool usesLanes = false);
  ~FabricCommunicator() override;

  zero_rt_status allReduce(const Tag &tag, Program &program, const void *src,
                           void *dst) override;
  zero_rt_status reduceScatter(const Tag &tag, Program &program,
                               const void *src, void *dst,
                               bool accumulate) override;
  zero_rt_status allGather(const Tag &tag, void *data) override;
  zero_rt_status exchange(const Tag &tag, const void *mine, void *all,
                          int64_t bytes) override {
    return host->exchange(tag, mine, all, bytes);
  }
  zero_rt_status post(uint64_t step, uint64_t turn, const void *mine,
                      int64_t bytes) override {
    return reports->keep(step, turn, mine, bytes);
  }
  zero_rt_status collect(const Tag &tag, uint64_t turn, void *all,
                         int64_t bytes) override {
    // Each rank decides alone when it needs the reports.
    return reports->collect(tag.step, turn, all, bytes, timeoutMs);
  }
  zero_rt_status split(uint64_t step, const std::vector<int32_t> &members,
                       std::unique_ptr<Communicator> &out) override;
  zero_rt_status openLanes(uint64_t step, const std::vector<LaneEnds> &lanes,
                           std::vector<std::unique_ptr<Lane>> &out) override;
  uint64_t position() const override { return host->position(); }
  zero_rt_status joinStep(uint64_t step) override;
  void leaveStep(uint64_t step) override;
  zero_rt_status check() override { return watchdog->check(); }
  void giveUp(zero_rt_status code, const char *message) override;

private:
  int32_t size() const { return int32_t(members.size()); }
  Range slice(const Tag &tag, int32_t owner) const {
    return ownedSlice(tag.elements, owner, size());
  }
  bool hasEqualSlices(const Tag &tag) const {
    return tag.elements % size() == 0;
  }
  bool isWhole() const { return size() == watchdog->link.ranks(); }
  zero_rt_status connect(uint64_t step, bool &isAgreed);
  zero_rt_status reconnect(uint64_t step);
  zero_rt_status tradeIds(uint64_t step, const std::vector<LaneEnds> &lanes,
                          std::vector<FabricId> &ids, bool &isAgreed);
  zero_rt_status connectLanes(uint64_t step, const std::vector<LaneEnds> &lanes,
                              const std::vector<FabricId> &ids,
                              std::vector<std::unique_ptr<Lane>> &out);
  void disconnect();
  template <typename Body> zero_rt_status run(const Tag &tag, Body &&body);
  zero_rt_status submit(zero_rt_status status);
  zero_rt_status reserve(int64_t bytes);
  zero_rt_status reduceOwnSlice(const Tag &tag, Program &program,
                                const void *src, void *dst, bool accumulate);
  zero_rt_status gatherSlices(const Tag &tag, int32_t dtype, void *data);

  std::shared_ptr<Watchdog> watchdog;
  std::shared_ptr<Reports> reports;
  Device &device;
  std::unique_ptr<Communicator> host;
  std::vector<int32_t> members; // ranks of the link
  int32_t index = 0;            // of this one
  int64_t timeoutMs;
  bool usesLanes;                         // if the caller wants them
  std::unique_ptr<WatchedFabric> watched; // null until a step needs it
  void *staging = nullptr;                // addends of the others
  int64_t stagingBytes = 0;
  std::vector<const void *> sources;
  std::vector<Trade> trades;
};

} // namespace zero_rt

#endif // ZERO_RT_COMM_PROCESS_FABRIC_COMMUNICATOR_H
