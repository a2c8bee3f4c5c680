//===- message_queue.cpp - Messages between processes ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "comm/process/message_queue.h"

#include "core/pause.h"
#include "core/status.h"

#include <algorithm>
#include <cstring>

using namespace zero_rt;

/// The messages of one rank that the caller has not asked for take at most so
/// many bytes.
static constexpr int64_t mostUnreadBytes = int64_t(1) << 34;

/// The memory that a message of so many bytes takes until it is received.
static int64_t costOf(int64_t bytes) {
  constexpr int64_t kept = 160; // the entry of a map
  return bytes + kept;
}

bool MessageQueue::Header::isValid() const {
  auto isFlag = [](int64_t flag) { return flag == 0 || flag == 1; };
  return bytes >= 0 && isFlag(name.isGradient) && isFlag(name.isHeader) &&
         farewell >= Farewell::None && farewell <= Farewell::EndOfStep &&
         (bytes == 0 || farewell == Farewell::None);
}

static Deadline after(int64_t milliseconds) {
  return std::chrono::steady_clock::now() +
         std::chrono::milliseconds(milliseconds);
}

MessageQueue::MessageQueue(Link &link) : link(link) {
  for (int32_t rank = 0; rank < link.ranks(); ++rank)
    if (rank != link.rank())
      incoming.emplace(rank, link);
}

//===----------------------------------------------------------------------===//
// What comes and goes
//===----------------------------------------------------------------------===//

/// Copies the message: the send may be in progress when the step that sent it
/// is destroyed.
zero_rt_status MessageQueue::post(int32_t to, const Header &header,
                                  const void *data) {
  ZERO_RT_TRY(link.check());
  Outgoing &message = outgoing.emplace_back(link);
  message.header = header;
  message.to = to;
  if (header.bytes) {
    auto *from = static_cast<const char *>(data);
    message.contents.assign(from, from + header.bytes);
  }
  ZERO_RT_TRY(message.transfers.send(to, MessageChannel, &message.header,
                                     sizeof(Header)));
  return message.transfers.send(to, MessageChannel, message.contents.data(),
                                header.bytes);
}

zero_rt_status MessageQueue::checkHeader(int32_t from, const Header &header) {
  std::string sender = "rank " + std::to_string(from);
  if (!header.isValid())
    return link.breakWith(ZERO_RT_MISMATCH,
                          sender + " sent bytes that are no activation");
  if (header.bytes > mostUnreadBytes - unreadBytes[from] - costOf(0))
    return link.breakWith(
        ZERO_RT_MISMATCH,
        sender + " sent more than " + std::to_string(mostUnreadBytes >> 30) +
            " GiB of activations that rank " + std::to_string(link.rank()) +
            " has not received");
  return ZERO_RT_OK;
}

auto MessageQueue::erase(decltype(unread)::iterator message)
    -> decltype(unread)::iterator {
  unreadBytes[message->first.second] -= costOf(int64_t(message->second.size()));
  return unread.erase(message);
}

/// Advances the receive from rank |from|. Sets |isMore| if another message may
/// follow.
zero_rt_status MessageQueue::pollFrom(int32_t from, bool &isMore) {
  isMore = false;
  Incoming &next = incoming.at(from);
  if (next.isOver)
    return ZERO_RT_OK;
  Header &header = next.header;
  if (!next.isAwaited) {
    ZERO_RT_TRY(
        next.transfers.receive(from, MessageChannel, &header, sizeof(Header)));
    next.isAwaited = true;
  }
  zero_rt_status status = next.transfers.poll();
  next.isOver = status == ZERO_RT_TIMEOUT;
  if (status)
    return next.isOver ? ZERO_RT_OK : status;
  if (!next.transfers.isDone())
    return ZERO_RT_OK;
  isMore = true;
  if (!next.isOpened) {
    ZERO_RT_TRY(checkHeader(from, header));
    // The allocation comes first: if it fails, nothing changes.
    next.contents.resize(size_t(header.bytes));
    next.isOpened = true;
    return next.transfers.receive(from, MessageChannel, next.contents.data(),
                                  header.bytes);
  }
  MessageName name = header.name;
  auto first = wanted.find(name.step);
  if (header.farewell == Farewell::EndOfMessages)
    link.noteEnd(from, name.step);
  else if (header.farewell == Farewell::EndOfStep && !link.isOver(name.step))
    left.insert({name.step, from});
  else if (header.farewell == Farewell::None && !link.isOver(name.step) &&
           (first == wanted.end() || name.window >= first->second) &&
           unread.try_emplace({name, from}, std::move(next.contents)).second)
    unreadBytes[from] += costOf(header.bytes);
  next.contents = {};
  next.isOpened = next.isAwaited = false;
  return ZERO_RT_OK;
}

zero_rt_status MessageQueue::poll() {
  ZERO_RT_TRY(pollOutgoing(outgoing));
  for (auto &[rank, next] : incoming)
    for (bool isMore = true; isMore;)
      ZERO_RT_TRY(pollFrom(rank, isMore));
  return ZERO_RT_OK;
}

//===----------------------------------------------------------------------===//
// Messages by name
//===----------------------------------------------------------------------===//

zero_rt_status MessageQueue::send(int32_t to, const MessageName &name,
                                  const void *data, int64_t bytes) {
  link.noteStep(name.step);
  ZERO_RT_TRY(poll());
  Header header;
  header.bytes = bytes;
  header.name = name;
  return post(to, header, data);
}

zero_rt_status MessageQueue::receive(int32_t from, const MessageName &name,
                                     void *data, int64_t bytes,
                                     const char *what, int64_t timeoutMs) {
  link.noteStep(name.step);
  Deadline end = after(timeoutMs);
  auto it = unread.end();
  for (Pause pause;; pause()) {
    ZERO_RT_TRY(link.check(/*waits=*/true));
    ZERO_RT_TRY(poll());
    it = unread.find({name, from});
    if (it != unread.end())
      break;
    bool hasLeft = link.hasEnded(from, name.step);
    if (hasLeft || incoming.at(from).isOver) {
      // The rank may have told why.
      ZERO_RT_TRY(link.check());
      return fail(ZERO_RT_TIMEOUT, "%s will not come: rank %d %s", what, from,
                  hasLeft ? "destroyed its step" : "is gone");
    }
    if (std::chrono::steady_clock::now() >= end)
      return fail(ZERO_RT_TIMEOUT,
                  "%s did not come from rank %d within %lld ms", what, from,
                  (long long)timeoutMs);
  }
  if (int64_t(it->second.size()) != bytes)
    return fail(ZERO_RT_MISMATCH, "%s has %lld bytes, and rank %d sent %lld",
                what, (long long)bytes, from, (long long)it->second.size());
  if (bytes)
    std::memcpy(data, it->second.data(), size_t(bytes));
  erase(it);
  return ZERO_RT_OK;
}

bool MessageQueue::findUnread(uint64_t step, int64_t window, bool waits,
                              MessageName &name, int32_t &from) {
  Deadline end = after(waits ? 200 : 0);
  for (Pause pause; !link.isBroken() && !poll(); pause()) {
    for (const auto &[key, contents] : unread)
      if (key.first.step == step && key.first.window == window) {
        std::tie(name, from) = key;
        return true;
      }
    if (std::chrono::steady_clock::now() >= end)
      break;
  }
  return false;
}

void MessageQueue::dropUnread(uint64_t step, int64_t window) {
  wanted[step] = window + 1;
  for (auto it = unread.begin(); it != unread.end();) {
    const MessageName &name = it->first.first;
    bool isOld = name.step == step && name.window <= window;
    it = isOld ? erase(it) : std::next(it);
  }
}

void MessageQueue::sayToAll(uint64_t step, Farewell farewell) {
  Header header;
  header.name.step = step;
  header.farewell = farewell;
  for (const auto &[rank, next] : incoming)
    if (!link.isBroken())
      (void)post(rank, header, nullptr);
}

void MessageQueue::declareEnd(uint64_t step) {
  sayToAll(step, Farewell::EndOfMessages);
}

bool MessageQueue::hasEnded(int32_t other, uint64_t step) {
  (void)poll(); // an error shows in the next call
  return incoming.at(other).isOver || link.hasEnded(other, step);
}

bool MessageQueue::hasLeft(int32_t other, uint64_t step) {
  (void)poll(); // an error shows in the next call
  return incoming.at(other).isOver || left.count({step, other});
}

void MessageQueue::leaveStep(uint64_t step, int64_t timeoutMs) {
  sayToAll(step, Farewell::EndOfStep);
  // The process may end now, so the messages must be sent.
  Deadline end = after(timeoutMs);
  auto isWaitedFor = [&](const Outgoing &message) {
    return message.header.farewell == Farewell::None &&
           message.header.name.step == step && !link.hasEnded(message.to, step);
  };
  for (Pause pause; !link.isBroken() && !poll(); pause())
    if (std::none_of(outgoing.begin(), outgoing.end(), isWaitedFor) ||
        std::chrono::steady_clock::now() >= end)
      break;
  dropUnread(step, INT64_MAX - 1);
  wanted.erase(step);
  left.erase(left.lower_bound({step, 0}), left.upper_bound({step, INT32_MAX}));
  link.endStep(step);
}

//===----------------------------------------------------------------------===//
// A runtime's end
//===----------------------------------------------------------------------===//

zero_rt_status ProcessMessenger::send(int32_t to, const MessageName &name,
                                      Message &message) {
  ZERO_RT_TRY(guarded("send", [&] {
    return queue->send(to, name, message.data, message.bytes);
  }));
  message.isTaken = true;
  return ZERO_RT_OK;
}

zero_rt_status ProcessMessenger::receive(int32_t from, const MessageName &name,
                                         void *data, int64_t bytes,
                                         const char *what) {
  return guarded("receive", [&] {
    return queue->receive(from, name, data, bytes, what, timeoutMs);
  });
}
