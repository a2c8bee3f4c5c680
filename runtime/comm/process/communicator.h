//===- communicator.h - Collectives of processes ----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each rank first sends the tag of its collective to all other ranks of its
// process group, and compares theirs. Then it sends each rank its part of the
// addends, and sums the parts that it receives in the order of ranks. The
// traffic is that of a ring, in fewer steps. The results have the bits of ranks
// that are threads.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_COMM_PROCESS_COMMUNICATOR_H
#define ZERO_RT_COMM_PROCESS_COMMUNICATOR_H

#include "comm/communicator.h"
#include "comm/process/header.h"
#include "comm/process/link.h"
#include "comm/process/records.h"
#include "core/localize.h"

#include <list>

namespace zero_rt {

class ProcessCommunicator final : public Communicator {
public:
  /// |members| are ranks of the link, this rank included. Only the communicator
  /// of all ranks tells the others when it is destroyed.
  ProcessCommunicator(std::shared_ptr<Link> link,
                      std::shared_ptr<Records> records,
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

private:
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
  zero_rt_status enter(const Tag &tag);
  zero_rt_status compare(const Tag &tag, const Header &mine, size_t member,
                         bool &isAgain);
  zero_rt_status breakAsLeft(const Tag &tag, int32_t rank, const char *owner);
  zero_rt_status checkHope(const Tag &tag, Patience &patience,
                           std::vector<int32_t> ranks);
  zero_rt_status look(const Tag &tag, Transfers &transfers);
  zero_rt_status finish(const Tag &tag, Transfers &transfers);
  zero_rt_status reduceOwnSlice(const Tag &tag, Program &program,
                                const void *src, void *dst, bool accumulate);
  zero_rt_status gatherSlices(const Tag &tag, int32_t dtype, void *data);
  void sayFarewell(Header::Kind kind, uint64_t step);

  std::shared_ptr<Link> link;
  std::shared_ptr<Records> records;
  std::vector<int32_t> members;
  size_t index; // of this rank
  uint64_t group;
  uint64_t sequence = 0; // of a process group that is not the whole one
  int64_t timeoutMs;
  std::vector<Header> headers;  // of the other members
  std::vector<Deadline> leftAt; // when a member destroyed its runtime
  std::vector<char> staging;    // addends of the other members
  std::vector<const void *> sources;
  struct Farewell;
  std::list<Farewell> farewells;
};

} // namespace zero_rt

#endif // ZERO_RT_COMM_PROCESS_COMMUNICATOR_H
