//===- local_group.cpp - Ranks that are threads of one process ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Collectives read the buffers of the other ranks directly. Between `enter` and
// the last `sync`, code must not throw, allocate or return, since other ranks
// rely on this rank. Work on memory is queued on the devices of the ranks, and
// signals synchronize the streams.
//
//===----------------------------------------------------------------------===//

#include "comm/local/inbox.h"
#include "comm/local/local_reports.h"
#include "comm/local/rendezvous.h"

#include "core/handle.h"
#include "core/localize.h"
#include "core/numeric.h"
#include "core/status.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <numeric>

using namespace zero_rt;

/// Each rank is a thread of this process.
static constexpr int32_t mostThreads = 4096;

namespace {

/// A group of some of the ranks, for one step.
using SplitKey = std::pair<uint64_t, std::vector<int32_t>>;

class LocalGroup final : public Group {
public:
  explicit LocalGroup(int32_t ranks)
      : meeting(allOf(ranks), "runtime"), inboxes(size_t(ranks)),
        reports(ranks), devices(size_t(ranks)) {}
  int32_t size() const override { return meeting.size(); }
  int32_t members() override { return meeting.members(); }
  zero_rt_status join(int32_t rank, int64_t timeoutMs, Device &device,
                      std::unique_ptr<Communicator> &out,
                      std::unique_ptr<Messenger> &messenger) override;

  /// The meeting of the ranks of |key|. The first rank that comes creates it,
  /// and the last that leaves destroys it.
  std::shared_ptr<Rendezvous> getSplit(const SplitKey &key);
  void forgetDeserted();

private:
  zero_rt_status share(int32_t rank, Device &device);
  void forgetDevice(int32_t rank);

  static std::vector<int32_t> allOf(int32_t ranks) {
    std::vector<int32_t> all(static_cast<size_t>(ranks));
    std::iota(all.begin(), all.end(), 0);
    return all;
  }

  friend class LocalMessenger;
  friend class LocalCommunicator;

  Rendezvous meeting;
  std::vector<Inbox> inboxes; // by rank
  LocalReports reports;
  std::mutex mutex;
  std::vector<Device *> devices; // of the ranks that have joined
  std::map<SplitKey, std::shared_ptr<Rendezvous>> splits;
};

class LocalCommunicator final : public Communicator {
public:
  LocalCommunicator(LocalGroup &group, Rendezvous &meeting, int32_t rank,
                    int64_t timeoutMs, Device &device)
      : group(group), meeting(meeting), rank(rank), timeoutMs(timeoutMs),
        device(device), sources(size_t(meeting.size())) {}
  ~LocalCommunicator() override {
    // After the last rank has left, the process group may be destroyed.
    if (!kept)
      group.forgetDevice(rank);
    meeting.leave(rank);
    if (kept)
      group.forgetDeserted();
  }

  zero_rt_status allReduce(const Tag &tag, Program &program, const void *src,
                           void *dst) override;
  zero_rt_status reduceScatter(const Tag &tag, Program &program,
                               const void *src, void *dst,
                               bool accumulate) override;
  zero_rt_status allGather(const Tag &tag, void *data) override;
  zero_rt_status exchange(const Tag &tag, const void *mine, void *all,
                          int64_t bytes) override;
  zero_rt_status post(uint64_t step, uint64_t turn, const void *mine,
                      int64_t bytes) override {
    group.reports.post(rank, step, turn, mine, bytes);
    return ZERO_RT_OK;
  }
  zero_rt_status collect(const Tag &tag, uint64_t turn, void *all,
                         int64_t bytes) override;
  zero_rt_status split(uint64_t step, const std::vector<int32_t> &members,
                       std::unique_ptr<Communicator> &out) override;
  uint64_t position() const override { return meeting.sequenceOf(rank); }
  zero_rt_status joinStep(uint64_t) override { return ZERO_RT_OK; }
  void leaveStep(uint64_t step) override {
    meeting.leaveStep(rank, step);
    group.reports.leave(rank, step);
  }

private:
  zero_rt_status enter(const Tag &tag, const void *data);
  zero_rt_status sync(zero_rt_status &status);
  Range slice(const Tag &tag, int32_t owner) const {
    return ownedSlice(tag.elements, owner, meeting.size());
  }
  zero_rt_status awaitEntries();
  zero_rt_status reduceOwnSlice(const Tag &tag, Program &program, void *dst,
                                bool accumulate);
  zero_rt_status copyOtherSlices(const Tag &tag, void *data);

  LocalGroup &group;
  Rendezvous &meeting;
  std::shared_ptr<Rendezvous> kept; // of a split
  int32_t rank;
  int64_t timeoutMs;
  Device &device;
  std::vector<const void *> sources; // of the other ranks; never enlarged
};

class LocalMessenger final : public Messenger {
public:
  LocalMessenger(LocalGroup &group, int32_t rank, int64_t timeoutMs)
      : group(group), rank(rank), timeoutMs(timeoutMs) {}

  zero_rt_status send(int32_t to, const MessageName &name,
                      Message &message) override {
    group.inboxes[size_t(to)].put(rank, name, message);
    return ZERO_RT_OK;
  }
  zero_rt_status receive(int32_t from, const MessageName &name, void *data,
                         int64_t bytes, const char *what) override {
    return mine().take(
        from, name, data, bytes, timeoutMs,
        [&] { return group.meeting.hasLeft(from, name.step); }, what);
  }
  bool findUnread(uint64_t step, int64_t window, bool, MessageName &name,
                  int32_t &from) override {
    return mine().findUnread(step, window, name, from);
  }
  void dropUnread(uint64_t step, int64_t window) override {
    mine().dropUnread(step, window);
  }
  void declareEnd(uint64_t) override {
    for (Inbox &inbox : group.inboxes)
      inbox.wake();
  }
  bool hasEnded(int32_t other, uint64_t step) override {
    return group.meeting.hasLeft(other, step);
  }
  bool hasLeft(int32_t other, uint64_t step) override {
    return group.meeting.hasLeft(other, step);
  }
  void leaveStep(uint64_t step) override {
    auto deadline =
        std::chrono::steady_clock::now() + std::chrono::milliseconds(timeoutMs);
    for (int32_t to = 0; to < group.size(); ++to)
      group.inboxes[size_t(to)].withdraw(rank, step, deadline, [&] {
        // After all ranks have left, the meeting may be joined anew.
        return group.meeting.hasLeft(to, step) ||
               !group.meeting.hasLeft(rank, step);
      });
  }

private:
  Inbox &mine() { return group.inboxes[size_t(rank)]; }

  LocalGroup &group;
  int32_t rank;
  int64_t timeoutMs;
};

} // namespace

zero_rt_status LocalGroup::join(int32_t rank, int64_t timeoutMs, Device &device,
                                std::unique_ptr<Communicator> &out,
                                std::unique_ptr<Messenger> &messenger) {
  {
    std::lock_guard<std::mutex> lock(mutex);
    ZERO_RT_TRY(share(rank, device));
    ZERO_RT_TRY(meeting.join(rank));
    devices[size_t(rank)] = &device;
  }
  try {
    messenger = std::make_unique<LocalMessenger>(*this, rank, timeoutMs);
    out = std::make_unique<LocalCommunicator>(*this, meeting, rank, timeoutMs,
                                              device);
  } catch (...) {
    forgetDevice(rank);
    meeting.leave(rank);
    throw;
  }
  return ZERO_RT_OK;
}

/// Ranks read each other's memory. The caller holds the mutex.
zero_rt_status LocalGroup::share(int32_t rank, Device &device) {
  for (size_t r = 0; r < devices.size(); ++r) {
    Device *other = devices[r];
    if (!other || int32_t(r) == rank)
      continue;
    if (other->isImmediate() != device.isImmediate())
      return fail(ZERO_RT_UNSUPPORTED,
                  "rank %d is on device '%s' and rank %d on '%s'; ranks that "
                  "are threads must all be on GPUs, or none",
                  rank, device.name(), int(r), other->name());
    ZERO_RT_TRY(device.share(*other));
  }
  return ZERO_RT_OK;
}

void LocalGroup::forgetDevice(int32_t rank) {
  std::lock_guard<std::mutex> lock(mutex);
  devices[size_t(rank)] = nullptr;
}

std::shared_ptr<Rendezvous> LocalGroup::getSplit(const SplitKey &key) {
  std::lock_guard<std::mutex> lock(mutex);
  std::shared_ptr<Rendezvous> &split = splits[key];
  if (!split)
    split = std::make_shared<Rendezvous>(key.second, "step");
  return split;
}

void LocalGroup::forgetDeserted() {
  std::lock_guard<std::mutex> lock(mutex);
  for (auto it = splits.begin(); it != splits.end();)
    it = it->second->isDeserted() ? splits.erase(it) : std::next(it);
}

zero_rt_status LocalCommunicator::split(uint64_t step,
                                        const std::vector<int32_t> &members,
                                        std::unique_ptr<Communicator> &out) {
  std::shared_ptr<Rendezvous> where = group.getSplit({step, members});
  auto mine = std::find(members.begin(), members.end(), rank);
  int32_t index = int32_t(mine - members.begin());
  ZERO_RT_TRY(where->join(index));
  try {
    auto end = std::make_unique<LocalCommunicator>(group, *where, index,
                                                   timeoutMs, device);
    end->kept = where;
    out = std::move(end);
  } catch (...) {
    where->leave(index);
    throw;
  }
  return ZERO_RT_OK;
}

/// Shows |data| to the other ranks, with a signal for the work that writes it.
zero_rt_status LocalCommunicator::enter(const Tag &tag, const void *data) {
  Signal signal = nullptr;
  if (meeting.size() > 1)
    ZERO_RT_TRY(device.signal(&signal));
  return meeting.enter(rank, tag, data, signal, timeoutMs);
}

/// Ends a phase: later work starts after the work of all ranks in this phase.
/// |status| is the result of this rank. If it is an error, the phase fails on
/// all ranks. If only this rank cannot wait for the others, |status| becomes
/// that error, and its next sync reports it.
zero_rt_status LocalCommunicator::sync(zero_rt_status &status) {
  Signal signal = nullptr;
  if (!status && meeting.size() > 1)
    status = device.signal(&signal);
  if (zero_rt_status failure = meeting.sync(rank, signal, status)) {
    char message[512];
    std::snprintf(message, sizeof(message), "%s", lastMessage());
    // Queued work of other ranks may read memory that the caller of this rank
    // releases next.
    (void)device.finish();
    (void)meeting.sync(rank, /*signal=*/nullptr, ZERO_RT_OK);
    meeting.declareSeen(rank);
    return fail(failure, "%s", message);
  }
  for (int32_t r = 0; r < meeting.size(); ++r) {
    zero_rt_status followed =
        r == rank ? ZERO_RT_OK : device.await(meeting.signalOf(r));
    if (!status)
      status = followed;
  }
  meeting.declareSeen(rank);
  return ZERO_RT_OK;
}

/// Later work starts after the work that writes the data that the other ranks
/// show.
zero_rt_status LocalCommunicator::awaitEntries() {
  for (int32_t r = 0; r < meeting.size(); ++r)
    if (r != rank)
      ZERO_RT_TRY(device.await(meeting.entrySignalOf(r)));
  return ZERO_RT_OK;
}

/// Sums this rank's slice of the data of all ranks into |dst|, whose first
/// element is the first of the slice.
zero_rt_status LocalCommunicator::reduceOwnSlice(const Tag &tag,
                                                 Program &program, void *dst,
                                                 bool accumulate) {
  Range own = slice(tag, rank);
  for (int32_t r = 0; r < meeting.size(); ++r)
    sources[size_t(r)] = elementAt(meeting.dataOf(r), tag.dtype, own.begin);
  return guarded(tag.operation, [&] {
    return program.sum({tag.dtype, tag.sumType, sources.data(), meeting.size(),
                        dst, accumulate, own.size()});
  });
}

zero_rt_status LocalCommunicator::copyOtherSlices(const Tag &tag, void *data) {
  for (int32_t r = 0; r < meeting.size(); ++r) {
    Range theirs = slice(tag, r);
    if (r == rank || theirs.empty())
      continue;
    ZERO_RT_TRY(
        device.copy(elementAt(data, tag.dtype, theirs.begin),
                    elementAt(meeting.dataOf(r), tag.dtype, theirs.begin),
                    theirs.size() * elementSize(tag.dtype)));
  }
  return ZERO_RT_OK;
}

zero_rt_status LocalCommunicator::allReduce(const Tag &tag, Program &program,
                                            const void *src, void *dst) {
  void *own = elementAt(dst, tag.sumType, slice(tag, rank).begin);
  if (src != dst) {
    ZERO_RT_TRY(reduceScatter(tag, program, src, own, false));
    Tag sums = tag;
    sums.dtype = tag.sumType;
    return allGather(sums, dst);
  }
  ZERO_RT_TRY(enter(tag, src));
  if (meeting.size() == 1)
    return ZERO_RT_OK; // the sum is in its place
  // In place: in this phase only this rank reads slice |rank| of any buffer.
  zero_rt_status status = awaitEntries();
  if (!status)
    status = reduceOwnSlice(tag, program, own, false);
  ZERO_RT_TRY(sync(status));
  if (!status)
    status = copyOtherSlices(tag, dst);
  // A rank must not change a buffer while another rank copies from it.
  ZERO_RT_TRY(sync(status));
  return status;
}

zero_rt_status LocalCommunicator::reduceScatter(const Tag &tag,
                                                Program &program,
                                                const void *src, void *dst,
                                                bool accumulate) {
  ZERO_RT_TRY(enter(tag, src));
  zero_rt_status status = awaitEntries();
  if (!status)
    status = reduceOwnSlice(tag, program, dst, accumulate);
  ZERO_RT_TRY(sync(status));
  return status;
}

zero_rt_status LocalCommunicator::allGather(const Tag &tag, void *data) {
  ZERO_RT_TRY(enter(tag, data));
  // A rank writes the slices of other ranks, and others read only its own
  // slice.
  zero_rt_status status = awaitEntries();
  if (!status)
    status = copyOtherSlices(tag, data);
  ZERO_RT_TRY(sync(status));
  return status;
}

zero_rt_status LocalCommunicator::exchange(const Tag &tag, const void *mine,
                                           void *all, int64_t bytes) {
  // Reports are on the host, whatever the device is.
  ZERO_RT_TRY(meeting.enter(rank, tag, mine, /*signal=*/nullptr, timeoutMs));
  for (int32_t r = 0; r < meeting.size(); ++r)
    std::memcpy(static_cast<char *>(all) + r * bytes, meeting.dataOf(r),
                size_t(bytes));
  ZERO_RT_TRY(meeting.sync(rank, /*signal=*/nullptr, ZERO_RT_OK));
  meeting.declareSeen(rank);
  return ZERO_RT_OK;
}

zero_rt_status LocalCommunicator::collect(const Tag &tag, uint64_t turn,
                                          void *all, int64_t bytes) {
  return group.reports.collect(tag.step, turn, all, bytes, timeoutMs);
}

ZERO_RT_EXPORT zero_rt_status
zero_rt_local_group_create(int32_t ranks, zero_rt_group **out_group) {
  if (!out_group)
    return fail(ZERO_RT_INVALID_ARGUMENT, "out_group is null");
  *out_group = nullptr;
  if (ranks < 1 || ranks > mostThreads)
    return fail(ZERO_RT_INVALID_ARGUMENT, "ranks is %d, expected 1 to %d",
                ranks, mostThreads);
  return guarded("zero_rt_local_group_create", [&]() -> zero_rt_status {
    auto handle = std::make_unique<zero_rt_group>();
    Group *group = new LocalGroup(ranks);
    *out_group = giveOut(std::move(handle), group);
    return ZERO_RT_OK;
  });
}
