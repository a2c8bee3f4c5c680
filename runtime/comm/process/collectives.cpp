//===- collectives.cpp - Sums and gathers of processes --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "comm/process/communicator.h"

#include "core/numeric.h"
#include "core/pause.h"
#include "device/host/copy.h"

#include <algorithm>

using namespace zero_rt;

/// The bytes that are received from one rank before they are summed.
static constexpr int64_t chunkBytes = int64_t(1) << 18;
/// What is not longer travels behind the header, without a wait in between.
static constexpr int64_t mostShortBytes = 1024;
/// A message that says only that it comes.
static constexpr char mark = 0;

/// Runs |body|, in which other ranks may read buffers of this rank.
template <typename Body> zero_rt_status ProcessCommunicator::lend(Body body) {
  struct Revoker {
    Segment *segment;
    ~Revoker() {
      if (segment)
        segment->revoke();
    }
  } revoker{shared->own()};
  zero_rt_status status = body();
  if (status == ZERO_RT_OK)
    revoker.segment = nullptr;
  return status;
}

/// Whether |member| reads this rank's buffer at |offset| of the segment.
bool ProcessCommunicator::isRead(size_t member, int64_t offset) const {
  return member != index && offset >= 0 && shared->isReadBy(members[member]);
}

bool ProcessCommunicator::hasShortSlices(const Tag &tag) const {
  return longestSlice(tag) * elementSize(tag.dtype) <= mostShortBytes;
}

int64_t ProcessCommunicator::longestSlice(const Tag &tag) const {
  int64_t longest = 0;
  for (size_t m = 0; m < members.size(); ++m)
    longest = std::max(longest, slice(tag, m).size());
  return longest;
}

/// Fails if a member has given up since this rank began to read its memory.
zero_rt_status ProcessCommunicator::checkUnrevoked(const Tag &tag) {
  std::vector<int32_t> revoked;
  for (size_t m = 0; m < members.size(); ++m)
    if ((peers[m].source || peers[m].result) && shared->isRevoked(members[m]))
      revoked.push_back(members[m]);
  // The members have told why, or will.
  Patience patience(timeoutMs);
  for (Pause pause; !revoked.empty(); pause())
    ZERO_RT_TRY(checkHope(tag, patience, revoked));
  return ZERO_RT_OK;
}

/// Tells the members whose |place| this rank has read that it is done. Waits
/// for those that read this rank's buffer at |offset|.
zero_rt_status ProcessCommunicator::awaitReaders(const Tag &tag, Place place,
                                                 int64_t offset) {
  ZERO_RT_TRY(checkUnrevoked(tag));
  std::vector<char> marks(members.size());
  Transfers transfers(*link);
  for (size_t m = 0; m < members.size(); ++m) {
    if (peers[m].*place)
      ZERO_RT_TRY(transfers.send(members[m], CollectiveChannel, &mark, 1));
    if (isRead(m, offset))
      ZERO_RT_TRY(
          transfers.receive(members[m], CollectiveChannel, &marks[m], 1));
  }
  return finish(tag, transfers);
}

/// Sums this rank's slice of the |src| of all ranks into |dst|, whose first
/// element is the first of the slice.
zero_rt_status ProcessCommunicator::sumSlices(const Tag &tag, Program &program,
                                              const void *src, void *dst,
                                              bool accumulate) {
  int64_t size = elementSize(tag.dtype);
  int64_t longest = longestSlice(tag);
  bool hasMessages = false;
  for (size_t m = 0; m < members.size(); ++m)
    hasMessages |= m != index && (!peers[m].source || !isRead(m, mine.source));
  int64_t chunk = hasMessages ? std::min(longest, chunkBytes / size) : longest;
  if (hasMessages)
    staging.resize(members.size() * size_t(chunk * size));
  auto cut = [&](Range range, int64_t begin) {
    return intersect(range, {range.begin + begin, range.begin + begin + chunk});
  };
  for (int64_t begin = 0; begin < longest; begin += chunk) {
    Range own = cut(slice(tag, index), begin);
    Transfers transfers(*link);
    for (size_t m = 0; m < members.size(); ++m) {
      if (const void *source = m == index ? src : peers[m].source) {
        sources[m] = elementAt(source, tag.dtype, own.begin);
      } else {
        char *place = staging.data() + int64_t(m) * chunk * size;
        sources[m] = place;
        ZERO_RT_TRY(transfers.receive(members[m], CollectiveChannel, place,
                                      own.size() * size));
      }
      if (m == index || isRead(m, mine.source))
        continue;
      Range theirs = cut(slice(tag, m), begin);
      ZERO_RT_TRY(transfers.send(members[m], CollectiveChannel,
                                 elementAt(src, tag.dtype, theirs.begin),
                                 theirs.size() * size));
    }
    ZERO_RT_TRY(finish(tag, transfers));
    ZERO_RT_TRY(program.sum(
        {tag.dtype, tag.sumType, sources.data(), int32_t(members.size()),
         elementAt(dst, tag.sumType, begin), accumulate, own.size()}));
  }
  return checkUnrevoked(tag);
}

/// Fills the slices of |data|, of |dtype|, that other ranks have. |place| is
/// that of the same buffer of the others. Sums are complete when their owner
/// says so; a source is complete at once.
zero_rt_status ProcessCommunicator::gatherSlices(const Tag &tag, int32_t dtype,
                                                 void *data, Place place) {
  bool isSum = place == &Peer::result;
  int64_t offset = isSum ? mine.result : mine.source;
  int64_t size = elementSize(dtype);
  Range own = slice(tag, index);
  std::vector<char> marks(members.size());
  Transfers transfers(*link);
  for (size_t m = 0; m < members.size(); ++m) {
    if (m == index)
      continue;
    Range theirs = slice(tag, m);
    if (!(peers[m].*place))
      ZERO_RT_TRY(transfers.receive(members[m], CollectiveChannel,
                                    elementAt(data, dtype, theirs.begin),
                                    theirs.size() * size));
    else if (isSum)
      ZERO_RT_TRY(
          transfers.receive(members[m], CollectiveChannel, &marks[m], 1));
    if (!isRead(m, offset))
      ZERO_RT_TRY(transfers.send(members[m], CollectiveChannel,
                                 elementAt(data, dtype, own.begin),
                                 own.size() * size));
    else if (isSum)
      ZERO_RT_TRY(transfers.send(members[m], CollectiveChannel, &mark, 1));
  }
  if (isSum)
    ZERO_RT_TRY(finish(tag, transfers));
  for (size_t m = 0; m < members.size(); ++m) {
    Range theirs = slice(tag, m);
    if (peers[m].*place)
      copyOnHost(elementAt(data, dtype, theirs.begin),
                 elementAt(peers[m].*place, dtype, theirs.begin),
                 theirs.size() * size);
  }
  ZERO_RT_TRY(finish(tag, transfers));
  return awaitReaders(tag, place, offset);
}

/// Sums short |src|, or this rank's slice of them, into |dst|, without a second
/// message between two ranks.
zero_rt_status ProcessCommunicator::sumShort(const Tag &tag, Program &program,
                                             const void *src, void *dst,
                                             bool accumulate, bool isWhole) {
  int64_t size = elementSize(tag.dtype);
  auto sliceOf = [&](size_t member) {
    return isWhole ? Range{0, tag.elements} : slice(tag, member);
  };
  Range own = sliceOf(index);
  staging.resize(members.size() * size_t(own.size() * size));
  std::vector<Piece> pieces(members.size());
  for (size_t m = 0; m < members.size(); ++m) {
    Range theirs = sliceOf(m);
    char *place = staging.data() + int64_t(m) * own.size() * size;
    pieces[m] = {elementAt(src, tag.dtype, theirs.begin), theirs.size() * size,
                 place, own.size() * size};
    sources[m] = m == index ? elementAt(src, tag.dtype, own.begin) : place;
  }
  ZERO_RT_TRY(enter(tag, pieces));
  return program.sum({tag.dtype, tag.sumType, sources.data(),
                      int32_t(members.size()), dst, accumulate, own.size()});
}

zero_rt_status ProcessCommunicator::allReduce(const Tag &tag, Program &program,
                                              const void *src, void *dst) {
  bool isAlone = members.size() == 1;
  if (!isAlone && tag.elements * elementSize(tag.dtype) <= mostShortBytes)
    return sumShort(tag, program, src, dst, /*accumulate=*/false,
                    /*isWhole=*/true);
  return lend([&]() -> zero_rt_status {
    ZERO_RT_TRY(enter(tag, src, dst));
    if (isAlone && src == dst)
      return ZERO_RT_OK; // the sum is in its place
    // Correct in place, too: other ranks get only slices of |src| that they
    // own, and a slice changes when its owner has summed it.
    void *own = elementAt(dst, tag.sumType, slice(tag, index).begin);
    ZERO_RT_TRY(sumSlices(tag, program, src, own, /*accumulate=*/false));
    return gatherSlices(tag, tag.sumType, dst, &Peer::result);
  });
}

zero_rt_status ProcessCommunicator::reduceScatter(const Tag &tag,
                                                  Program &program,
                                                  const void *src, void *dst,
                                                  bool accumulate) {
  if (hasShortSlices(tag))
    return sumShort(tag, program, src, dst, accumulate, /*isWhole=*/false);
  return lend([&]() -> zero_rt_status {
    ZERO_RT_TRY(enter(tag, src));
    ZERO_RT_TRY(sumSlices(tag, program, src, dst, accumulate));
    return awaitReaders(tag, &Peer::source, mine.source);
  });
}

zero_rt_status ProcessCommunicator::allGather(const Tag &tag, void *data) {
  if (!hasShortSlices(tag))
    return lend([&]() -> zero_rt_status {
      ZERO_RT_TRY(enter(tag, data));
      return gatherSlices(tag, tag.dtype, data, &Peer::source);
    });
  auto part = [&](size_t member, int64_t &bytes) {
    Range range = slice(tag, member);
    bytes = range.size() * elementSize(tag.dtype);
    return elementAt(data, tag.dtype, range.begin);
  };
  std::vector<Piece> pieces(members.size());
  for (size_t m = 0; m < members.size(); ++m) {
    pieces[m].sent = part(index, pieces[m].bytesSent);
    pieces[m].received = part(m, pieces[m].bytesReceived);
  }
  return enter(tag, pieces);
}
