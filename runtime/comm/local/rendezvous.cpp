//===- rendezvous.cpp - Where the threads of a group meet -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "comm/local/rendezvous.h"

#include "core/numeric.h"
#include "core/status.h"

#include <algorithm>
#include <chrono>
#include <cstring>

using namespace zero_rt;

Rendezvous::Rendezvous(std::vector<int32_t> names, const char *owner)
    : names(std::move(names)), owner(owner), posts(this->names.size()) {}

std::vector<int32_t> Rendezvous::missingRanks() const {
  std::vector<int32_t> missing;
  for (size_t r = 0; r < posts.size(); ++r)
    if (!posts[r].waiting)
      missing.push_back(names[r]);
  return missing;
}

//===----------------------------------------------------------------------===//
// Members
//===----------------------------------------------------------------------===//

zero_rt_status Rendezvous::join(int32_t rank) {
  std::lock_guard<std::mutex> lock(mutex);
  Post &mine = posts[size_t(rank)];
  if (mine.member == Member::Present)
    return fail(ZERO_RT_INVALID_ARGUMENT, "rank %d is already taken",
                names[size_t(rank)]);
  mine.member = Member::Present;
  ++mine.joins;
  mine.seen = syncNumber;
  return ZERO_RT_OK;
}

void Rendezvous::leave(int32_t rank) {
  std::unique_lock<std::mutex> lock(mutex);
  // These ranks have come to the same sync as this rank, so the wait is short.
  ++leaving;
  changed.wait(lock, [&] {
    return std::all_of(posts.begin(), posts.end(), [&](const Post &post) {
      return &post == &posts[size_t(rank)] || post.member != Member::Present ||
             post.seen == syncNumber;
    });
  });
  --leaving;
  posts[size_t(rank)].member = Member::Left;
  for (size_t r = 0; r < posts.size(); ++r)
    if (posts[r].waiting)
      breakIfAnyoneLeft(int32_t(r));
}

int32_t Rendezvous::members() {
  std::lock_guard<std::mutex> lock(mutex);
  int32_t count = 0;
  for (const Post &post : posts)
    count += post.member == Member::Present;
  return count;
}

bool Rendezvous::isDeserted() {
  std::lock_guard<std::mutex> lock(mutex);
  return std::all_of(posts.begin(), posts.end(), [](const Post &post) {
    return post.member == Member::Left;
  });
}

void Rendezvous::leaveStep(int32_t rank, uint64_t step) {
  std::lock_guard<std::mutex> lock(mutex);
  ended.emplace_back(step, rank);
  auto isStep = [&](const auto &entry) { return entry.first == step; };
  if (std::count_if(ended.begin(), ended.end(), isStep) == size())
    ended.erase(std::remove_if(ended.begin(), ended.end(), isStep),
                ended.end());
  for (size_t r = 0; r < posts.size(); ++r)
    if (posts[r].waiting && posts[r].tag.step == step)
      breakIfAnyoneLeft(int32_t(r));
}

bool Rendezvous::hasEnded(int32_t rank, uint64_t step) const {
  return std::find(ended.begin(), ended.end(), std::make_pair(step, rank)) !=
         ended.end();
}

bool Rendezvous::hasLeft(int32_t rank, uint64_t step) {
  std::lock_guard<std::mutex> lock(mutex);
  return hasEnded(rank, step);
}

//===----------------------------------------------------------------------===//
// Meeting
//===----------------------------------------------------------------------===//

void Rendezvous::breakWith(zero_rt_status code, std::string message) {
  // The first cause explains the later ones.
  if (brokenCode == ZERO_RT_OK) {
    brokenCode = code;
    brokenBy = std::move(message);
  }
  changed.notify_all();
}

/// A disagreement fails every rank, also a rank that comes later. A timeout
/// fails only the ranks that waited.
zero_rt_status Rendezvous::reportBroken(int32_t rank, bool waited) {
  Post &mine = posts[size_t(rank)];
  bool first = !mine.told;
  mine.told = true;
  if (first && (waited || brokenCode == ZERO_RT_MISMATCH))
    return fail(brokenCode, "%s", brokenBy.c_str());
  return fail(ZERO_RT_POISONED, "the group is broken since: %s",
              brokenBy.c_str());
}

/// Breaks the group if |rank| waits, or is about to wait, for ranks that have
/// left.
void Rendezvous::breakIfAnyoneLeft(int32_t rank) {
  const Tag &tag = posts[size_t(rank)].tag;
  for (size_t r = 0; r < posts.size(); ++r) {
    if (posts[r].waiting)
      continue;
    // The first thing that the rank destroyed is the cause, whether this rank
    // comes before or after it destroyed the rest.
    bool ended = hasEnded(int32_t(r), tag.step);
    bool hasLeft = posts[r].member == Member::Left &&
                   posts[r].joins >= posts[size_t(rank)].joins;
    if (ended || hasLeft)
      breakWith(ZERO_RT_TIMEOUT,
                describeLeft(tag, names[r], ended ? "step" : owner,
                             names[size_t(rank)]));
  }
}

void Rendezvous::breakIfTagsDiffer(int32_t rank) {
  const Post &mine = posts[size_t(rank)];
  for (size_t r = 0; r < posts.size(); ++r) {
    const Post &other = posts[r];
    if (!other.waiting || int32_t(r) == rank)
      continue;
    std::string text =
        findDifference({names[size_t(rank)], mine.tag, mine.sequence},
                       {names[r], other.tag, other.sequence});
    if (text.empty())
      continue;
    breakWith(ZERO_RT_MISMATCH, std::move(text));
    return;
  }
}

zero_rt_status Rendezvous::enter(int32_t rank, const Tag &tag, const void *data,
                                 Signal signal, int64_t timeoutMs) {
  std::unique_lock<std::mutex> lock(mutex);
  if (brokenCode != ZERO_RT_OK)
    return reportBroken(rank, /*waited=*/false);

  Post &mine = posts[size_t(rank)];
  mine.tag = tag;
  mine.data = data;
  mine.entrySignal = signal;
  // The process group counts collectives, since a rank may join while another
  // one already waits in the first collective.
  mine.sequence = generation + 1;
  mine.waiting = true;
  ++entered;
  breakIfTagsDiffer(rank);
  breakIfAnyoneLeft(rank);
  if (brokenCode != ZERO_RT_OK)
    return reportBroken(rank, /*waited=*/true);

  if (entered == size()) {
    entered = 0;
    int64_t joins = 0;
    for (const Post &post : posts)
      joins = std::max(joins, post.joins);
    for (Post &post : posts) {
      post.waiting = false;
      post.joins = joins;
    }
    ++generation;
    changed.notify_all();
    return ZERO_RT_OK;
  }

  // A generation that is complete is valid, even if the group broke afterwards.
  uint64_t now = generation;
  auto deadline =
      std::chrono::steady_clock::now() + std::chrono::milliseconds(timeoutMs);
  bool woken = changed.wait_until(lock, deadline, [&] {
    return generation != now || brokenCode != ZERO_RT_OK;
  });
  if (generation != now)
    return ZERO_RT_OK;
  if (!woken)
    breakWith(ZERO_RT_TIMEOUT, describeMissing(tag, timeoutMs, missingRanks()));
  return reportBroken(rank, /*waited=*/true);
}

zero_rt_status Rendezvous::sync(int32_t rank, Signal signal,
                                zero_rt_status status) {
  std::unique_lock<std::mutex> lock(mutex);
  uint64_t now = syncNumber;
  posts[size_t(rank)].signals[now % 2] = signal;
  if (status) {
    failedSync = now;
    breakWith(status, "rank " + std::to_string(names[size_t(rank)]) +
                          " failed: " + lastMessage());
  }
  if (++synced == size()) {
    synced = 0;
    ++syncNumber;
    changed.notify_all();
  } else {
    changed.wait(lock, [&] { return syncNumber != now; });
  }
  return failedSync == now ? reportBroken(rank, /*waited=*/true) : ZERO_RT_OK;
}

void Rendezvous::declareSeen(int32_t rank) {
  std::lock_guard<std::mutex> lock(mutex);
  posts[size_t(rank)].seen = syncNumber;
  if (leaving)
    changed.notify_all();
}
