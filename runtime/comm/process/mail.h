//===- mail.h - Letters between processes -----------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Letters of one rank arrive in the order in which they were sent, and are read
// in another: what comes before what is waited for is kept.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_COMM_PROCESS_MAIL_H
#define ZERO_RT_COMM_PROCESS_MAIL_H

#include "comm/mail.h"
#include "comm/process/link.h"

#include <list>
#include <map>
#include <memory>

namespace zero_rt {

/// All letters of a link. It lives as long as that: half a letter may be under
/// way when a runtime ends, and must not be taken for one of the next.
class PostOffice {
public:
  explicit PostOffice(Link &link);

  zero_rt_status send(int32_t to, const Letter &letter, const void *data,
                      int64_t bytes);
  zero_rt_status receive(int32_t from, const Letter &letter, void *data,
                         int64_t bytes, const char *what, int64_t timeoutMs);
  bool findUnread(uint64_t step, int64_t window, Letter &letter, int32_t &from);
  void dropUnread(uint64_t step, int64_t window);
  void leaveStep(uint64_t step, int64_t timeoutMs);

private:
  /// What goes before a letter's contents; without any, its sender has left.
  struct Envelope {
    Letter letter;
    int64_t bytes = 0;
    bool hasLeft = false;
  };
  struct Outgoing {
    explicit Outgoing(Link &link) : transfers(link) {}
    Envelope envelope;
    int32_t to = 0;
    std::vector<char> contents;
    Transfers transfers; // goes first
  };
  struct Incoming {
    explicit Incoming(Link &link) : transfers(link) {}
    Envelope envelope;
    std::vector<char> contents;
    bool isAwaited = false; // a receive of the envelope has begun
    bool isOpened = false;  // the envelope is here
    bool isOver = false;    // its sender is gone
    Transfers transfers;    // goes first
  };

  zero_rt_status post(int32_t to, const Envelope &envelope, const void *data);
  /// Takes note of all that has come and gone.
  zero_rt_status poll();
  zero_rt_status pollFrom(int32_t from, bool &isMore);

  Link &link;
  std::list<Outgoing> outgoing;
  std::map<int32_t, Incoming> incoming; // by rank
  std::map<std::pair<Letter, int32_t>, std::vector<char>> unread;
  /// By step, the first window whose letters are still wanted.
  std::map<uint64_t, int64_t> wanted;
};

/// One runtime's end of it.
class ProcessMail final : public Mail {
public:
  ProcessMail(std::shared_ptr<PostOffice> office, int64_t timeoutMs)
      : office(std::move(office)), timeoutMs(timeoutMs) {}

  zero_rt_status send(int32_t to, const Letter &letter,
                      Parcel &parcel) override;
  zero_rt_status receive(int32_t from, const Letter &letter, void *data,
                         int64_t bytes, const char *what) override;
  bool findUnread(uint64_t step, int64_t window, Letter &letter,
                  int32_t &from) override {
    return office->findUnread(step, window, letter, from);
  }
  void dropUnread(uint64_t step, int64_t window) override {
    office->dropUnread(step, window);
  }
  void leaveStep(uint64_t step) override { office->leaveStep(step, timeoutMs); }

private:
  std::shared_ptr<PostOffice> office;
  int64_t timeoutMs;
};

} // namespace zero_rt

#endif // ZERO_RT_COMM_PROCESS_MAIL_H
