//===- control_messages.h - Messages outside any order ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Short messages outside the order of collectives. The sender does not wait,
// and the receiver reads them when it looks.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_COMM_PROCESS_CONTROL_MESSAGES_H
#define ZERO_RT_COMM_PROCESS_CONTROL_MESSAGES_H

#include "comm/process/collective_tag.h"
#include "comm/process/link.h"

#include <array>
#include <functional>
#include <list>
#include <map>

namespace zero_rt {

struct ControlMessage {
  enum Kind : int32_t {
    Report,   // the knowledge of a rank about a refused step (reports.h)
    LeftStep, // the rank has destroyed that step
    LeftRuntime,
    Called,    // a collective was queued (desync_check.h)
    Waiting,   // a rank waits in a collective, and asks who is there
    Came,      // the answer
    LeftGroup, // the rank queues no more collectives of a step
    Ask,       // a rank has waited for too long, and asks who is in a call
    Answer,
    Named, // the tag of a rank that found a difference, with its names
    NumKinds
  };
  int32_t kind = Report;
  int32_t bytes = 0; // of |data|
  uint64_t step = 0;
  uint64_t group = 0;
  uint64_t turn = 0;
  char data[480] = {};
};

/// All control messages of a link; lives as long as that.
class ControlMessages {
public:
  explicit ControlMessages(Link &link);

  using Reader =
      std::function<zero_rt_status(int32_t from, const ControlMessage &)>;
  /// |reader| gets all messages of |kind| from now on.
  void setReader(ControlMessage::Kind kind, Reader reader) {
    readers[size_t(kind)] = std::move(reader);
  }

  zero_rt_status send(int32_t to, const ControlMessage &message);
  /// Sends |message| to all other ranks of the link that it can reach.
  void sendToAll(const ControlMessage &message);
  /// Gives the received messages to their readers.
  zero_rt_status poll();
  /// Asks each of |ranks| whether it is in a call of the runtime. A rank
  /// answers when it looks.
  zero_rt_status ask(const std::vector<int32_t> &ranks);
  /// Whether |rank| has answered since this rank asked.
  bool hasAnswered(int32_t rank) const;
  /// Tells |rank| the names of this rank's tag, and gets those of |rank|, which
  /// has found that the tags differ, too. Without an answer, |theirs| says that
  /// the names are not known.
  zero_rt_status tradeNames(int32_t rank, const NamedTag &mine,
                            NamedTag &theirs);
  /// Tells the other ranks that this rank destroys its runtime. They get it now
  /// or never, so this waits for a moment.
  void leaveRuntime();
  /// Whether |rank| has destroyed the runtime that goes with this rank's.
  bool hasLeft(int32_t rank) const;
  /// Whether no more messages of |rank| will arrive.
  bool isGone(int32_t rank) const;

  Link &link;

private:
  struct Outgoing {
    explicit Outgoing(Link &link) : transfers(link) {}
    ControlMessage message;
    Transfers transfers; // goes first
  };
  struct Incoming {
    explicit Incoming(Link &link) : transfers(link) {}
    ControlMessage message;
    bool isAwaited = false;
    bool isGone = false;
    bool hasAnswered = false;
    bool hasNamed = false;
    uint64_t left = 0; // the last runtime that the rank has destroyed
    NamedTag named;
    Transfers transfers; // goes first
  };
  zero_rt_status tell(int32_t to, ControlMessage::Kind kind);
  zero_rt_status pollFrom(int32_t from, Incoming &next);

  std::array<Reader, ControlMessage::NumKinds> readers;
  std::list<Outgoing> outgoing;
  std::map<int32_t, Incoming> incoming; // by rank
};

} // namespace zero_rt

#endif // ZERO_RT_COMM_PROCESS_CONTROL_MESSAGES_H
