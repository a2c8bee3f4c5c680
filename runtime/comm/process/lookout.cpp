//===- lookout.cpp - Looks after collectives that are queued --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "comm/process/lookout.h"

#include "core/status.h"

#include <algorithm>

using namespace zero_rt;

WatchedFabric::WatchedFabric(Link &link, Witness &witness, uint64_t group,
                             std::vector<int32_t> members, int64_t timeoutMs,
                             std::unique_ptr<Fabric> fabric)
    : group(group), fabric(std::move(fabric)), link(link), witness(witness),
      members(std::move(members)), timeout(timeoutMs) {
  witness.join(group, this->members);
}

zero_rt_status WatchedFabric::begin(const Tag &tag) {
  NamedTag named = nameTag(makeTag(tag, group, /*sequence=*/0), tag);
  ZERO_RT_TRY(witness.call(named));
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
            witness.findLoss(group, named.tag.step, member, number))
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
    ZERO_RT_TRY(witness.announce(group, number));
    announcedAt = now;
  }
  // Answers take time, and this rank may not have looked for a while.
  constexpr auto grace = std::chrono::milliseconds(100);
  if (now - *runningSince < timeout || now - *announcedAt < grace)
    return ZERO_RT_OK;
  std::vector<int32_t> missing = witness.findMissing(group, number);
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

void Lookout::add(WatchedFabric &fabric) {
  fabrics.push_back(&fabric);
  if (watchdog || !link.transport.any_thread)
    return;
  watchdog = std::make_unique<Watchdog>(device, [this] {
    bool isKnown = link.isBroken();
    // The watchdog has no caller to report the error to. The next call reports
    // it.
    if (look() && !isKnown)
      link.setUntold();
    return link.isBroken();
  });
}

void Lookout::remove(WatchedFabric &fabric) {
  fabrics.erase(std::find(fabrics.begin(), fabrics.end(), &fabric));
}

void Lookout::abort() {
  for (WatchedFabric *fabric : fabrics)
    fabric->fabric->abort();
  for (WatchedFabric *fabric : fabrics)
    fabric->fabric->awaitEnd();
}

zero_rt_status Lookout::look() {
  zero_rt_status status = link.check(/*waits=*/true);
  if (!status)
    status = witness.look();
  for (size_t i = 0; i < fabrics.size() && !status; ++i)
    status = fabrics[i]->look();
  return status ? giveUp(status) : status;
}

/// Gives up all fabrics; returns |status| with its message.
zero_rt_status Lookout::giveUp(zero_rt_status status) {
  std::string message = lastMessage();
  abort();
  return fail(status, "%s", message.c_str());
}

zero_rt_status Lookout::check() {
  zero_rt_status status = link.check();
  return status ? giveUp(status) : status;
}

zero_rt_status Lookout::breakWith(zero_rt_status code,
                                  const std::string &message) {
  // The abort may wait for other ranks, so they are told first.
  return giveUp(link.breakWith(code, message));
}

void Lookout::leaveStep(uint64_t step) {
  for (WatchedFabric *fabric : fabrics)
    witness.leaveStep(fabric->group, step);
}
