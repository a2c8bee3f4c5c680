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
#include <tuple>

using namespace zero_rt;

/// The bytes that are received from one rank before they are summed. Payload
/// that is not longer travels behind the tag, without a wait in between.
static constexpr int64_t chunkBytes = int64_t(1) << 18;
/// What is not longer travels as messages, which need no second meeting.
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
  for (size_t m = 0; m < members.size(); ++m)
    pieces[m] = {&mark, peers[m].*place != nullptr, &marks[m],
                 isRead(m, offset)};
  return trade(tag);
}

/// Whether two members exchange payload as messages.
bool ProcessCommunicator::hasMessages() const {
  for (size_t m = 0; m < members.size(); ++m)
    if (m != index && (!peers[m].source || !isRead(m, mine.source)))
      return true;
  return false;
}

/// Sums the |src| of all ranks into |dst|: all of it, or this rank's slice,
/// whose first element is the first of |dst|. Others read |source| and
/// |result|.
zero_rt_status ProcessCommunicator::sum(const Tag &tag, Program &program,
                                        const void *src, void *dst,
                                        bool accumulate, bool isWhole,
                                        const void *source,
                                        const void *result) {
  int64_t size = elementSize(tag.dtype);
  int64_t longest = isWhole ? tag.elements : longestSlice(tag);
  int64_t begin = 0, chunk = std::min(longest, chunkBytes / size);
  auto cut = [&](size_t member) {
    Range all = isWhole ? Range{0, tag.elements} : slice(tag, member);
    return intersect(all, {all.begin + begin, all.begin + begin + chunk});
  };
  do {
    Range own = cut(index);
    for (size_t m = 0; m < members.size(); ++m) {
      Range theirs = cut(m);
      pieces[m] = {elementAt(src, tag.dtype, theirs.begin),
                   theirs.size() * size, nullptr, own.size() * size};
    }
    if (begin)
      dropReadPieces();
    ZERO_RT_TRY(begin ? trade(tag) : meet(tag, source, result));
    if (begin == 0 && !hasMessages()) {
      chunk = longest;
      own = cut(index);
    }
    for (size_t m = 0; m < members.size(); ++m) {
      const void *addends = m == index ? src : peers[m].source;
      sources[m] = addends ? elementAt(addends, tag.dtype, own.begin)
                           : pieces[m].received;
    }
    ZERO_RT_TRY(program.sum(
        {tag.dtype, tag.sumType, sources.data(), int32_t(members.size()),
         elementAt(dst, tag.sumType, begin), accumulate, own.size()}));
    begin += chunk;
  } while (begin < longest);
  return checkUnrevoked(tag);
}

/// Sets `pieces` to the slices of |data|.
void ProcessCommunicator::setSlices(const Tag &tag, int32_t dtype, void *data) {
  int64_t size = elementSize(dtype);
  Range own = slice(tag, index);
  for (size_t m = 0; m < members.size(); ++m) {
    Range theirs = slice(tag, m);
    pieces[m] = {elementAt(data, dtype, own.begin), own.size() * size,
                 elementAt(data, dtype, theirs.begin), theirs.size() * size};
  }
}

/// Copies the slices of |data| of the members whose |place| this rank reads,
/// and waits for those that read its buffer at |offset|.
zero_rt_status ProcessCommunicator::readSlices(const Tag &tag, int32_t dtype,
                                               void *data, Place place,
                                               int64_t offset) {
  for (size_t m = 0; m < members.size(); ++m) {
    Range theirs = slice(tag, m);
    if (peers[m].*place)
      copyOnHost(elementAt(data, dtype, theirs.begin),
                 elementAt(peers[m].*place, dtype, theirs.begin),
                 theirs.size() * elementSize(dtype));
  }
  return awaitReaders(tag, place, offset);
}

/// Fills the slices of |data| that other ranks have summed. A sum is complete
/// when its owner says so.
zero_rt_status ProcessCommunicator::gatherSums(const Tag &tag, void *data) {
  setSlices(tag, tag.sumType, data);
  std::vector<char> marks(members.size());
  for (size_t m = 0; m < members.size(); ++m) {
    Piece &piece = pieces[m];
    if (isRead(m, mine.result))
      std::tie(piece.sent, piece.bytesSent) = std::make_tuple(&mark, 1);
    if (peers[m].result)
      std::tie(piece.received, piece.bytesReceived) =
          std::make_tuple(&marks[m], 1);
  }
  ZERO_RT_TRY(trade(tag));
  return readSlices(tag, tag.sumType, data, &Peer::result, mine.result);
}

zero_rt_status ProcessCommunicator::allReduce(const Tag &tag, Program &program,
                                              const void *src, void *dst) {
  if (members.size() == 1 && src == dst)
    return meet(tag); // the sum is in its place
  if (tag.elements * elementSize(tag.dtype) <= mostShortBytes)
    return sum(tag, program, src, dst, /*accumulate=*/false, /*isWhole=*/true,
               /*source=*/nullptr, /*result=*/nullptr);
  return lend([&]() -> zero_rt_status {
    // Correct in place, too: other ranks get only slices of |src| that they
    // own, and a slice changes when its owner has summed it.
    void *own = elementAt(dst, tag.sumType, slice(tag, index).begin);
    ZERO_RT_TRY(sum(tag, program, src, own, /*accumulate=*/false,
                    /*isWhole=*/false, src, dst));
    return gatherSums(tag, dst);
  });
}

zero_rt_status ProcessCommunicator::reduceScatter(const Tag &tag,
                                                  Program &program,
                                                  const void *src, void *dst,
                                                  bool accumulate) {
  int64_t bytes = longestSlice(tag) * elementSize(tag.dtype);
  const void *source = bytes <= mostShortBytes ? nullptr : src;
  return lend([&]() -> zero_rt_status {
    ZERO_RT_TRY(sum(tag, program, src, dst, accumulate, /*isWhole=*/false,
                    source, /*result=*/nullptr));
    return awaitReaders(tag, &Peer::source, mine.source);
  });
}

zero_rt_status ProcessCommunicator::allGather(const Tag &tag, void *data) {
  int64_t bytes = longestSlice(tag) * elementSize(tag.dtype);
  return lend([&]() -> zero_rt_status {
    setSlices(tag, tag.dtype, data);
    // Long payload of a rank that is early would be kept by the transport.
    if (bytes > chunkBytes)
      std::fill(pieces.begin(), pieces.end(), Piece());
    ZERO_RT_TRY(meet(tag, bytes <= mostShortBytes ? nullptr : data));
    if (bytes > chunkBytes) {
      setSlices(tag, tag.dtype, data);
      dropReadPieces();
      ZERO_RT_TRY(trade(tag));
    }
    return readSlices(tag, tag.dtype, data, &Peer::source, mine.source);
  });
}
