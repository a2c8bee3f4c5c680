//===- communicator.cpp - Collectives of processes ------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "comm/process/communicator.h"

#include "core/numeric.h"
#include "core/pause.h"
#include "core/status.h"
#include "device/host/copy.h"

#include <algorithm>
#include <cstring>

using namespace zero_rt;

/// Whether payload of |bytes| travels in the message of the tag.
static bool fitsInTag(int64_t bytes) {
  return bytes <= int64_t(sizeof(TagMessage::payload));
}

ProcessCommunicator::ProcessCommunicator(std::shared_ptr<Link> link,
                                         std::shared_ptr<Reports> reports,
                                         std::shared_ptr<SharedMemory> shared,
                                         std::vector<int32_t> members,
                                         uint64_t step, int64_t timeoutMs)
    : link(std::move(link)), reports(std::move(reports)),
      shared(std::move(shared)), members(std::move(members)),
      timeoutMs(timeoutMs), peers(this->members.size()),
      pieces(this->members.size()), sources(this->members.size()) {
  auto place =
      std::find(this->members.begin(), this->members.end(), this->link->rank());
  index = size_t(place - this->members.begin());
  group = numberOf(this->members, step);
}

ProcessCommunicator::~ProcessCommunicator() {
  if (isWhole())
    (void)guarded("leave", [&] {
      reports->control.leaveRuntime();
      return zero_rt_status(ZERO_RT_OK);
    });
}

//===----------------------------------------------------------------------===//
// Meeting
//===----------------------------------------------------------------------===//

zero_rt_status ProcessCommunicator::breakAsLeft(const Tag &tag, int32_t rank,
                                                const char *owner) {
  return breakWith(ZERO_RT_TIMEOUT,
                   describeLeft(tag, rank, owner, link->rank()));
}

zero_rt_status ProcessCommunicator::compare(const Tag &tag, size_t member) {
  const CollectiveTag &theirs = peers[member].received.tag;
  if (!isValid(peers[member].received))
    return breakWith(ZERO_RT_MISMATCH,
                     "rank " + std::to_string(members[member]) +
                         " sent bytes that are no tag of a collective");
  link->met[size_t(members[member])] = {theirs.incarnation, link->incarnation};
  if (areEqual(mine, theirs))
    return findBuffers(tag, member);
  // The member may have given up this collective and told so. Then this error
  // explains the difference.
  ZERO_RT_TRY(link->check());
  return breakAsDifferent(tag, member);
}

/// An error if |member|, whose tag has not come, has destroyed its step or
/// runtime. Its tag may be on its way, so this rank waits for a moment.
zero_rt_status ProcessCommunicator::checkPresence(const Tag &tag,
                                                  size_t member) {
  constexpr auto grace = std::chrono::milliseconds(100);
  int32_t rank = members[member];
  bool hasEnded = link->hasEnded(rank, tag.step);
  if (!hasEnded && !reports->control.hasLeft(rank))
    return ZERO_RT_OK;
  Deadline now = std::chrono::steady_clock::now();
  std::optional<Deadline> &leftAt = peers[member].leftAt;
  if (!leftAt)
    leftAt = now;
  return now - *leftAt < grace
             ? zero_rt_status(ZERO_RT_OK)
             : breakAsLeft(tag, rank, hasEnded ? "step" : "runtime");
}

/// The member finds the difference, too, and tells the names of its tag.
zero_rt_status ProcessCommunicator::breakAsDifferent(const Tag &tag,
                                                     size_t member) {
  int32_t rank = members[member];
  NamedTag own = nameTag(mine, tag), theirs = own;
  if (mine.names != peers[member].received.tag.names)
    ZERO_RT_TRY(reports->control.tradeNames(rank, own, theirs));
  theirs.tag = peers[member].received.tag;
  return breakWith(ZERO_RT_MISMATCH,
                   findDifference(link->rank(), own, rank, theirs));
}

/// Finds the buffers of |member| in its segment.
zero_rt_status ProcessCommunicator::findBuffers(const Tag &tag, size_t member) {
  Peer &peer = peers[member];
  int32_t rank = members[member];
  if (!shared->reads(rank))
    return ZERO_RT_OK;
  auto find = [&](int64_t offset, int32_t dtype, const void *&place) {
    place = offset < 0
                ? nullptr
                : shared->find(rank, offset, tag.elements * elementSize(dtype));
    return place || offset < 0;
  };
  if (find(peer.received.tag.source, tag.dtype, peer.source) &&
      find(peer.received.tag.result, tag.sumType, peer.result))
    return ZERO_RT_OK;
  return breakWith(ZERO_RT_MISMATCH,
                   "rank " + std::to_string(rank) + " named a buffer for " +
                       describe(tag) + " that is not in its segment");
}

/// Finds out which |transfers| are done.
zero_rt_status ProcessCommunicator::look(const Tag &tag, Transfers &transfers) {
  zero_rt_status status = transfers.poll();
  if (status && !link->isBroken())
    return breakWith(status, lastMessage() +
                                 (" and will not come to " + describe(tag)));
  return status;
}

/// Whether transfers that wait for |ranks| can still succeed.
zero_rt_status ProcessCommunicator::checkHope(const Tag &tag,
                                              Patience &patience,
                                              std::vector<int32_t> ranks) {
  ZERO_RT_TRY(link->check(/*waits=*/true));
  ZERO_RT_TRY(reports->control.poll());
  Deadline now = std::chrono::steady_clock::now();
  if (now < patience.end)
    return ZERO_RT_OK;
  ControlMessages &control = reports->control;
  // A rank may wait for the missing rank in an earlier collective. It answers,
  // and is not to blame.
  constexpr auto grace = std::chrono::milliseconds(100);
  if (!patience.hasAsked)
    ZERO_RT_TRY(control.ask(ranks));
  patience.hasAsked = true;
  if (now < patience.end + grace)
    return ZERO_RT_OK;
  auto answered = [&](int32_t rank) { return control.hasAnswered(rank); };
  if (!std::all_of(ranks.begin(), ranks.end(), answered))
    ranks.erase(std::remove_if(ranks.begin(), ranks.end(), answered),
                ranks.end());
  else if (now < patience.end + 5 * grace)
    return ZERO_RT_OK; // they wait for another rank, and will tell which one
  return breakWith(ZERO_RT_TIMEOUT, describeMissing(tag, timeoutMs, ranks));
}

/// Sends the tag to |member|, with the payload if it is short.
zero_rt_status ProcessCommunicator::sendTag(const Tag &tag,
                                            Transfers &transfers,
                                            size_t member) {
  TagMessage &message = peers[member].sent;
  const Piece &piece = pieces[member];
  message = {};
  message.tag = mine;
  if (fitsInTag(piece.bytesSent)) {
    message.tag.bytes = uint8_t(piece.bytesSent);
    copyOnHost(message.payload, piece.sent, piece.bytesSent);
  }
  return transfers.send(members[member], CollectiveChannel, &message,
                        sizeof(message));
}

/// Members that read the source of this rank, or whose source this rank reads,
/// send no payload.
void ProcessCommunicator::dropReadPieces() {
  for (size_t m = 0; m < members.size(); ++m) {
    if (m == index || isRead(m, mine.source))
      pieces[m].bytesSent = 0;
    if (m == index || peers[m].source)
      pieces[m].bytesReceived = 0;
  }
}

char *ProcessCommunicator::placeOf(size_t member) {
  Piece &piece = pieces[member];
  size_t needed = members.size() * size_t(piece.bytesReceived);
  if (!piece.received && staging.size() < needed)
    staging.resize(needed);
  if (!piece.received)
    piece.received = staging.data() + int64_t(member) * piece.bytesReceived;
  return static_cast<char *>(piece.received);
}

/// Takes the payload from the tag of |member|, or receives it.
zero_rt_status ProcessCommunicator::openPiece(const Tag &tag,
                                              Transfers &transfers,
                                              size_t member) {
  const TagMessage &message = peers[member].received;
  if (peers[member].source)
    pieces[member].bytesReceived = 0;
  int64_t bytes = pieces[member].bytesReceived;
  if (!fitsInTag(bytes) && message.tag.bytes == 0)
    return transfers.receive(members[member], CollectiveChannel,
                             placeOf(member), bytes);
  if (message.tag.bytes != bytes)
    return breakWith(ZERO_RT_MISMATCH,
                     "rank " + std::to_string(members[member]) + " sent " +
                         std::to_string(message.tag.bytes) +
                         " bytes with its tag of " + describe(tag) +
                         ", expected " +
                         std::to_string(fitsInTag(bytes) ? bytes : 0));
  if (bytes)
    copyOnHost(placeOf(member), message.payload, bytes);
  return ZERO_RT_OK;
}

/// Exchanges tags and `pieces` with all members, and waits until all of them
/// are in a collective with the same tag. |source| and |result| are the buffers
/// that others may read, or null. Payload of members whose |source| is read
/// does not come.
zero_rt_status ProcessCommunicator::meet(const Tag &tag, const void *source,
                                         const void *result) {
  ZERO_RT_TRY(link->check());
  link->noteStep(tag.step);
  ++(isWhole() ? link->sequence : sequence);
  if (members.size() == 1)
    return ZERO_RT_OK;
  for (int32_t member : members)
    if (link->hasEnded(member, tag.step))
      return breakAsLeft(tag, member, "step");
  auto offsetOf = [&](const void *data) {
    return data && shared->own() ? shared->own()->offsetOf(data) : -1;
  };
  mine = makeTag(tag, group, isWhole() ? link->sequence : sequence);
  mine.incarnation = link->incarnation;
  mine.source = offsetOf(source);
  mine.result = offsetOf(result);
  Transfers transfers(*link);
  std::vector<size_t> missing;
  for (Peer &peer : peers) {
    peer.source = peer.result = nullptr;
    peer.leftAt.reset();
  }
  dropReadPieces();
  for (size_t m = 0; m < members.size(); ++m) {
    if (m == index)
      continue;
    missing.push_back(m);
    ZERO_RT_TRY(transfers.receive(members[m], CollectiveChannel,
                                  &peers[m].received, sizeof(TagMessage)));
    ZERO_RT_TRY(sendTag(tag, transfers, m));
  }
  for (size_t m = 0; m < members.size(); ++m)
    if (!fitsInTag(pieces[m].bytesSent))
      ZERO_RT_TRY(transfers.send(members[m], CollectiveChannel, pieces[m].sent,
                                 pieces[m].bytesSent));
  Patience patience(timeoutMs);
  for (Pause pause;; pause()) {
    ZERO_RT_TRY(look(tag, transfers));
    std::vector<int32_t> ranks;
    for (size_t i = 0; i < missing.size();) {
      size_t m = missing[i];
      if (transfers.hasAllFrom(members[m])) {
        ZERO_RT_TRY(compare(tag, m));
        ZERO_RT_TRY(openPiece(tag, transfers, m));
        missing.erase(missing.begin() + std::ptrdiff_t(i));
        continue;
      }
      ZERO_RT_TRY(checkPresence(tag, m));
      ranks.push_back(members[m]);
      ++i;
    }
    if (missing.empty())
      return finish(tag, transfers);
    ZERO_RT_TRY(checkHope(tag, patience, std::move(ranks)));
  }
}

/// Exchanges further `pieces` after a meeting.
zero_rt_status ProcessCommunicator::trade(const Tag &tag) {
  Transfers transfers(*link);
  for (size_t m = 0; m < members.size(); ++m) {
    if (m == index)
      continue;
    const Piece &piece = pieces[m];
    ZERO_RT_TRY(transfers.receive(members[m], CollectiveChannel, placeOf(m),
                                  piece.bytesReceived));
    ZERO_RT_TRY(transfers.send(members[m], CollectiveChannel, piece.sent,
                               piece.bytesSent));
  }
  return finish(tag, transfers);
}

/// Waits for |transfers|. A rank may die after it has entered.
zero_rt_status ProcessCommunicator::finish(const Tag &tag,
                                           Transfers &transfers) {
  Patience patience(timeoutMs);
  for (Pause pause;; pause()) {
    ZERO_RT_TRY(look(tag, transfers));
    if (transfers.isDone())
      return ZERO_RT_OK;
    std::vector<int32_t> ranks;
    for (int32_t member : members)
      if (!transfers.isDoneWith(member))
        ranks.push_back(member);
    ZERO_RT_TRY(checkHope(tag, patience, std::move(ranks)));
  }
}

//===----------------------------------------------------------------------===//
// Reports
//===----------------------------------------------------------------------===//

zero_rt_status ProcessCommunicator::exchange(const Tag &tag, const void *mine,
                                             void *all, int64_t bytes) {
  for (size_t m = 0; m < members.size(); ++m)
    pieces[m] = {mine, bytes, static_cast<char *>(all) + int64_t(m) * bytes,
                 bytes};
  std::memcpy(pieces[index].received, mine, size_t(bytes));
  return meet(tag);
}

zero_rt_status ProcessCommunicator::post(uint64_t step, uint64_t turn,
                                         const void *mine, int64_t bytes) {
  return reports->keep(step, turn, mine, bytes);
}

zero_rt_status ProcessCommunicator::collect(const Tag &tag, uint64_t turn,
                                            void *all, int64_t bytes) {
  // All ranks wait for each other here, so a rank that gives up tells the
  // others.
  zero_rt_status status =
      reports->collect(tag.step, turn, all, bytes, timeoutMs);
  return status == ZERO_RT_TIMEOUT && !link->isBroken()
             ? breakWith(status, lastMessage())
             : status;
}

//===----------------------------------------------------------------------===//
// Groups and steps
//===----------------------------------------------------------------------===//

zero_rt_status ProcessCommunicator::split(uint64_t step,
                                          const std::vector<int32_t> &members,
                                          std::unique_ptr<Communicator> &out) {
  out = std::make_unique<ProcessCommunicator>(link, reports, shared, members,
                                              step, timeoutMs);
  return ZERO_RT_OK;
}

zero_rt_status ProcessCommunicator::joinStep(uint64_t step) {
  link->noteStep(step);
  if (members.size() == 1)
    return ZERO_RT_OK;
  zero_rt_status status = guarded("step_create", [&] { return shareMemory(); });
  // The others wait for this rank.
  if (status)
    giveUp(status, lastMessage());
  return status;
}

/// Maps the segments of the ranks on the same machine. Some ranks may have made
/// their runtimes anew, with other segments.
zero_rt_status ProcessCommunicator::shareMemory() {
  std::vector<Announcement> all(members.size());
  Announcement own = shared->announce();
  Tag tag = {"share_memory", nullptr, 0, ZERO_RT_F64, ZERO_RT_F64, 0};
  ZERO_RT_TRY(exchange(tag, &own, all.data(), sizeof(own)));
  std::vector<char> isRead(members.size()), isReader(members.size());
  for (size_t m = 0; m < members.size(); ++m) {
    isRead[m] = m != index && shared->attach(members[m], all[m]);
    pieces[m] = {&isRead[m], 1, &isReader[m], 1};
  }
  ZERO_RT_TRY(meet(tag));
  for (size_t m = 0; m < members.size(); ++m)
    shared->setReader(members[m], isReader[m] && shared->own());
  return ZERO_RT_OK;
}

void ProcessCommunicator::leaveStep(uint64_t step) { reports->leave(step); }

void ProcessCommunicator::giveUp(zero_rt_status code, const char *message) {
  if (!link->isBroken())
    (void)breakWith(code,
                    "rank " + std::to_string(link->rank()) + ": " + message);
}
