//===- inbox.h - What other threads sent to a rank --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_COMM_LOCAL_INBOX_H
#define ZERO_RT_COMM_LOCAL_INBOX_H

#include "comm/messenger.h"

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>

namespace zero_rt {

/// The inbox of one rank. The receiver copies without a lock, so other ranks
/// can send in the meantime.
class Inbox {
public:
  void put(int32_t from, const MessageName &name, Message &message);

  /// As Messenger::receive. |isSenderGone| returns whether the message can
  /// still arrive. Code that changes its result calls `wake`.
  zero_rt_status take(int32_t from, const MessageName &name, void *data,
                      int64_t bytes, int64_t timeoutMs,
                      const std::function<bool()> &isSenderGone,
                      const char *what);

  bool findUnread(uint64_t step, int64_t window, MessageName &name,
                  int32_t &from);
  void dropUnread(uint64_t step, int64_t window);
  /// Waits until the messages of |from| in |step| are taken, |isOwnerGone|
  /// returns true, or |deadline| has passed. Then removes the rest, whose
  /// memory is not read any more.
  void withdraw(int32_t from, uint64_t step,
                std::chrono::steady_clock::time_point deadline,
                const std::function<bool()> &isOwnerGone);
  void wake();

private:
  struct Entry {
    Message *message;
    bool isBeingCopied = false;
  };

  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::pair<MessageName, int32_t>, Entry> entries; // name and sender
};

} // namespace zero_rt

#endif // ZERO_RT_COMM_LOCAL_INBOX_H
