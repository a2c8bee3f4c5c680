//===- communicator.h - Collectives of processes ----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each rank exchanges payload with all other ranks of its process group. A tag
// precedes the payload, and a rank compares the tags before it uses payload.
// Each rank sums its slice of the addends in the order of ranks. It reads the
// addends of a rank in that rank's segment, if it has mapped the segment and
// the buffer is in there, and receives them as messages otherwise. The traffic
// is that of a ring, in fewer steps. The results have the bits of ranks that
// are threads.
//
// A rank that reads a buffer tells its owner when it is done, and the owner
// does not leave the collective before that. An owner that gives up revokes its
// segment first, so that no rank trusts what it has read since.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_COMM_PROCESS_COMMUNICATOR_H
#define ZERO_RT_COMM_PROCESS_COMMUNICATOR_H

#include "comm/communicator.h"
#include "comm/process/collective_tag.h"
#include "comm/process/link.h"
#include "comm/process/reports.h"
#include "comm/process/shared_memory.h"
#include "core/localize.h"

#include <optional>

namespace zero_rt {

class ProcessCommunicator final : public Communicator {
public:
  /// |members| are ranks of the link, this rank included. Only the communicator
  /// of all ranks tells the others when it is destroyed.
  ProcessCommunicator(std::shared_ptr<Link> link,
                      std::shared_ptr<Reports> reports,
                      std::shared_ptr<SharedMemory> shared,
                      std::vector<int32_t> members, uint64_t step,
                      int64_t timeoutMs);
  ~ProcessCommunicator() override;

  zero_rt_status allReduce(const Tag &tag, Program &program, const void *src,
                           void *dst) override;
  zero_rt_status reduceScatter(const Tag &tag, Program &program,
                               const void *src, void *dst,
                               bool accumulate) override;
  zero_rt_status allGather(const Tag &tag, void *data) override;
  zero_rt_status exchange(const Tag &tag, const void *mine, void *all,
                          int64_t bytes) override;
  zero_rt_status post(uint64_t step, uint64_t turn, const void *mine,
                      int64_t bytes) override;
  zero_rt_status collect(const Tag &tag, uint64_t turn, void *all,
                         int64_t bytes) override;
  zero_rt_status split(uint64_t step, const std::vector<int32_t> &members,
                       std::unique_ptr<Communicator> &out) override;
  uint64_t position() const override { return link->sequence; }
  zero_rt_status joinStep(uint64_t step) override;
  void leaveStep(uint64_t step) override;
  void giveUp(zero_rt_status code, const char *message) override;
  Segment *segment() override { return shared->own(); }
  int64_t sharedRanks() const override { return shared->count(); }

private:
  /// What goes to and comes from a member, if messages carry it. An addend has
  /// no place until it comes.
  struct Piece {
    const void *sent = nullptr;
    int64_t bytesSent = 0;
    void *received = nullptr;
    int64_t bytesReceived = 0;
  };
  /// The collective of another member. The addresses are null if messages bring
  /// the data.
  struct Peer {
    TagMessage sent, received;
    const void *source = nullptr;
    const void *result = nullptr;
    /// When this rank learned that the member will not come.
    std::optional<Deadline> leftAt;
  };
  using Place = const void *Peer::*;
  bool isWhole() const { return int32_t(members.size()) == link->ranks(); }
  Range slice(const Tag &tag, size_t owner) const {
    return ownedSlice(tag.elements, int32_t(owner), int32_t(members.size()));
  }
  /// How long a rank waits for others.
  struct Patience {
    explicit Patience(int64_t timeoutMs)
        : end(std::chrono::steady_clock::now() +
              std::chrono::milliseconds(timeoutMs)) {}
    Deadline end;
    bool hasAsked = false; // which of the others wait, too
  };
  zero_rt_status breakWith(zero_rt_status code, const std::string &message) {
    return link->breakWith(code, message);
  }
  zero_rt_status meet(const Tag &tag, const void *source = nullptr,
                      const void *result = nullptr);
  zero_rt_status sendTag(const Tag &tag, Transfers &transfers, size_t member);
  void dropReadPieces();
  zero_rt_status openPiece(const Tag &tag, Transfers &transfers, size_t member);
  char *placeOf(size_t member);
  zero_rt_status trade(const Tag &tag);
  zero_rt_status compare(const Tag &tag, size_t member);
  zero_rt_status checkPresence(const Tag &tag, size_t member);
  zero_rt_status breakAsDifferent(const Tag &tag, size_t member);
  zero_rt_status findBuffers(const Tag &tag, size_t member);
  zero_rt_status breakAsLeft(const Tag &tag, int32_t rank, const char *owner);
  zero_rt_status checkHope(const Tag &tag, Patience &patience,
                           std::vector<int32_t> ranks);
  zero_rt_status look(const Tag &tag, Transfers &transfers);
  zero_rt_status finish(const Tag &tag, Transfers &transfers);
  template <typename Body> zero_rt_status lend(Body body);
  bool isRead(size_t member, int64_t offset) const;
  int64_t longestSlice(const Tag &tag) const;
  bool hasMessages() const;
  zero_rt_status sum(const Tag &tag, Program &program, const void *src,
                     void *dst, bool accumulate, bool isWhole,
                     const void *source, const void *result);
  void setSlices(const Tag &tag, int32_t dtype, void *data);
  zero_rt_status readSlices(const Tag &tag, int32_t dtype, void *data,
                            Place place, int64_t offset);
  zero_rt_status gatherSums(const Tag &tag, void *data);
  zero_rt_status awaitReaders(const Tag &tag, Place place, int64_t offset);
  zero_rt_status checkUnrevoked(const Tag &tag);
  zero_rt_status shareMemory();

  std::shared_ptr<Link> link;
  std::shared_ptr<Reports> reports;
  std::shared_ptr<SharedMemory> shared;
  std::vector<int32_t> members;
  size_t index; // of this rank
  uint64_t group;
  uint64_t sequence = 0; // of a process group that is not the whole one
  int64_t timeoutMs;
  CollectiveTag mine;        // of the present collective
  std::vector<Peer> peers;   // by member
  std::vector<Piece> pieces; // by member
  std::vector<char> staging; // addends of the other members
  std::vector<const void *> sources;
};

} // namespace zero_rt

#endif // ZERO_RT_COMM_PROCESS_COMMUNICATOR_H
