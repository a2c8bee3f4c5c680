//===- mail.cpp - Letters between processes -------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "comm/process/mail.h"

#include "core/status.h"

#include <algorithm>
#include <cstring>

using namespace zero_rt;

ProcessMail::ProcessMail(std::shared_ptr<Link> link, int64_t timeoutMs)
    : link(std::move(link)), timeoutMs(timeoutMs) {
  for (int32_t rank = 0; rank < this->link->ranks(); ++rank) {
    if (rank == this->link->rank())
      continue;
    senders.push_back(rank);
    incoming.emplace_back(*this->link);
  }
}

//===----------------------------------------------------------------------===//
// What comes and goes
//===----------------------------------------------------------------------===//

zero_rt_status ProcessMail::post(int32_t to, const Envelope &envelope,
                                 Parcel *parcel) {
  ZERO_RT_TRY(link->check());
  Outgoing &letter = outgoing.emplace_back(*link);
  letter.envelope = envelope;
  letter.to = to;
  letter.parcel = parcel;
  ZERO_RT_TRY(letter.transfers.send(to, MailChannel, &letter.envelope,
                                    sizeof(Envelope)));
  if (!parcel)
    return ZERO_RT_OK;
  return letter.transfers.send(to, MailChannel, parcel->data, parcel->bytes);
}

/// Takes the next step in what comes from |senders[from]|; |isMore| if there
/// may be another.
zero_rt_status ProcessMail::pollFrom(int32_t from, bool &isMore) {
  isMore = false;
  Incoming &next = *std::next(incoming.begin(), from);
  if (next.isOver)
    return ZERO_RT_OK;
  int32_t rank = senders[size_t(from)];
  Envelope &envelope = next.envelope;
  if (next.transfers.isDone() && !next.isOpened && !next.isAwaited) {
    next.isAwaited = true;
    ZERO_RT_TRY(
        next.transfers.receive(rank, MailChannel, &envelope, sizeof(Envelope)));
  }
  zero_rt_status status = next.transfers.poll();
  next.isOver = status == ZERO_RT_TIMEOUT;
  if (status)
    return next.isOver ? ZERO_RT_OK : status;
  if (!next.transfers.isDone())
    return ZERO_RT_OK;
  isMore = true;
  if (!next.isOpened && !envelope.hasLeft) {
    next.isOpened = true;
    next.contents.resize(size_t(envelope.bytes));
    return next.transfers.receive(rank, MailChannel, next.contents.data(),
                                  envelope.bytes);
  }
  const Letter &letter = envelope.letter;
  auto first = wanted.find(letter.step);
  if (envelope.hasLeft)
    link->ended.insert({rank, letter.step});
  else if (first == wanted.end() || letter.window >= first->second)
    unread[{letter, rank}] = std::move(next.contents);
  next.contents = {};
  next.isOpened = next.isAwaited = false;
  return ZERO_RT_OK;
}

bool ProcessMail::isOver(int32_t rank) const {
  for (size_t from = 0; from < senders.size(); ++from)
    if (senders[from] == rank)
      return std::next(incoming.begin(), std::ptrdiff_t(from))->isOver;
  return false;
}

zero_rt_status ProcessMail::poll() {
  for (auto letter = outgoing.begin(); letter != outgoing.end();) {
    // What a rank that is gone does not take is taken by none.
    zero_rt_status status = letter->transfers.poll();
    if (status && status != ZERO_RT_TIMEOUT)
      return status;
    bool isDone = status || letter->transfers.isDone();
    if (isDone && letter->parcel)
      letter->parcel->isTaken = true;
    letter = isDone ? outgoing.erase(letter) : std::next(letter);
  }
  for (size_t from = 0; from < senders.size(); ++from)
    for (bool isMore = true; isMore;)
      ZERO_RT_TRY(pollFrom(int32_t(from), isMore));
  return ZERO_RT_OK;
}

//===----------------------------------------------------------------------===//
// Letters
//===----------------------------------------------------------------------===//

zero_rt_status ProcessMail::send(int32_t to, const Letter &letter,
                                 Parcel &parcel) {
  return guarded("send", [&] {
    ZERO_RT_TRY(poll());
    return post(to, {letter, parcel.bytes}, &parcel);
  });
}

zero_rt_status ProcessMail::receive(int32_t from, const Letter &letter,
                                    void *data, int64_t bytes,
                                    const char *what) {
  return guarded("receive", [&]() -> zero_rt_status {
    Deadline end =
        std::chrono::steady_clock::now() + std::chrono::milliseconds(timeoutMs);
    auto it = unread.end();
    for (Pause pause;; pause()) {
      ZERO_RT_TRY(link->check(/*waits=*/true));
      ZERO_RT_TRY(poll());
      it = unread.find({letter, from});
      if (it != unread.end())
        break;
      if (link->ended.count({from, letter.step}))
        return fail(ZERO_RT_TIMEOUT,
                    "%s will not come: rank %d destroyed its step", what, from);
      if (isOver(from))
        return fail(ZERO_RT_TIMEOUT, "%s will not come: rank %d is gone", what,
                    from);
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
    unread.erase(it);
    return ZERO_RT_OK;
  });
}

bool ProcessMail::findUnread(uint64_t step, int64_t window, Letter &letter,
                             int32_t &from) {
  // What is still under way is not found; the ranks know how many there are.
  if (link->isBroken() || poll())
    return false;
  for (const auto &[key, contents] : unread)
    if (key.first.step == step && key.first.window == window) {
      std::tie(letter, from) = key;
      return true;
    }
  return false;
}

void ProcessMail::dropUnread(uint64_t step, int64_t window) {
  wanted[step] = window + 1;
  for (auto it = unread.begin(); it != unread.end();) {
    const Letter &letter = it->first.first;
    bool isOld = letter.step == step && letter.window <= window;
    it = isOld ? unread.erase(it) : std::next(it);
  }
}

void ProcessMail::leaveStep(uint64_t step) {
  dropUnread(step, INT64_MAX - 1);
  Envelope farewell;
  farewell.letter.step = step;
  farewell.hasLeft = true;
  for (int32_t rank : senders)
    if (!link->isBroken())
      (void)guarded("leave", [&] { return post(rank, farewell, nullptr); });
  // A step that is gone sends nothing; its memory goes, too.
  Deadline end =
      std::chrono::steady_clock::now() + std::chrono::milliseconds(timeoutMs);
  auto isOf = [&](const Outgoing &letter) {
    return letter.parcel && letter.envelope.letter.step == step;
  };
  auto isWaitedFor = [&](const Outgoing &letter) {
    return isOf(letter) && !link->ended.count({letter.to, step});
  };
  for (Pause pause; !link->isBroken() && std::chrono::steady_clock::now() < end;
       pause()) {
    if (guarded("leave", [&] { return poll(); }) ||
        std::none_of(outgoing.begin(), outgoing.end(), isWaitedFor))
      break;
  }
  outgoing.remove_if(isOf);
}
