//===- communicator.cpp - Collectives of processes ------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "comm/process/communicator.h"

#include "core/numeric.h"
#include "core/pause.h"
#include "core/status.h"

#include <algorithm>
#include <cstring>

using namespace zero_rt;

/// A header that is sent to all other ranks, and for which none waits.
struct ProcessCommunicator::Farewell {
  explicit Farewell(Link &link) : transfers(link) {}
  Header header;
  Transfers transfers; // goes first
};

ProcessCommunicator::ProcessCommunicator(std::shared_ptr<Link> link,
                                         std::shared_ptr<Records> records,
                                         std::shared_ptr<SharedMemory> shared,
                                         std::vector<int32_t> members,
                                         uint64_t step, int64_t timeoutMs)
    : link(std::move(link)), records(std::move(records)),
      shared(std::move(shared)), members(std::move(members)),
      timeoutMs(timeoutMs), peers(this->members.size()),
      sources(this->members.size()) {
  auto place =
      std::find(this->members.begin(), this->members.end(), this->link->rank());
  index = size_t(place - this->members.begin());
  group = numberOf(this->members, step);
}

ProcessCommunicator::~ProcessCommunicator() {
  if (!isWhole() || guarded("leave", [&] {
        sayFarewell(Header::LeftRuntime, 0);
        return zero_rt_status(ZERO_RT_OK);
      }))
    return;
  // Other ranks may be waiting for it. They get it now or never.
  Deadline end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  for (Pause pause; !farewells.empty() && !link->isBroken() &&
                    std::chrono::steady_clock::now() < end;
       pause()) {
    if (farewells.front().transfers.poll())
      break;
    if (farewells.front().transfers.isDone())
      farewells.pop_front();
  }
}

//===----------------------------------------------------------------------===//
// Meeting
//===----------------------------------------------------------------------===//

zero_rt_status ProcessCommunicator::breakAsLeft(const Tag &tag, int32_t rank,
                                                const char *owner) {
  return breakWith(ZERO_RT_TIMEOUT,
                   describeLeft(tag, rank, owner, link->rank()));
}

/// Evaluates the header of |member|. Sets |isAgain| if the header was of
/// another collective, so that another header must come.
zero_rt_status ProcessCommunicator::compare(const Tag &tag, size_t member,
                                            bool &isAgain) {
  const Header &theirs = peers[member].header;
  int32_t rank = members[member];
  if (!isValid(theirs))
    return breakWith(ZERO_RT_MISMATCH,
                     "rank " + std::to_string(rank) +
                         " sent bytes that are no header of a collective");
  isAgain = theirs.kind != Header::Collective;
  if (theirs.kind == Header::LeftStep) {
    link->noteEnd(rank, theirs.step);
    return theirs.step == tag.step ? breakAsLeft(tag, rank, "step")
                                   : ZERO_RT_OK;
  }
  if (theirs.kind == Header::LeftRuntime) {
    // The header may be old: the rank may have made another runtime since.
    if (theirs.incarnation >= mine.incarnation)
      peers[member].leftAt = std::chrono::steady_clock::now();
    return ZERO_RT_OK;
  }
  std::string text = findDifference(link->rank(), mine, rank, theirs);
  if (text.empty())
    return findBuffers(tag, member);
  // The member may have given up this collective and told so. Then this error
  // explains the difference.
  ZERO_RT_TRY(link->check());
  return breakWith(ZERO_RT_MISMATCH, text);
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
  if (find(peer.header.source, tag.dtype, peer.source) &&
      find(peer.header.result, tag.sumType, peer.result))
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
  ZERO_RT_TRY(records->look());
  Deadline now = std::chrono::steady_clock::now();
  if (now < patience.end)
    return ZERO_RT_OK;
  Notes &notes = records->notes;
  // A rank may wait for the missing rank in an earlier collective. It answers,
  // and is not to blame.
  constexpr auto grace = std::chrono::milliseconds(100);
  if (!patience.hasAsked)
    ZERO_RT_TRY(notes.ask(ranks));
  patience.hasAsked = true;
  if (now < patience.end + grace)
    return ZERO_RT_OK;
  auto answered = [&](int32_t rank) { return notes.hasAnswered(rank); };
  if (!std::all_of(ranks.begin(), ranks.end(), answered))
    ranks.erase(std::remove_if(ranks.begin(), ranks.end(), answered),
                ranks.end());
  else if (now < patience.end + 5 * grace)
    return ZERO_RT_OK; // they wait for another rank, and will tell which one
  return breakWith(ZERO_RT_TIMEOUT, describeMissing(tag, timeoutMs, ranks));
}

/// Waits until all members are in a collective with the same tag. |source| and
/// |result| are the buffers that others may read, or null.
zero_rt_status ProcessCommunicator::enter(const Tag &tag, const void *source,
                                          const void *result) {
  auto offsetOf = [&](const void *data) {
    return data && shared->own() ? shared->own()->offsetOf(data) : -1;
  };
  return meet(tag, offsetOf(source), offsetOf(result), {});
}

/// The same, and exchanges |pieces|, one for each member, which are short.
zero_rt_status ProcessCommunicator::enter(const Tag &tag,
                                          const std::vector<Piece> &pieces) {
  return meet(tag, /*source=*/-1, /*result=*/-1, pieces);
}

zero_rt_status ProcessCommunicator::meet(const Tag &tag, int64_t source,
                                         int64_t result,
                                         const std::vector<Piece> &pieces) {
  ZERO_RT_TRY(link->check());
  link->noteStep(tag.step);
  ++(isWhole() ? link->sequence : sequence);
  if (members.size() == 1)
    return ZERO_RT_OK;
  for (int32_t member : members)
    if (link->hasEnded(member, tag.step))
      return breakAsLeft(tag, member, "step");
  mine = makeHeader(tag, group, isWhole() ? link->sequence : sequence);
  mine.incarnation = link->incarnation;
  mine.source = source;
  mine.result = result;
  Transfers transfers(*link);
  std::vector<size_t> missing;
  auto listen = [&](size_t member) {
    return transfers.receive(members[member], CollectiveChannel,
                             &peers[member].header, sizeof(Header));
  };
  for (size_t m = 0; m < members.size(); ++m) {
    if (m == index)
      continue;
    peers[m].source = peers[m].result = nullptr;
    peers[m].leftAt = Deadline::max();
    missing.push_back(m);
    ZERO_RT_TRY(listen(m));
    ZERO_RT_TRY(
        transfers.send(members[m], CollectiveChannel, &mine, sizeof(Header)));
    if (!pieces.empty())
      ZERO_RT_TRY(transfers.send(members[m], CollectiveChannel, pieces[m].sent,
                                 pieces[m].bytesSent));
  }
  Patience patience(timeoutMs);
  for (Pause pause;; pause()) {
    ZERO_RT_TRY(look(tag, transfers));
    std::vector<int32_t> ranks;
    for (size_t i = 0; i < missing.size();) {
      size_t m = missing[i];
      bool isAgain = true;
      if (transfers.hasAllFrom(members[m])) {
        ZERO_RT_TRY(compare(tag, m, isAgain));
        if (isAgain)
          ZERO_RT_TRY(listen(m));
        else if (!pieces.empty())
          ZERO_RT_TRY(transfers.receive(members[m], CollectiveChannel,
                                        pieces[m].received,
                                        pieces[m].bytesReceived));
      }
      if (!isAgain) {
        missing.erase(missing.begin() + std::ptrdiff_t(i));
        continue;
      }
      constexpr auto grace = std::chrono::milliseconds(100);
      if (peers[m].leftAt < std::chrono::steady_clock::now() - grace)
        return breakAsLeft(tag, members[m], "runtime");
      ranks.push_back(members[m]);
      ++i;
    }
    if (transfers.isDone())
      return ZERO_RT_OK;
    for (int32_t member : members)
      if (ranks.empty() && !transfers.isDoneWith(member))
        ranks.push_back(member); // it does not receive either
    ZERO_RT_TRY(checkHope(tag, patience, std::move(ranks)));
  }
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
// Records
//===----------------------------------------------------------------------===//

zero_rt_status ProcessCommunicator::exchange(const Tag &tag, const void *mine,
                                             void *all, int64_t bytes) {
  std::vector<Piece> pieces(members.size());
  for (size_t m = 0; m < members.size(); ++m)
    pieces[m] = {mine, bytes, static_cast<char *>(all) + int64_t(m) * bytes,
                 bytes};
  std::memcpy(pieces[index].received, mine, size_t(bytes));
  return enter(tag, pieces);
}

zero_rt_status ProcessCommunicator::post(uint64_t step, uint64_t turn,
                                         const void *mine, int64_t bytes) {
  return records->keep(step, turn, mine, bytes);
}

zero_rt_status ProcessCommunicator::collect(const Tag &tag, uint64_t turn,
                                            void *all, int64_t bytes) {
  // All ranks wait for each other here, so a rank that gives up tells the
  // others.
  zero_rt_status status =
      records->collect(tag.step, turn, all, bytes, timeoutMs);
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
  out = std::make_unique<ProcessCommunicator>(link, records, shared, members,
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
  std::vector<Piece> pieces(members.size());
  for (size_t m = 0; m < members.size(); ++m) {
    isRead[m] = m != index && shared->attach(members[m], all[m]);
    pieces[m] = {&isRead[m], 1, &isReader[m], 1};
  }
  ZERO_RT_TRY(enter(tag, pieces));
  for (size_t m = 0; m < members.size(); ++m)
    shared->setReader(members[m], isReader[m] && shared->own());
  return ZERO_RT_OK;
}

void ProcessCommunicator::leaveStep(uint64_t step) {
  sayFarewell(Header::LeftStep, step);
  records->leave(step);
}

void ProcessCommunicator::giveUp(zero_rt_status code, const char *message) {
  if (!link->isBroken())
    (void)breakWith(code,
                    "rank " + std::to_string(link->rank()) + ": " + message);
}

void ProcessCommunicator::sayFarewell(Header::Kind kind, uint64_t step) {
  while (!farewells.empty() && !link->isBroken() &&
         !farewells.front().transfers.poll() &&
         farewells.front().transfers.isDone())
    farewells.pop_front();
  Farewell &farewell = farewells.emplace_back(*link);
  farewell.header.kind = kind;
  farewell.header.incarnation = link->incarnation;
  farewell.header.step = step;
  // If the link is broken, other ranks detect that themselves.
  for (int32_t member : members)
    if (member != link->rank() && !link->isBroken())
      (void)farewell.transfers.send(member, CollectiveChannel, &farewell.header,
                                    sizeof(Header));
}
