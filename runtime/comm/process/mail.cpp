//===- mail.cpp - Letters between processes -------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "comm/process/mail.h"

#include "core/pause.h"
#include "core/status.h"

#include <algorithm>
#include <cstring>

using namespace zero_rt;

/// The messages of one rank that the caller has not asked for take at most so
/// many bytes.
static constexpr int64_t mostUnreadBytes = int64_t(1) << 34;

Letter PostOffice::Envelope::letter() const {
  Letter letter;
  letter.step = step;
  letter.window = window;
  letter.activation = activation;
  letter.isGradient = isGradient != 0;
  letter.isHeader = isHeader != 0;
  letter.microBatch = microBatch;
  return letter;
}

bool PostOffice::Envelope::isValid() const {
  auto isFlag = [](int32_t flag) { return flag == 0 || flag == 1; };
  return bytes >= 0 && isFlag(isGradient) && isFlag(isHeader) &&
         isFlag(hasLeft) && (bytes == 0 || !hasLeft);
}

static Deadline after(int64_t milliseconds) {
  return std::chrono::steady_clock::now() +
         std::chrono::milliseconds(milliseconds);
}

PostOffice::PostOffice(Link &link) : link(link) {
  for (int32_t rank = 0; rank < link.ranks(); ++rank)
    if (rank != link.rank())
      incoming.emplace(rank, link);
}

//===----------------------------------------------------------------------===//
// What comes and goes
//===----------------------------------------------------------------------===//

/// Copies the message: the send may be in progress when the step that sent it
/// is destroyed.
zero_rt_status PostOffice::post(int32_t to, const Envelope &envelope,
                                const void *data) {
  ZERO_RT_TRY(link.check());
  Outgoing &letter = outgoing.emplace_back(link);
  letter.envelope = envelope;
  letter.to = to;
  if (envelope.bytes) {
    auto *from = static_cast<const char *>(data);
    letter.contents.assign(from, from + envelope.bytes);
  }
  ZERO_RT_TRY(letter.transfers.send(to, MailChannel, &letter.envelope,
                                    sizeof(Envelope)));
  return letter.transfers.send(to, MailChannel, letter.contents.data(),
                               envelope.bytes);
}

zero_rt_status PostOffice::checkEnvelope(int32_t from,
                                         const Envelope &envelope) {
  std::string sender = "rank " + std::to_string(from);
  if (!envelope.isValid())
    return link.breakWith(ZERO_RT_MISMATCH,
                          sender + " sent bytes that are no activation");
  if (envelope.bytes > mostUnreadBytes - unreadBytes[from])
    return link.breakWith(
        ZERO_RT_MISMATCH,
        sender + " sent more than " + std::to_string(mostUnreadBytes >> 30) +
            " GiB of activations that rank " + std::to_string(link.rank()) +
            " has not received");
  return ZERO_RT_OK;
}

auto PostOffice::erase(decltype(unread)::iterator message)
    -> decltype(unread)::iterator {
  unreadBytes[message->first.second] -= int64_t(message->second.size());
  return unread.erase(message);
}

/// Advances the receive from rank |from|. Sets |isMore| if another message may
/// follow.
zero_rt_status PostOffice::pollFrom(int32_t from, bool &isMore) {
  isMore = false;
  Incoming &next = incoming.at(from);
  if (next.isOver)
    return ZERO_RT_OK;
  Envelope &envelope = next.envelope;
  if (!next.isAwaited) {
    ZERO_RT_TRY(
        next.transfers.receive(from, MailChannel, &envelope, sizeof(Envelope)));
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
    ZERO_RT_TRY(checkEnvelope(from, envelope));
    // The allocation comes first: if it fails, nothing changes.
    next.contents.resize(size_t(envelope.bytes));
    next.isOpened = true;
    return next.transfers.receive(from, MailChannel, next.contents.data(),
                                  envelope.bytes);
  }
  Letter letter = envelope.letter();
  auto first = wanted.find(letter.step);
  if (envelope.hasLeft)
    link.noteEnd(from, letter.step);
  else if (!link.isOver(letter.step) &&
           (first == wanted.end() || letter.window >= first->second) &&
           unread.try_emplace({letter, from}, std::move(next.contents)).second)
    unreadBytes[from] += envelope.bytes;
  next.contents = {};
  next.isOpened = next.isAwaited = false;
  return ZERO_RT_OK;
}

zero_rt_status PostOffice::poll() {
  for (auto letter = outgoing.begin(); letter != outgoing.end();) {
    // A rank that is gone does not receive its messages. They are dropped.
    zero_rt_status status = letter->transfers.poll();
    if (status && status != ZERO_RT_TIMEOUT)
      return status;
    bool isDone = status || letter->transfers.isDone();
    letter = isDone ? outgoing.erase(letter) : std::next(letter);
  }
  for (auto &[rank, next] : incoming)
    for (bool isMore = true; isMore;)
      ZERO_RT_TRY(pollFrom(rank, isMore));
  return ZERO_RT_OK;
}

//===----------------------------------------------------------------------===//
// Letters
//===----------------------------------------------------------------------===//

zero_rt_status PostOffice::send(int32_t to, const Letter &letter,
                                const void *data, int64_t bytes) {
  link.noteStep(letter.step);
  ZERO_RT_TRY(poll());
  Envelope envelope;
  envelope.bytes = bytes;
  envelope.step = letter.step;
  envelope.window = letter.window;
  envelope.microBatch = letter.microBatch;
  envelope.activation = letter.activation;
  envelope.isGradient = letter.isGradient;
  envelope.isHeader = letter.isHeader;
  return post(to, envelope, data);
}

zero_rt_status PostOffice::receive(int32_t from, const Letter &letter,
                                   void *data, int64_t bytes, const char *what,
                                   int64_t timeoutMs) {
  link.noteStep(letter.step);
  Deadline end = after(timeoutMs);
  auto it = unread.end();
  for (Pause pause;; pause()) {
    ZERO_RT_TRY(link.check(/*waits=*/true));
    ZERO_RT_TRY(poll());
    it = unread.find({letter, from});
    if (it != unread.end())
      break;
    bool hasLeft = link.hasEnded(from, letter.step);
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

bool PostOffice::findUnread(uint64_t step, int64_t window, Letter &letter,
                            int32_t &from) {
  // This only finds which message is missing. The ranks have found out that
  // there is one.
  Deadline end = after(200);
  for (Pause pause; !link.isBroken() && !poll(); pause()) {
    for (const auto &[key, contents] : unread)
      if (key.first.step == step && key.first.window == window) {
        std::tie(letter, from) = key;
        return true;
      }
    if (std::chrono::steady_clock::now() >= end)
      break;
  }
  return false;
}

void PostOffice::dropUnread(uint64_t step, int64_t window) {
  wanted[step] = window + 1;
  for (auto it = unread.begin(); it != unread.end();) {
    const Letter &letter = it->first.first;
    bool isOld = letter.step == step && letter.window <= window;
    it = isOld ? erase(it) : std::next(it);
  }
}

void PostOffice::leaveStep(uint64_t step, int64_t timeoutMs) {
  Envelope farewell;
  farewell.step = step;
  farewell.hasLeft = 1;
  for (const auto &[rank, next] : incoming)
    if (!link.isBroken())
      (void)post(rank, farewell, nullptr);
  // The process may end now, so the messages must be sent.
  Deadline end = after(timeoutMs);
  auto isWaitedFor = [&](const Outgoing &letter) {
    return !letter.envelope.hasLeft && letter.envelope.step == step &&
           !link.hasEnded(letter.to, step);
  };
  for (Pause pause; !link.isBroken() && !poll(); pause())
    if (std::none_of(outgoing.begin(), outgoing.end(), isWaitedFor) ||
        std::chrono::steady_clock::now() >= end)
      break;
  dropUnread(step, INT64_MAX - 1);
  wanted.erase(step);
  link.endStep(step);
}

//===----------------------------------------------------------------------===//
// A runtime's end
//===----------------------------------------------------------------------===//

zero_rt_status ProcessMail::send(int32_t to, const Letter &letter,
                                 Parcel &parcel) {
  ZERO_RT_TRY(guarded("send", [&] {
    return office->send(to, letter, parcel.data, parcel.bytes);
  }));
  parcel.isTaken = true;
  return ZERO_RT_OK;
}

zero_rt_status ProcessMail::receive(int32_t from, const Letter &letter,
                                    void *data, int64_t bytes,
                                    const char *what) {
  return guarded("receive", [&] {
    return office->receive(from, letter, data, bytes, what, timeoutMs);
  });
}
