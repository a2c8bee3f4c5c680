//===- control_messages.cpp - Messages outside any order ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "comm/process/control_messages.h"

#include "core/pause.h"
#include "core/status.h"

#include <cstdio>
#include <cstring>

using namespace zero_rt;

ControlMessages::ControlMessages(Link &link) : link(link) {
  for (int32_t rank = 0; rank < link.ranks(); ++rank)
    if (rank != link.rank())
      incoming.emplace(rank, link);
}

/// Whether another rank can have made |message|.
static bool isPossible(const ControlMessage &message) {
  if (message.kind < 0 || message.kind >= ControlMessage::NumKinds ||
      message.bytes < 0 || message.bytes > int32_t(sizeof(message.data)))
    return false;
  if (message.kind != ControlMessage::Called &&
      message.kind != ControlMessage::Named)
    return true;
  NamedTag named;
  std::memcpy(&named, message.data, sizeof(named));
  return message.bytes == int32_t(sizeof(named)) && isValid(named);
}

zero_rt_status ControlMessages::send(int32_t to,
                                     const ControlMessage &message) {
  Outgoing &next = outgoing.emplace_back(link);
  next.message = message;
  zero_rt_status status = next.transfers.send(to, ControlChannel, &next.message,
                                              sizeof(ControlMessage));
  // A rank that is gone reads no messages.
  return status == ZERO_RT_TIMEOUT ? zero_rt_status(ZERO_RT_OK) : status;
}

void ControlMessages::sendToAll(const ControlMessage &message) {
  for (const auto &[rank, next] : incoming)
    if (!link.isBroken())
      (void)send(rank, message);
}

zero_rt_status ControlMessages::tell(int32_t to, ControlMessage::Kind kind) {
  ControlMessage message;
  message.kind = kind;
  return send(to, message);
}

zero_rt_status ControlMessages::ask(const std::vector<int32_t> &ranks) {
  for (int32_t rank : ranks) {
    incoming.at(rank).hasAnswered = false;
    ZERO_RT_TRY(tell(rank, ControlMessage::Ask));
  }
  return ZERO_RT_OK;
}

bool ControlMessages::hasAnswered(int32_t rank) const {
  return incoming.at(rank).hasAnswered;
}

/// More than other ranks send at once. A rank that sends without an end must
/// not keep this one from its clock.
static constexpr int mostAtOnce = 1024;

zero_rt_status ControlMessages::pollFrom(int32_t from, Incoming &next) {
  for (int n = 0; n < mostAtOnce && !next.isGone; ++n) {
    zero_rt_status status = ZERO_RT_OK;
    if (!next.isAwaited)
      status = next.transfers.receive(from, ControlChannel, &next.message,
                                      sizeof(ControlMessage));
    next.isAwaited = true;
    if (!status)
      status = next.transfers.poll();
    next.isGone = status == ZERO_RT_TIMEOUT;
    if (next.isGone)
      break;
    ZERO_RT_TRY(status);
    if (!next.transfers.isDone())
      break;
    next.isAwaited = false;
    if (!isPossible(next.message))
      return link.breakWith(ZERO_RT_MISMATCH,
                            "rank " + std::to_string(from) +
                                " sent bytes that are no control message");
    next.hasAnswered |= next.message.kind == ControlMessage::Answer;
    if (next.message.kind == ControlMessage::LeftRuntime)
      next.left = next.message.turn;
    if (next.message.kind == ControlMessage::Named) {
      next.hasNamed = true;
      std::memcpy(&next.named, next.message.data, sizeof(NamedTag));
    }
    if (next.message.kind == ControlMessage::Ask)
      ZERO_RT_TRY(tell(from, ControlMessage::Answer));
    if (const Reader &reader = readers[size_t(next.message.kind)])
      ZERO_RT_TRY(reader(from, next.message));
  }
  return ZERO_RT_OK;
}

zero_rt_status ControlMessages::poll() {
  ZERO_RT_TRY(pollOutgoing(outgoing));
  for (auto &[rank, next] : incoming)
    ZERO_RT_TRY(pollFrom(rank, next));
  return ZERO_RT_OK;
}

void ControlMessages::leaveRuntime() {
  ControlMessage message;
  message.kind = ControlMessage::LeftRuntime;
  message.turn = uint64_t(link.incarnation);
  sendToAll(message);
  Deadline end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  for (Pause pause; !outgoing.empty() && !link.isBroken() && !poll() &&
                    std::chrono::steady_clock::now() < end;
       pause())
    ;
}

bool ControlMessages::hasLeft(int32_t rank) const {
  // What a rank left may be an earlier runtime than the present one.
  uint64_t left = incoming.at(rank).left;
  auto [theirs, mine] = link.met[size_t(rank)];
  bool haveMet = mine == link.incarnation;
  // Of ranks that have not met, the one that has made more runtimes is ahead.
  return left && left >= uint64_t(theirs) &&
         (haveMet || left >= uint64_t(link.incarnation));
}

zero_rt_status ControlMessages::tradeNames(int32_t rank, const NamedTag &mine,
                                           NamedTag &theirs) {
  ControlMessage message;
  message.kind = ControlMessage::Named;
  message.bytes = int32_t(sizeof(mine));
  static_assert(sizeof(mine) <= sizeof(message.data));
  std::memcpy(message.data, &mine, sizeof(mine));
  ZERO_RT_TRY(send(rank, message));
  const Incoming &next = incoming.at(rank);
  Deadline end = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  for (Pause pause;
       !next.hasNamed && !next.isGone && std::chrono::steady_clock::now() < end;
       pause()) {
    ZERO_RT_TRY(link.check(/*waits=*/true));
    ZERO_RT_TRY(poll());
  }
  theirs = {};
  std::snprintf(theirs.operation, sizeof(theirs.operation),
                "another collective");
  if (next.hasNamed)
    theirs = next.named;
  return ZERO_RT_OK;
}

bool ControlMessages::isGone(int32_t rank) const {
  auto found = incoming.find(rank);
  return found != incoming.end() && found->second.isGone;
}
