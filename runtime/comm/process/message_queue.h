//===- message_queue.h - Messages between processes -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Messages of one rank arrive in the order in which they were sent, and are
// read in another order. Messages that arrive before the one that is awaited
// are kept.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_COMM_PROCESS_MESSAGE_QUEUE_H
#define ZERO_RT_COMM_PROCESS_MESSAGE_QUEUE_H

#include "comm/messenger.h"
#include "comm/process/link.h"

#include <list>
#include <map>
#include <memory>
#include <set>

namespace zero_rt {

/// All messages of a link. Lives as long as the link: when a runtime ends, a
/// message may be half received, and must not be mistaken for one of the next
/// runtime.
class MessageQueue {
public:
  explicit MessageQueue(Link &link);

  zero_rt_status send(int32_t to, const MessageName &name, const void *data,
                      int64_t bytes);
  zero_rt_status receive(int32_t from, const MessageName &name, void *data,
                         int64_t bytes, const char *what, int64_t timeoutMs);
  bool findUnread(uint64_t step, int64_t window, bool waits, MessageName &name,
                  int32_t &from);
  void dropUnread(uint64_t step, int64_t window);
  void declareEnd(uint64_t step);
  bool hasEnded(int32_t other, uint64_t step);
  bool hasLeft(int32_t other, uint64_t step);
  void leaveStep(uint64_t step, int64_t timeoutMs);

private:
  /// What the sender of a header without a message says about its step.
  enum class Farewell : int64_t {
    None,          // it has a message
    EndOfMessages, // no message follows
    EndOfStep      // and none is received
  };
  /// The header of a message.
  struct Header {
    int64_t bytes = 0;
    MessageName name;
    Farewell farewell = Farewell::None;
    bool isValid() const;
  };
  static_assert(sizeof(Header) == 48, "padding would be sent");
  struct Outgoing {
    explicit Outgoing(Link &link) : transfers(link) {}
    Header header;
    int32_t to = 0;
    std::vector<char> contents;
    Transfers transfers; // goes first
  };
  struct Incoming {
    explicit Incoming(Link &link) : transfers(link) {}
    Header header;
    std::vector<char> contents;
    bool isAwaited = false; // a receive of the header has begun
    bool isOpened = false;  // the header is here
    bool isOver = false;    // its sender is gone
    Transfers transfers;    // goes first
  };

  void sayToAll(uint64_t step, Farewell farewell);
  zero_rt_status post(int32_t to, const Header &header, const void *data);
  /// Finds out which messages have been sent, and reads those that arrived.
  zero_rt_status poll();
  zero_rt_status pollFrom(int32_t from, bool &isMore);
  zero_rt_status checkHeader(int32_t from, const Header &header);

  Link &link;
  std::list<Outgoing> outgoing;
  std::map<int32_t, Incoming> incoming; // by rank
  std::map<std::pair<MessageName, int32_t>, std::vector<char>> unread;
  std::map<int32_t, int64_t> unreadBytes; // by rank
  /// Erases a message of `unread`; returns the next one.
  decltype(unread)::iterator erase(decltype(unread)::iterator message);
  /// Ranks that have left steps of this one.
  std::set<std::pair<uint64_t, int32_t>> left;
  /// By step: the first window whose messages are still needed.
  std::map<uint64_t, int64_t> wanted;
};

/// The end of one runtime.
class ProcessMessenger final : public Messenger {
public:
  ProcessMessenger(std::shared_ptr<MessageQueue> queue, int64_t timeoutMs)
      : queue(std::move(queue)), timeoutMs(timeoutMs) {}

  zero_rt_status send(int32_t to, const MessageName &name,
                      Message &message) override;
  zero_rt_status receive(int32_t from, const MessageName &name, void *data,
                         int64_t bytes, const char *what) override;
  bool findUnread(uint64_t step, int64_t window, bool waits, MessageName &name,
                  int32_t &from) override {
    return queue->findUnread(step, window, waits, name, from);
  }
  void dropUnread(uint64_t step, int64_t window) override {
    queue->dropUnread(step, window);
  }
  void declareEnd(uint64_t step) override { queue->declareEnd(step); }
  bool hasEnded(int32_t other, uint64_t step) override {
    return queue->hasEnded(other, step);
  }
  bool hasLeft(int32_t other, uint64_t step) override {
    return queue->hasLeft(other, step);
  }
  void leaveStep(uint64_t step) override { queue->leaveStep(step, timeoutMs); }

private:
  std::shared_ptr<MessageQueue> queue;
  int64_t timeoutMs;
};

} // namespace zero_rt

#endif // ZERO_RT_COMM_PROCESS_MESSAGE_QUEUE_H
