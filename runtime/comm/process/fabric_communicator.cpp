//===- fabric_communicator.cpp - Collectives of devices -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "comm/process/fabric_communicator.h"

#include "core/numeric.h"
#include "core/status.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

using namespace zero_rt;

/// The bytes that are received from the other ranks before they are summed.
static constexpr int64_t mostStagingBytes = int64_t(1) << 26;

FabricCommunicator::FabricCommunicator(std::shared_ptr<Watchdog> watchdog,
                                       std::shared_ptr<Reports> reports,
                                       Device &device,
                                       std::unique_ptr<Communicator> host,
                                       std::vector<int32_t> members,
                                       int64_t timeoutMs, bool usesLanes)
    : watchdog(std::move(watchdog)), reports(std::move(reports)),
      device(device), host(std::move(host)), members(std::move(members)),
      timeoutMs(timeoutMs), usesLanes(usesLanes),
      sources(this->members.size()) {
  auto mine = std::find(this->members.begin(), this->members.end(),
                        this->watchdog->link.rank());
  index = int32_t(mine - this->members.begin());
}

FabricCommunicator::~FabricCommunicator() {
  // The other fabrics are destroyed with their steps.
  if (isWhole())
    watchdog->stop();
  disconnect();
  if (!staging || device.enter())
    return;
  device.release(ZERO_RT_SPACE_DEVICE, staging);
  device.leave();
}

//===----------------------------------------------------------------------===//
// Groups and steps
//===----------------------------------------------------------------------===//

/// Destroys the fabric, if there is one. After one second the fabric itself
/// sends the rest, for longer than this object lives.
void FabricCommunicator::disconnect() {
  if (!watched)
    return;
  bool isEntered = !device.enter();
  (void)guarded("disconnect", [&]() -> zero_rt_status {
    if (!isEntered || watchdog->link.isBroken())
      return ZERO_RT_OK;
    ZERO_RT_TRY(device.finish());
    ZERO_RT_TRY(watched->fabric->close());
    return watchdog->awaitReady(*watched->fabric, std::chrono::seconds(1));
  });
  watchdog->remove(*watched);
  watched.reset();
  if (isEntered)
    device.leave();
}

/// Creates this rank's end of the fabric, together with all members.
zero_rt_status FabricCommunicator::connect(uint64_t step, bool &isAgreed) {
  struct Offer {
    zero_rt_status status = ZERO_RT_OK;
    FabricId id;
    bool lends = false; // this rank's end, lent by its caller
    char message[256] = "";
  } mine;
  Interconnect &interconnect = watchdog->interconnect;
  mine.lends = isWhole() && interconnect.hasLent();
  if (index == 0 && !mine.lends)
    mine.status = interconnect.makeId(mine.id);
  if (mine.status)
    std::snprintf(mine.message, sizeof(mine.message), "%s", lastMessage());
  std::vector<Offer> offers(members.size());
  Tag tag = {"connect", nullptr, 0, ZERO_RT_F64, ZERO_RT_F64, step};
  ZERO_RT_TRY(
      host->exchange(tag, &mine, offers.data(), int64_t(sizeof(Offer))));
  if (offers[0].status) {
    std::string text =
        "rank " + std::to_string(members[0]) + ": " + offers[0].message;
    // All ranks of this communicator give up here. Other ranks of the process
    // group continue.
    isAgreed = isWhole();
    return fail(offers[0].status, "%s", text.c_str());
  }

  for (size_t m = 1; m < offers.size(); ++m)
    if (offers[m].lends != offers[0].lends) {
      isAgreed = true;
      return fail(
          ZERO_RT_MISMATCH,
          "rank %d %s a communicator in options->communicator, and rank %d "
          "%s; all ranks do, or none",
          members[m], offers[m].lends ? "lends" : "does not lend", members[0],
          offers[0].lends ? "does" : "does not");
    }

  // All of these ranks compute the same number, and no other process group has
  // it.
  uint64_t group = numberOf(members, step);
  std::unique_ptr<Fabric> fabric;
  std::string what = "connecting " + std::to_string(size()) + " ranks by " +
                     interconnect.describe();
  zero_rt_status status =
      mine.lends ? interconnect.borrow(&fabric)
                 : interconnect.connect(offers[0].id, index, size(),
                                        /*hasQueue=*/false, &fabric);
  if (!status) {
    watched =
        std::make_unique<WatchedFabric>(watchdog->link, watchdog->desync, group,
                                        members, timeoutMs, std::move(fabric));
    watchdog->add(*watched);
    status = watchdog->awaitReady(*watched->fabric,
                                  std::chrono::milliseconds(timeoutMs));
  }
  // All ranks have a step, or none has.
  if (!status) {
    char done = 1;
    std::vector<char> all(members.size());
    tag.operation = "connected";
    return host->exchange(tag, &done, all.data(), 1);
  }
  return fail(status, "rank %d: %s: %s", members[size_t(index)], what.c_str(),
              lastMessage());
}

/// Creates the fabric anew. If this rank cannot, the others are told.
zero_rt_status FabricCommunicator::reconnect(uint64_t step) {
  bool hadOne = watched != nullptr;
  bool isAgreed = false;
  zero_rt_status status = guarded("step_create", [&] {
    disconnect();
    return connect(step, isAgreed);
  });
  // Steps that have used the previous fabric cannot continue.
  if (!status || watchdog->link.isBroken() || (isAgreed && !hadOne))
    return status;
  return watchdog->breakWith(status, lastMessage());
}

zero_rt_status FabricCommunicator::joinStep(uint64_t step) {
  ZERO_RT_TRY(host->joinStep(step));
  if (size() == 1)
    return ZERO_RT_OK;
  // Some ranks may have made their runtimes anew, and have no fabric.
  uint64_t mine = watched ? watched->group : 0;
  std::vector<uint64_t> all(members.size());
  Tag tag = {"join", nullptr, 0, ZERO_RT_F64, ZERO_RT_F64, step};
  ZERO_RT_TRY(
      host->exchange(tag, &mine, all.data(), int64_t(sizeof(uint64_t))));
  if (mine && std::all_of(all.begin(), all.end(),
                          [&](uint64_t group) { return group == mine; }))
    return ZERO_RT_OK;
  return reconnect(step);
}

void FabricCommunicator::giveUp(zero_rt_status code, const char *message) {
  if (!watched || watchdog->link.isBroken())
    return;
  std::string text = "rank " + std::to_string(members[size_t(index)]) + ": ";
  (void)watchdog->breakWith(code, text + message);
}

void FabricCommunicator::leaveStep(uint64_t step) {
  watchdog->leaveStep(step);
  host->leaveStep(step);
}

zero_rt_status FabricCommunicator::split(uint64_t step,
                                         const std::vector<int32_t> &members,
                                         std::unique_ptr<Communicator> &out) {
  std::unique_ptr<Communicator> hosts;
  ZERO_RT_TRY(host->split(step, members, hosts));
  auto end = std::make_unique<FabricCommunicator>(
      watchdog, reports, device, std::move(hosts), members, timeoutMs);
  if (members.size() > 1)
    ZERO_RT_TRY(end->reconnect(step));
  out = std::move(end);
  return ZERO_RT_OK;
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

/// Queues a collective, which |body| does. A rank that fails tells the others,
/// whose queues wait for this rank.
template <typename Body>
zero_rt_status FabricCommunicator::run(const Tag &tag, Body &&body) {
  ZERO_RT_TRY(watchdog->check());
  if (size() == 1)
    return body();
  zero_rt_status status = guarded(tag.operation, [&]() -> zero_rt_status {
    ZERO_RT_TRY(watched->begin(tag));
    ZERO_RT_TRY(body());
    return watched->end();
  });
  if (!status || watchdog->link.isBroken())
    return status;
  return watchdog->breakWith(status,
                             describe(tag) + " on rank " +
                                 std::to_string(members[size_t(index)]) + ": " +
                                 lastMessage());
}

/// Later work must be queued behind the call of the fabric.
zero_rt_status FabricCommunicator::submit(zero_rt_status status) {
  ZERO_RT_TRY(status);
  // The watchdog finds the ranks that are missing.
  return watchdog->awaitReady(*watched->fabric, std::chrono::hours(24 * 365));
}

/// Enlarges the staging memory if it is too small.
zero_rt_status FabricCommunicator::reserve(int64_t bytes) {
  if (bytes <= stagingBytes)
    return ZERO_RT_OK;
  if (staging)
    device.release(ZERO_RT_SPACE_DEVICE, staging);
  stagingBytes = 0;
  staging = device.allocate(ZERO_RT_SPACE_DEVICE, bytes);
  if (!staging)
    return fail(ZERO_RT_OUT_OF_MEMORY,
                "no memory for %lld bytes of other ranks", (long long)bytes);
  stagingBytes = bytes;
  return ZERO_RT_OK;
}

/// Sums this rank's slice of the |src| of all ranks, in order, into |dst|,
/// whose first element is the first of the slice.
zero_rt_status FabricCommunicator::reduceOwnSlice(const Tag &tag,
                                                  Program &program,
                                                  const void *src, void *dst,
                                                  bool accumulate) {
  int64_t size = elementSize(tag.dtype);
  int64_t longest = 0;
  for (int32_t m = 0; m < this->size(); ++m)
    longest = std::max(longest, slice(tag, m).size());
  int64_t chunk = std::min(
      longest, std::max<int64_t>(1, mostStagingBytes / this->size() / size));
  ZERO_RT_TRY(reserve(this->size() * chunk * size));
  auto cut = [&](Range range, int64_t begin) {
    return intersect(range, {range.begin + begin, range.begin + begin + chunk});
  };
  for (int64_t begin = 0; begin < longest; begin += chunk) {
    Range mine = cut(slice(tag, index), begin);
    trades.clear();
    for (int32_t m = 0; m < this->size(); ++m) {
      if (m == index) {
        sources[size_t(m)] = elementAt(src, tag.dtype, mine.begin);
        continue;
      }
      char *place = static_cast<char *>(staging) + m * chunk * size;
      sources[size_t(m)] = place;
      Range theirs = cut(slice(tag, m), begin);
      trades.push_back({m, elementAt(src, tag.dtype, theirs.begin),
                        theirs.size() * size, place, mine.size() * size});
    }
    if (!trades.empty())
      ZERO_RT_TRY(submit(watched->fabric->trade(trades)));
    ZERO_RT_TRY(program.sum({tag.dtype, tag.sumType, sources.data(),
                             this->size(), elementAt(dst, tag.sumType, begin),
                             accumulate, mine.size()}));
  }
  return ZERO_RT_OK;
}

/// Receives the slices of |data|, of |dtype|, that other ranks own.
zero_rt_status FabricCommunicator::gatherSlices(const Tag &tag, int32_t dtype,
                                                void *data) {
  if (size() == 1)
    return ZERO_RT_OK;
  int64_t bytes = elementSize(dtype);
  Range own = slice(tag, index);
  if (hasEqualSlices(tag))
    return submit(watched->fabric->allGather(elementAt(data, dtype, own.begin),
                                             data, own.size() * bytes));
  trades.clear();
  for (int32_t m = 0; m < size(); ++m) {
    Range theirs = slice(tag, m);
    if (m != index)
      trades.push_back(
          {m, elementAt(data, dtype, own.begin), own.size() * bytes,
           elementAt(data, dtype, theirs.begin), theirs.size() * bytes});
  }
  return submit(watched->fabric->trade(trades));
}

zero_rt_status FabricCommunicator::allReduce(const Tag &tag, Program &program,
                                             const void *src, void *dst) {
  return run(tag, [&]() -> zero_rt_status {
    if (size() > 1 && tag.dtype == tag.sumType &&
        watched->fabric->canSum(tag.dtype))
      return submit(
          watched->fabric->allReduce(tag.dtype, src, dst, tag.elements));
    if (size() == 1 && src == dst)
      return ZERO_RT_OK; // the sum is in its place
    // Correct in place, too: this rank sends only slices of |src| that others
    // own.
    void *own = elementAt(dst, tag.sumType, slice(tag, index).begin);
    ZERO_RT_TRY(reduceOwnSlice(tag, program, src, own, /*accumulate=*/false));
    return gatherSlices(tag, tag.sumType, dst);
  });
}

zero_rt_status FabricCommunicator::reduceScatter(const Tag &tag,
                                                 Program &program,
                                                 const void *src, void *dst,
                                                 bool accumulate) {
  return run(tag, [&]() -> zero_rt_status {
    if (size() == 1 || tag.dtype != tag.sumType ||
        !watched->fabric->canSum(tag.dtype) || !hasEqualSlices(tag))
      return reduceOwnSlice(tag, program, src, dst, accumulate);
    int64_t elements = tag.elements / size();
    if (!accumulate)
      return submit(
          watched->fabric->reduceScatter(tag.dtype, src, dst, elements));
    ZERO_RT_TRY(reserve(elements * elementSize(tag.dtype)));
    ZERO_RT_TRY(submit(
        watched->fabric->reduceScatter(tag.dtype, src, staging, elements)));
    sources[0] = staging;
    return program.sum({tag.dtype, tag.sumType, sources.data(), /*ranks=*/1,
                        dst, /*accumulate=*/true, elements});
  });
}

zero_rt_status FabricCommunicator::allGather(const Tag &tag, void *data) {
  return run(tag, [&] { return gatherSlices(tag, tag.dtype, data); });
}
