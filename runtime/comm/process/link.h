//===- link.h - One process's end of a transport ----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_COMM_PROCESS_LINK_H
#define ZERO_RT_COMM_PROCESS_LINK_H

#include "zero_rt/transport.h"

#include <chrono>
#include <iterator>
#include <list>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace zero_rt {

using Deadline = std::chrono::steady_clock::time_point;

/// Channels of a transport.
enum : int32_t {
  CollectiveChannel = 0,
  MessageChannel = 1,
  FailureChannel = 2,
  ControlChannel = 3
};

/// A transport, with the known state of the other ranks.
class Link {
public:
  explicit Link(const zero_rt_transport &transport);
  ~Link();
  Link(const Link &) = delete;
  Link &operator=(const Link &) = delete;

  int32_t rank() const { return transport.rank; }
  int32_t ranks() const { return transport.ranks; }

  /// Breaks the link: returns |code| with |message|, and tells all other ranks.
  /// Later calls report the first cause.
  zero_rt_status breakWith(zero_rt_status code, const std::string &message);
  bool isBroken() const { return code != ZERO_RT_OK; }
  /// The thread that got the cause did not report it to the caller.
  void setUntold() { isToldHere = false; }
  /// If the link is broken, here or elsewhere, an error: poisoned, with the
  /// cause. A disagreement fails every rank. A timeout elsewhere fails this
  /// rank only if it |waits|. In these two cases the first call returns the
  /// cause itself.
  zero_rt_status check(bool waits = false);
  /// Turns the result of a function of the transport into a status with a
  /// message. A rank that is gone (timeout) does not break the link yet.
  zero_rt_status checkTransport(zero_rt_status status);

  /// Notes that this rank takes part in |step|, or not any more. Steps are
  /// numbered in order of creation.
  void noteStep(uint64_t step);
  void endStep(uint64_t step);
  bool isOver(uint64_t step) const {
    return step <= newestOver && !live.count(step);
  }
  /// |rank| has destroyed |step|.
  void noteEnd(int32_t rank, uint64_t step);
  bool hasEnded(int32_t rank, uint64_t step) const {
    return ended.count({step, rank}) != 0;
  }

  zero_rt_transport transport;
  /// The number of collectives of all ranks that this rank has entered.
  uint64_t sequence = 0;
  /// The number of runtimes that this rank has made on the link.
  int32_t incarnation = 0;
  /// By rank: the numbers of both runtimes when its last tag came.
  struct Met {
    int32_t theirs = 0;
    int32_t mine = 0;
  };
  std::vector<Met> met;

private:
  struct Notice {
    int32_t code = ZERO_RT_OK;
    char text[252] = {};
  };
  struct Listener {
    Notice notice;
    void *request = nullptr;
  };
  void listen();
  void setCause(zero_rt_status code, const std::string &message);

  std::set<uint64_t> live;
  uint64_t newestOver = 0;
  /// (step, rank): the rank has destroyed that step, which lives here or is
  /// new.
  std::set<std::pair<uint64_t, int32_t>> ended;
  zero_rt_status code = ZERO_RT_OK;
  std::string brokenBy;
  bool isToldHere = false;
  std::vector<Listener> listeners; // by rank; this one's is idle
  Notice failure;                  // the first one, of other ranks
  Deadline heardAt;
  Notice mine;
  std::vector<void *> sent; // to the others
};

/// Messages that are in progress together. The destructor cancels those that
/// are not done.
class Transfers {
public:
  explicit Transfers(Link &link) : link(&link) {}
  ~Transfers() { cancel(); }
  Transfers(const Transfers &) = delete;
  Transfers &operator=(const Transfers &) = delete;

  zero_rt_status send(int32_t to, int32_t channel, const void *data,
                      int64_t bytes);
  zero_rt_status receive(int32_t from, int32_t channel, void *data,
                         int64_t bytes);
  /// Finds out which messages are done.
  zero_rt_status poll();
  bool isDone() const { return requests.empty(); }
  /// Whether all receives from |rank| are done, or all messages from and to
  /// |rank|.
  bool hasAllFrom(int32_t rank) const;
  bool isDoneWith(int32_t rank) const;
  void cancel();

private:
  struct Request {
    int32_t rank;
    bool isSend;
    void *request;
  };
  Link *link;
  std::vector<Request> requests;
};

/// Drops the messages that are sent, and those to ranks that are gone. A
/// message has its `transfers`.
template <typename Message>
zero_rt_status pollOutgoing(std::list<Message> &outgoing) {
  for (auto message = outgoing.begin(); message != outgoing.end();) {
    zero_rt_status status = message->transfers.poll();
    if (status && status != ZERO_RT_TIMEOUT)
      return status;
    bool isDone = status || message->transfers.isDone();
    message = isDone ? outgoing.erase(message) : std::next(message);
  }
  return ZERO_RT_OK;
}

} // namespace zero_rt

#endif // ZERO_RT_COMM_PROCESS_LINK_H
