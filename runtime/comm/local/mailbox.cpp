//===- mailbox.cpp - What other threads sent to a rank --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "comm/local/mailbox.h"

#include "core/status.h"

#include <algorithm>
#include <cstring>

using namespace zero_rt;

void Mailbox::put(int32_t from, const Letter &letter, Parcel &parcel) {
  std::lock_guard<std::mutex> lock(mutex);
  entries[{letter, from}] = {&parcel};
  changed.notify_all();
}

zero_rt_status Mailbox::take(int32_t from, const Letter &letter, void *data,
                             int64_t bytes, int64_t timeoutMs,
                             const std::function<bool()> &isSenderGone,
                             const char *what) {
  std::unique_lock<std::mutex> lock(mutex);
  auto deadline =
      std::chrono::steady_clock::now() + std::chrono::milliseconds(timeoutMs);
  auto it = entries.end();
  bool isGone = false;
  bool woken = changed.wait_until(lock, deadline, [&] {
    it = entries.find({letter, from});
    return it != entries.end() || (isGone = isSenderGone());
  });
  if (!woken)
    return fail(ZERO_RT_TIMEOUT, "%s did not come from rank %d within %lld ms",
                what, from, (long long)timeoutMs);
  if (isGone)
    return fail(ZERO_RT_TIMEOUT, "%s will not come: rank %d destroyed its step",
                what, from);
  Parcel &parcel = *it->second.parcel;
  if (parcel.bytes != bytes)
    return fail(ZERO_RT_MISMATCH, "%s has %lld bytes, and rank %d sent %lld",
                what, (long long)bytes, from, (long long)parcel.bytes);
  it->second.isBeingCopied = true;
  lock.unlock();
  if (bytes)
    std::memcpy(data, parcel.data, size_t(bytes));
  lock.lock();
  entries.erase(it);
  parcel.isTaken = true; // from here on the sender may reuse its memory
  changed.notify_all();
  return ZERO_RT_OK;
}

bool Mailbox::findUnread(uint64_t step, int64_t window, Letter &letter,
                         int32_t &from) {
  std::lock_guard<std::mutex> lock(mutex);
  for (const auto &[key, entry] : entries)
    if (key.first.step == step && key.first.window == window) {
      std::tie(letter, from) = key;
      return true;
    }
  return false;
}

void Mailbox::dropUnread(uint64_t step, int64_t window) {
  std::lock_guard<std::mutex> lock(mutex);
  for (auto it = entries.begin(); it != entries.end();) {
    bool isOld =
        it->first.first.step == step && it->first.first.window <= window;
    if (isOld)
      it->second.parcel->isTaken = true;
    it = isOld ? entries.erase(it) : std::next(it);
  }
}

void Mailbox::withdraw(int32_t from, uint64_t step,
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

void Mailbox::wake() {
  // Under the lock, so that a rank that has just checked its condition is
  // waiting by now.
  std::lock_guard<std::mutex> lock(mutex);
  changed.notify_all();
}
