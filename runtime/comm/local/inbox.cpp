//===- inbox.cpp - What other threads sent to a rank ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "comm/local/inbox.h"

#include "core/status.h"

#include <algorithm>
#include <cstring>

using namespace zero_rt;

void Inbox::put(int32_t from, const MessageName &name, Message &message) {
  std::lock_guard<std::mutex> lock(mutex);
  entries[{name, from}] = {&message};
  changed.notify_all();
}

zero_rt_status Inbox::take(int32_t from, const MessageName &name, void *data,
                           int64_t bytes, int64_t timeoutMs,
                           const std::function<bool()> &isSenderGone,
                           const char *what) {
  std::unique_lock<std::mutex> lock(mutex);
  auto deadline =
      std::chrono::steady_clock::now() + std::chrono::milliseconds(timeoutMs);
  auto it = entries.end();
  bool isGone = false;
  bool woken = changed.wait_until(lock, deadline, [&] {
    it = entries.find({name, from});
    return it != entries.end() || (isGone = isSenderGone());
  });
  if (!woken)
    return fail(ZERO_RT_TIMEOUT, "%s did not come from rank %d within %lld ms",
                what, from, (long long)timeoutMs);
  if (isGone)
    return fail(ZERO_RT_TIMEOUT, "%s will not come: rank %d destroyed its step",
                what, from);
  Message &message = *it->second.message;
  if (message.bytes != bytes)
    return fail(ZERO_RT_MISMATCH, "%s has %lld bytes, and rank %d sent %lld",
                what, (long long)bytes, from, (long long)message.bytes);
  it->second.isBeingCopied = true;
  lock.unlock();
  if (bytes)
    std::memcpy(data, message.data, size_t(bytes));
  lock.lock();
  entries.erase(it);
  message.isTaken = true; // from here on the sender may reuse its memory
  changed.notify_all();
  return ZERO_RT_OK;
}

bool Inbox::findUnread(uint64_t step, int64_t window, MessageName &name,
                       int32_t &from) {
  std::lock_guard<std::mutex> lock(mutex);
  for (const auto &[key, entry] : entries)
    if (key.first.step == step && key.first.window == window) {
      std::tie(name, from) = key;
      return true;
    }
  return false;
}

void Inbox::dropUnread(uint64_t step, int64_t window) {
  std::lock_guard<std::mutex> lock(mutex);
  for (auto it = entries.begin(); it != entries.end();) {
    bool isOld =
        it->first.first.step == step && it->first.first.window <= window;
    if (isOld)
      it->second.message->isTaken = true;
    it = isOld ? entries.erase(it) : std::next(it);
  }
}

void Inbox::withdraw(int32_t from, uint64_t step,
                     std::chrono::steady_clock::time_point deadline,
                     const std::function<bool()> &isOwnerGone) {
  std::unique_lock<std::mutex> lock(mutex);
  auto isMeant = [&](const auto &entry) {
    return entry.first.second == from && entry.first.first.step == step;
  };
  changed.wait_until(lock, deadline, [&] {
    return std::none_of(entries.begin(), entries.end(), isMeant) ||
           isOwnerGone();
  });
  // A copy in progress ends soon.
  changed.wait(lock, [&] {
    return std::none_of(entries.begin(), entries.end(), [&](const auto &entry) {
      return isMeant(entry) && entry.second.isBeingCopied;
    });
  });
  for (auto it = entries.begin(); it != entries.end();)
    it = isMeant(*it) ? entries.erase(it) : std::next(it);
}

void Inbox::wake() {
  // Under the lock, so that a rank that has just checked its condition is
  // waiting by now.
  std::lock_guard<std::mutex> lock(mutex);
  changed.notify_all();
}
