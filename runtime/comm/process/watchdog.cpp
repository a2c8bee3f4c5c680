//===- watchdog.cpp - Looks after queued collectives ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "comm/process/watchdog.h"

#include "core/pause.h"
#include "core/status.h"

#include <algorithm>

using namespace zero_rt;

WatchedFabric::WatchedFabric(Link &link, DesyncCheck &desync, uint64_t group,
                             std::vector<int32_t> members, int64_t timeoutMs,
                             std::unique_ptr<Fabric> fabric)
    : Watched(std::move(fabric)), group(group), link(link), desync(desync),
      members(std::move(members)), timeout(timeoutMs) {
  desync.join(group, this->members);
}

zero_rt_status WatchedFabric::begin(const Tag &tag) {
  NamedTag named = nameTag(makeTag(tag, group, /*sequence=*/0), tag);
  ZERO_RT_TRY(desync.call(named));
  calls.push_back(named);
  return fabric->beginCall();
}

zero_rt_status WatchedFabric::look() {
  bool isReady = false;
  zero_rt_status status = fabric->poll(isReady);
  uint64_t done = 0;
  bool isRunning = false;
  if (!status)
    status = fabric->getProgress(done, isRunning);
  for (; !calls.empty() && calls.front().tag.sequence <= done;
       calls.pop_front()) {
    runningSince.reset();
    announcedAt.reset();
  }
  // A fabric without work may be of a step that other ranks have destroyed.
  if (calls.empty())
    return ZERO_RT_OK;
  std::string what = describe(tagOf(calls.front()));
  if (status)
    return breakWith(status, what + " on rank " + std::to_string(link.rank()) +
                                 ": " + lastMessage());

  const NamedTag &named = calls.front();
  uint64_t number = named.tag.sequence;
  for (int32_t member : members)
    if (const char *why =
            desync.findLoss(group, named.tag.step, member, number))
      return breakWith(ZERO_RT_TIMEOUT,
                       "rank " + std::to_string(member) + why +
                           " and will not come to " + what + ", where rank " +
                           std::to_string(link.rank()) + " waits");
  if (!isRunning)
    return ZERO_RT_OK;
  Deadline now = std::chrono::steady_clock::now();
  if (!runningSince)
    runningSince = now;
  if (now - *runningSince < timeout / 2)
    return ZERO_RT_OK;
  if (!announcedAt) {
    ZERO_RT_TRY(desync.announce(group, number));
    announcedAt = now;
  }
  // Answers take time, and this rank may not have looked for a while.
  constexpr auto grace = std::chrono::milliseconds(100);
  if (now - *runningSince < timeout || now - *announcedAt < grace)
    return ZERO_RT_OK;
  std::vector<int32_t> missing = desync.findMissing(group, number);
  if (missing.empty())
    return breakWith(ZERO_RT_TIMEOUT,
                     what + " did not finish within " +
                         std::to_string(timeout.count()) +
                         " ms, though all its ranks queued it: a GPU has not "
                         "come to it, or they do not reach each other");
  return breakWith(ZERO_RT_TIMEOUT,
                   describeMissing(tagOf(named), timeout.count(), missing));
}

//===----------------------------------------------------------------------===//
// All fabrics
//===----------------------------------------------------------------------===//

void Watchdog::add(Watched &fabric) {
  fabrics.push_back(&fabric);
  if (!thread.joinable() && link.transport.any_thread)
    thread = std::thread([this] { run(); });
}

void Watchdog::stop() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    isOver = true;
  }
  changed.notify_all();
  if (thread.joinable())
    thread.join();
}

/// Looks every 100 ms. A thread that is on the device looks itself while it
/// waits.
void Watchdog::run() {
  constexpr auto interval = std::chrono::milliseconds(100);
  std::unique_lock<std::mutex> lock(mutex);
  while (!changed.wait_for(lock, interval, [this] { return isOver; })) {
    if (!device.tryEnter())
      continue;
    bool isKnown = link.isBroken();
    // If there is no memory now, there may be some next time. This thread has
    // no caller to report an error to. The next call reports it.
    if (guarded("watchdog", [&] { return look(); }) && !isKnown)
      link.setUntold();
    bool isBroken = link.isBroken();
    device.leave();
    if (isBroken)
      return;
  }
}

void Watchdog::remove(Watched &fabric) {
  fabrics.erase(std::find(fabrics.begin(), fabrics.end(), &fabric));
}

void Watchdog::abort() {
  for (Watched *fabric : fabrics)
    fabric->fabric->abort();
  for (Watched *fabric : fabrics)
    fabric->fabric->awaitEnd();
}

zero_rt_status Watchdog::look() {
  zero_rt_status status = link.check(/*waits=*/true);
  if (!status)
    status = desync.look();
  for (size_t i = 0; i < fabrics.size() && !status; ++i)
    status = fabrics[i]->look();
  return status ? giveUp(status) : status;
}

/// Gives up all fabrics; returns |status| with its message.
zero_rt_status Watchdog::giveUp(zero_rt_status status) {
  std::string message = lastMessage();
  abort();
  return fail(status, "%s", message.c_str());
}

zero_rt_status Watchdog::check() {
  zero_rt_status status = link.check();
  return status ? giveUp(status) : status;
}

zero_rt_status Watchdog::awaitReady(Fabric &fabric,
                                    std::chrono::milliseconds most) {
  Deadline begin = std::chrono::steady_clock::now();
  for (Pause pause;; pause()) {
    bool isReady = false;
    ZERO_RT_TRY(fabric.poll(isReady));
    if (isReady)
      return ZERO_RT_OK;
    ZERO_RT_TRY(look());
    if (std::chrono::steady_clock::now() - begin >= most)
      return fail(ZERO_RT_TIMEOUT, "it did not finish within %lld ms",
                  (long long)most.count());
  }
}

zero_rt_status Watchdog::breakWith(zero_rt_status code,
                                   const std::string &message) {
  // The abort may wait for other ranks, so they are told first.
  return giveUp(link.breakWith(code, message));
}

void Watchdog::leaveStep(uint64_t step) {
  for (Watched *fabric : fabrics)
    fabric->leaveStep(step);
}
