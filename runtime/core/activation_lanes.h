//===- activation_lanes.h - Activations between devices ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// If the caller asks for it, tensors go over lanes between devices. A
// source copies its tensor, queues the send, and announces it over the hosts.
// The destination queues the receives of a lane in the order of announcements:
// one that the caller has not asked for goes to a copy.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_CORE_ACTIVATION_LANES_H
#define ZERO_RT_CORE_ACTIVATION_LANES_H

#include "comm/lane.h"
#include "comm/messenger.h"
#include "core/activations.h"

#include <list>
#include <map>
#include <memory>
#include <string>

namespace zero_rt {

struct Step;

class ActivationLanes {
public:
  explicit ActivationLanes(Step &step) : step(step) {}
  /// All ranks call it.
  zero_rt_status open();
  /// Whether tensors go over lanes.
  bool areOpen() const { return !outgoing.empty() || !incoming.empty(); }

  zero_rt_status send(int32_t to, const MessageName &name,
                      const Payload &payload);
  /// |what| describes the message in errors, which are those of
  /// Messenger::receive.
  zero_rt_status receive(int32_t from, const MessageName &name,
                         const Payload &payload, const std::string &what);
  /// As in Messenger.
  bool findUnread(int64_t window, bool waits, MessageName &name, int32_t &from);
  void dropUnread(int64_t window);
  /// Receives what other ranks send until they end the step, and waits until
  /// they have received all from this one, at most for the timeout. Ends the
  /// lanes. Comes after Messenger::declareEnd.
  void leave();
  /// Ends the lanes. One that is not closed gives up what is queued.
  void disconnect();
  /// Releases the copies. Comes last.
  void release();

private:
  struct OutLane {
    std::unique_ptr<Lane> lane;
    int64_t sent = 0;            // the number of messages
    bool isAcknowledged = false; // the destination has received all
  };
  /// A message about a lane, which lives until it is taken.
  struct Notice {
    Message message;
    int64_t values[5] = {};
  };
  /// An announced message that the caller has not received.
  struct Arrival {
    MessageName name;
    int64_t bytes = 0;
    bool isDropped = false; // the caller will not ask for it
    Copy *copy = nullptr;   // once its receive is queued
  };
  struct InLane {
    std::unique_ptr<Lane> lane;
    int64_t announced = 0; // the number of messages
    int64_t queued = 0;    // of their receives
    bool isDone = false;   // the source has ended, and all is here
    std::map<int64_t, Arrival> arrivals;
    std::map<int64_t, Arrival>::iterator find(const MessageName &name);
  };

  zero_rt_status queueSend(OutLane &lane, const Payload &payload);
  zero_rt_status readNext(int32_t from, const char *what);
  Notice &takeNotice();
  /// Reads the announcements that have come.
  zero_rt_status readAll(bool waits);
  /// Queues the receives before |end| into copies.
  zero_rt_status queueUntil(InLane &lane, int64_t end, const char *name);
  zero_rt_status queueReceive(InLane &lane, Arrival &arrival, const char *name);
  zero_rt_status takeFromCopy(Copy &copy, const Payload &payload);
  void forget(InLane &lane, std::map<int64_t, Arrival>::iterator arrival);
  zero_rt_status finish(bool &isDone);
  zero_rt_status giveUpOn(zero_rt_status status);

  Step &step;
  std::map<int32_t, OutLane> outgoing; // by destination
  std::map<int32_t, InLane> incoming;  // by source
  std::list<Copy> copies;              // they do not move
  std::list<Notice> notices;
  bool isEnded = false;
};

} // namespace zero_rt

#endif // ZERO_RT_CORE_ACTIVATION_LANES_H
