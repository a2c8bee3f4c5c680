//===- fabric_lanes.cpp - The lanes of a step
//------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "comm/process/fabric_communicator.h"
#include "comm/process/fabric_lane.h"

#include "core/status.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>

using namespace zero_rt;

namespace {
/// What each rank tells the others. The ids of the lanes that begin at the rank
/// follow.
struct LaneOffer {
  zero_rt_status status = ZERO_RT_OK;
  int32_t usesLanes = 0; // or 1
  char message[256] = "";
};
} // namespace

/// Makes the ids of lanes that begin at this rank, and gets those of others.
zero_rt_status FabricCommunicator::tradeIds(uint64_t step,
                                            const std::vector<LaneEnds> &lanes,
                                            std::vector<FabricId> &ids,
                                            bool &isAgreed) {
  std::map<int32_t, size_t> counts;
  std::vector<size_t> places; // among the lanes of their source
  size_t most = 0;
  for (LaneEnds ends : lanes) {
    places.push_back(counts[ends.first]++);
    most = std::max(most, counts[ends.first]);
  }
  size_t bytes = sizeof(LaneOffer) + most * sizeof(FabricId);
  std::vector<char> mine(bytes), all(bytes * members.size());
  auto idAt = [&](char *offer, size_t place) {
    return offer + sizeof(LaneOffer) + place * sizeof(FabricId);
  };
  LaneOffer offer;
  offer.usesLanes = usesLanes;
  for (size_t i = 0; i < lanes.size() && usesLanes && !offer.status; ++i) {
    if (lanes[i].first != watchdog->link.rank())
      continue;
    FabricId id;
    offer.status = watchdog->interconnect.makeId(id);
    std::memcpy(idAt(mine.data(), places[i]), &id, sizeof(id));
  }
  if (offer.status)
    std::snprintf(offer.message, sizeof(offer.message), "%s", lastMessage());
  std::memcpy(mine.data(), &offer, sizeof(offer));
  Tag tag = {"lanes", nullptr, 0, ZERO_RT_F64, ZERO_RT_F64, step};
  ZERO_RT_TRY(host->exchange(tag, mine.data(), all.data(), int64_t(bytes)));
  isAgreed = true;
  for (size_t m = 0; m < members.size(); ++m) {
    std::memcpy(&offer, all.data() + m * bytes, sizeof(offer));
    offer.message[sizeof(offer.message) - 1] = 0;
    if (offer.status)
      return fail(offer.status, "rank %d: %s", members[m], offer.message);
    if (offer.usesLanes != int32_t(usesLanes))
      return fail(
          ZERO_RT_MISMATCH,
          "ZERO_RT_ACTIVATION_LANES is %d on rank %d and %d on rank %d; "
          "all ranks send activations in one way",
          usesLanes, watchdog->link.rank(), offer.usesLanes, members[m]);
  }
  ids.resize(lanes.size());
  for (size_t i = 0; i < lanes.size(); ++i)
    std::memcpy(&ids[i],
                idAt(all.data() + size_t(lanes[i].first) * bytes, places[i]),
                sizeof(FabricId));
  isAgreed = false;
  return ZERO_RT_OK;
}

zero_rt_status FabricCommunicator::connectLanes(
    uint64_t step, const std::vector<LaneEnds> &lanes,
    const std::vector<FabricId> &ids, std::vector<std::unique_ptr<Lane>> &out) {
  int32_t rank = watchdog->link.rank();
  std::vector<FabricLane *> mine;
  for (size_t i = 0; i < lanes.size(); ++i) {
    auto [from, to] = lanes[i];
    if (from != rank && to != rank)
      continue;
    std::unique_ptr<Fabric> fabric;
    ZERO_RT_TRY(watchdog->interconnect.connect(
        ids[i], /*rank=*/rank == to, /*ranks=*/2, /*hasQueue=*/true, &fabric));
    auto lane = std::make_unique<FabricLane>(watchdog, device, lanes[i], step,
                                             std::move(fabric), timeoutMs);
    mine.push_back(lane.get());
    out[i] = std::move(lane);
  }
  // All ranks connect lanes in one order, so none waits for ever.
  for (FabricLane *lane : mine)
    ZERO_RT_TRY(lane->connect());
  return ZERO_RT_OK;
}

zero_rt_status
FabricCommunicator::openLanes(uint64_t step, const std::vector<LaneEnds> &lanes,
                              std::vector<std::unique_ptr<Lane>> &out) {
  out.clear();
  out.resize(lanes.size());
  if (lanes.empty())
    return ZERO_RT_OK;
  std::vector<FabricId> ids;
  bool isAgreed = false;
  zero_rt_status status = guarded(
      "step_create", [&] { return tradeIds(step, lanes, ids, isAgreed); });
  if (status)
    return isAgreed ? status : watchdog->breakWith(status, lastMessage());
  if (!usesLanes)
    return ZERO_RT_OK;
  status = guarded("step_create",
                   [&] { return connectLanes(step, lanes, ids, out); });
  if (!status || watchdog->link.isBroken())
    return status;
  return watchdog->breakWith(
      status, "rank " + std::to_string(watchdog->link.rank()) +
                  ": connecting ranks for activations by " +
                  watchdog->interconnect.describe() + ": " + lastMessage());
}
