//===- communicator.cpp - Collectives of processes ------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "comm/process/communicator.h"

#include "core/numeric.h"
#include "core/pause.h"
#include "core/status.h"
#include "core/thread_pool.h"

#include <algorithm>

using namespace zero_rt;

/// The bytes that are received from one rank before they are summed.
static constexpr int64_t chunkBytes = int64_t(1) << 18;

/// A header that is sent to all other ranks, and for which none waits.
struct ProcessCommunicator::Farewell {
  explicit Farewell(Link &link) : transfers(link) {}
  Header header;
  Transfers transfers; // goes first
};

ProcessCommunicator::ProcessCommunicator(std::shared_ptr<Link> link,
                                         std::shared_ptr<Records> records,
                                         std::vector<int32_t> members,
                                         uint64_t step, int64_t timeoutMs)
    : link(std::move(link)), records(std::move(records)),
      members(std::move(members)), timeoutMs(timeoutMs),
      headers(this->members.size()), sources(this->members.size()) {
  auto mine =
      std::find(this->members.begin(), this->members.end(), this->link->rank());
  index = size_t(mine - this->members.begin());
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
zero_rt_status ProcessCommunicator::compare(const Tag &tag, const Header &mine,
                                            size_t member, bool &isAgain) {
  const Header &theirs = headers[member];
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
      leftAt[member] = std::chrono::steady_clock::now();
    return ZERO_RT_OK;
  }
  std::string text = findDifference(link->rank(), mine, rank, theirs);
  if (text.empty())
    return ZERO_RT_OK;
  // The member may have given up this collective and told so. Then this error
  // explains the difference.
  ZERO_RT_TRY(link->check());
  return breakWith(ZERO_RT_MISMATCH, text);
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
  return breakWith(ZERO_RT_TIMEOUT, describeMissing(tag, timeoutMs, ranks));
}

/// Waits until all members are in a collective with the same tag.
zero_rt_status ProcessCommunicator::enter(const Tag &tag) {
  ZERO_RT_TRY(link->check());
  link->noteStep(tag.step);
  ++(isWhole() ? link->sequence : sequence);
  if (members.size() == 1)
    return ZERO_RT_OK;
  for (int32_t member : members)
    if (link->hasEnded(member, tag.step))
      return breakAsLeft(tag, member, "step");
  Header mine = makeHeader(tag, group, isWhole() ? link->sequence : sequence);
  mine.incarnation = link->incarnation;
  Transfers transfers(*link);
  std::vector<size_t> missing;
  auto listen = [&](size_t member) {
    return transfers.receive(members[member], CollectiveChannel,
                             &headers[member], sizeof(Header));
  };
  leftAt.assign(members.size(), Deadline::max());
  for (size_t m = 0; m < members.size(); ++m) {
    if (m == index)
      continue;
    missing.push_back(m);
    ZERO_RT_TRY(listen(m));
    ZERO_RT_TRY(
        transfers.send(members[m], CollectiveChannel, &mine, sizeof(Header)));
  }
  Patience patience(timeoutMs);
  for (Pause pause;; pause()) {
    ZERO_RT_TRY(look(tag, transfers));
    std::vector<int32_t> ranks;
    for (size_t i = 0; i < missing.size();) {
      size_t m = missing[i];
      bool isAgain = true;
      if (transfers.hasAllFrom(members[m])) {
        ZERO_RT_TRY(compare(tag, mine, m, isAgain));
        if (isAgain)
          ZERO_RT_TRY(listen(m));
      }
      if (!isAgain) {
        missing.erase(missing.begin() + std::ptrdiff_t(i));
        continue;
      }
      constexpr auto grace = std::chrono::milliseconds(100);
      if (leftAt[m] < std::chrono::steady_clock::now() - grace)
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
// Collectives
//===----------------------------------------------------------------------===//

/// Sums this rank's slice of the |src| of all ranks into |dst|, whose first
/// element is the first of the slice.
zero_rt_status ProcessCommunicator::reduceOwnSlice(const Tag &tag,
                                                   Program &program,
                                                   const void *src, void *dst,
                                                   bool accumulate) {
  int64_t size = elementSize(tag.dtype);
  int64_t chunk = chunkBytes / size;
  Range own = slice(tag, index);
  int64_t longest = 0;
  for (size_t m = 0; m < members.size(); ++m)
    longest = std::max(longest, slice(tag, m).size());
  staging.resize(members.size() * size_t(std::min(chunk, longest) * size));
  auto cut = [&](Range range, int64_t begin) {
    return intersect(range, {range.begin + begin, range.begin + begin + chunk});
  };
  for (int64_t begin = 0; begin < longest; begin += chunk) {
    Range mine = cut(own, begin);
    Transfers transfers(*link);
    for (size_t m = 0; m < members.size(); ++m) {
      if (m == index) {
        sources[m] = elementAt(src, tag.dtype, mine.begin);
        continue;
      }
      char *place =
          staging.data() + int64_t(m) * std::min(chunk, longest) * size;
      sources[m] = place;
      Range theirs = cut(slice(tag, m), begin);
      ZERO_RT_TRY(transfers.receive(members[m], CollectiveChannel, place,
                                    mine.size() * size));
      ZERO_RT_TRY(transfers.send(members[m], CollectiveChannel,
                                 elementAt(src, tag.dtype, theirs.begin),
                                 theirs.size() * size));
    }
    ZERO_RT_TRY(finish(tag, transfers));
    ZERO_RT_TRY(program.sum(
        {tag.dtype, tag.sumType, sources.data(), int32_t(members.size()),
         elementAt(dst, tag.sumType, begin), accumulate, mine.size()}));
  }
  return ZERO_RT_OK;
}

/// Fills the slices of |data|, of |dtype|, that other ranks have.
zero_rt_status ProcessCommunicator::gatherSlices(const Tag &tag, int32_t dtype,
                                                 void *data) {
  Transfers transfers(*link);
  Range own = slice(tag, index);
  int64_t size = elementSize(dtype);
  for (size_t m = 0; m < members.size(); ++m) {
    if (m == index)
      continue;
    Range theirs = slice(tag, m);
    ZERO_RT_TRY(transfers.receive(members[m], CollectiveChannel,
                                  elementAt(data, dtype, theirs.begin),
                                  theirs.size() * size));
    ZERO_RT_TRY(transfers.send(members[m], CollectiveChannel,
                               elementAt(data, dtype, own.begin),
                               own.size() * size));
  }
  return finish(tag, transfers);
}

zero_rt_status ProcessCommunicator::allReduce(const Tag &tag, Program &program,
                                              const void *src, void *dst) {
  ZERO_RT_TRY(enter(tag));
  if (members.size() == 1 && src == dst)
    return ZERO_RT_OK; // the sum is in its place
  // Correct in place, too: this rank sends only slices of |src| that others
  // own.
  void *own = elementAt(dst, tag.sumType, slice(tag, index).begin);
  ZERO_RT_TRY(reduceOwnSlice(tag, program, src, own, /*accumulate=*/false));
  return gatherSlices(tag, tag.sumType, dst);
}

zero_rt_status ProcessCommunicator::reduceScatter(const Tag &tag,
                                                  Program &program,
                                                  const void *src, void *dst,
                                                  bool accumulate) {
  ZERO_RT_TRY(enter(tag));
  return reduceOwnSlice(tag, program, src, dst, accumulate);
}

zero_rt_status ProcessCommunicator::allGather(const Tag &tag, void *data) {
  ZERO_RT_TRY(enter(tag));
  return gatherSlices(tag, tag.dtype, data);
}

zero_rt_status ProcessCommunicator::exchange(const Tag &tag, const void *mine,
                                             void *all, int64_t bytes) {
  ZERO_RT_TRY(enter(tag));
  Transfers transfers(*link);
  for (size_t m = 0; m < members.size(); ++m) {
    char *place = static_cast<char *>(all) + int64_t(m) * bytes;
    if (m == index) {
      std::memcpy(place, mine, size_t(bytes));
      continue;
    }
    ZERO_RT_TRY(transfers.receive(members[m], CollectiveChannel, place, bytes));
    ZERO_RT_TRY(transfers.send(members[m], CollectiveChannel, mine, bytes));
  }
  return finish(tag, transfers);
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
  out = std::make_unique<ProcessCommunicator>(link, records, members, step,
                                              timeoutMs);
  return ZERO_RT_OK;
}

zero_rt_status ProcessCommunicator::joinStep(uint64_t step) {
  link->noteStep(step);
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
