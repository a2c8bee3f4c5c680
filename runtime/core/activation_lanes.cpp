//===- activation_lanes.cpp - Activations between devices -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "core/activation_lanes.h"

#include "core/numeric.h"
#include "core/pause.h"
#include "core/stages.h"
#include "core/step.h"

#include <algorithm>
#include <chrono>
#include <set>

using namespace zero_rt;

/// The window of announcements: they outlive the windows of their messages, as
/// receives must be queued for messages that are dropped, too.
static constexpr int64_t announcements = INT64_MAX - 1;

/// That of a destination's last message: it has received all.
static constexpr int64_t acknowledgements = INT64_MAX - 2;

/// More than any tensor has.
static constexpr int64_t mostBytes = int64_t(1) << 48;

static MessageName nameNotice(const Step &step, int64_t window,
                              int64_t number = 0) {
  MessageName name;
  name.step = step.id;
  name.window = window;
  name.microBatch = number;
  return name;
}

//===----------------------------------------------------------------------===//
// Opening
//===----------------------------------------------------------------------===//

/// The lanes of all ranks, in one order.
static std::vector<LaneEnds> listLanes(const Step &step) {
  const zero_rt_library &library = *step.library;
  std::set<LaneEnds> lanes;
  for (int64_t a = 0; a < library.num_activations; ++a) {
    const zero_rt_activation_row &row = library.activations[a];
    for (int32_t from = 0; from < step.runtime->ranks; ++from) {
      if (coordinateOf(library, from, row.axis) != row.from)
        continue;
      int32_t to = rankAt(library, from, row.axis, row.to);
      lanes.insert({from, to});
      if (isDtype(row.dtype)) // it has a gradient
        lanes.insert({to, from});
    }
  }
  return {lanes.begin(), lanes.end()};
}

zero_rt_status ActivationLanes::open() {
  if (step.device().isImmediate())
    return ZERO_RT_OK;
  std::vector<LaneEnds> all = listLanes(step);
  std::vector<std::unique_ptr<Lane>> lanes;
  ZERO_RT_TRY(step.runtime->communicator->openLanes(step.id, all, lanes));
  for (size_t i = 0; i < all.size(); ++i) {
    if (!lanes[i])
      continue;
    auto [from, to] = all[i];
    if (from == step.runtime->rank)
      outgoing[to].lane = std::move(lanes[i]);
    else
      incoming[from].lane = std::move(lanes[i]);
  }
  return ZERO_RT_OK;
}

//===----------------------------------------------------------------------===//
// Sending
//===----------------------------------------------------------------------===//

/// Later work on |second| starts after the work on |first|.
static zero_rt_status follow(Device &device, zero_rt_stream *first,
                             zero_rt_stream *second) {
  Signal signal = nullptr;
  zero_rt_status status = device.record(first, &signal);
  if (!status)
    status = device.precede(second, signal);
  device.dropSignal(signal);
  return status;
}

/// |out| passes when the work on |stream| is done.
static zero_rt_status markOn(Step &step, zero_rt_stream *stream,
                             zero_rt_timepoint &out) {
  Signal signal = nullptr;
  if (zero_rt_status status = step.device().record(stream, &signal)) {
    step.device().dropSignal(signal);
    return status;
  }
  out = ++step.runtime->timepoints;
  return step.device().mark(out, signal);
}

/// The result of what follows a move. The other rank does not know of an error,
/// and would match later moves with earlier ones.
zero_rt_status ActivationLanes::giveUpOn(zero_rt_status status) {
  if (status)
    step.runtime->communicator->giveUp(status, lastMessage());
  return status;
}

zero_rt_status ActivationLanes::queueSend(OutLane &lane,
                                          const Payload &payload) {
  if (payload.bytes == 0)
    return ZERO_RT_OK;
  Device &device = step.device();
  zero_rt_stream *queue = lane.lane->getQueue();
  Copy *copy = nullptr;
  ZERO_RT_TRY(
      step.on(int32_t(Stream::ToHost), "activation", [&]() -> zero_rt_status {
        ZERO_RT_TRY(
            takeCopy(step, copies, ZERO_RT_SPACE_DEVICE, payload, copy));
        zero_rt_stream *own = device.getQueue();
        ZERO_RT_TRY(follow(device, payload.stream, own));
        ZERO_RT_TRY(device.copy(copy->block.data, payload.data, payload.bytes));
        ZERO_RT_TRY(follow(device, own, payload.stream));
        return follow(device, own, queue);
      }));
  ZERO_RT_TRY(lane.lane->move(copy->block.data, payload.bytes));
  return giveUpOn(markOn(step, queue, copy->usedUntil));
}

ActivationLanes::Notice &ActivationLanes::takeNotice() {
  for (Notice &notice : notices)
    if (notice.message.isTaken)
      return notice;
  Notice &notice = notices.emplace_back();
  notice.message.data = notice.values;
  notice.message.isTaken = true;
  return notice;
}

zero_rt_status ActivationLanes::send(int32_t to, const MessageName &name,
                                     const Payload &payload) {
  OutLane &lane = outgoing.at(to);
  // Made first: nothing is sent that cannot be announced. It is no memory of
  // the device, whose release would wait for what is queued.
  Notice &notice = takeNotice();
  ZERO_RT_TRY(queueSend(lane, payload));
  const int64_t values[] = {name.window, name.microBatch, name.activation,
                            name.isGradient, payload.bytes};
  std::copy(std::begin(values), std::end(values), notice.values);
  notice.message.bytes = sizeof(notice.values);
  notice.message.isTaken = false;
  return giveUpOn(step.runtime->messenger->send(
      to, nameNotice(step, announcements, lane.sent++), notice.message));
}

//===----------------------------------------------------------------------===//
// Receiving
//===----------------------------------------------------------------------===//

auto ActivationLanes::InLane::find(const MessageName &name)
    -> std::map<int64_t, Arrival>::iterator {
  return std::find_if(arrivals.begin(), arrivals.end(), [&](auto &each) {
    return each.second.name.key() == name.key();
  });
}

zero_rt_status ActivationLanes::readNext(int32_t from, const char *what) {
  InLane &lane = incoming.at(from);
  int64_t values[5] = {};
  ZERO_RT_TRY(step.runtime->messenger->receive(
      from, nameNotice(step, announcements, lane.announced), values,
      sizeof(values), what));
  Arrival arrival;
  arrival.name.step = step.id;
  arrival.name.window = values[0];
  arrival.name.microBatch = values[1];
  arrival.name.activation = int32_t(values[2]);
  arrival.name.isGradient = int16_t(values[3]);
  arrival.bytes = values[4];
  if (arrival.bytes < 0 || arrival.bytes > mostBytes)
    return giveUpOn(fail(ZERO_RT_MISMATCH,
                         "rank %d sent bytes that are no activation", from));
  arrival.isDropped = arrival.name.window < step.activations.window;
  lane.arrivals.emplace(lane.announced++, arrival);
  return ZERO_RT_OK;
}

zero_rt_status ActivationLanes::readAll(bool waits) {
  MessageName name;
  int32_t from = 0;
  while (step.runtime->messenger->findUnread(step.id, announcements, waits,
                                             name, from)) {
    auto lane = incoming.find(from);
    if (lane == incoming.end() || name.microBatch != lane->second.announced)
      return giveUpOn(fail(ZERO_RT_MISMATCH,
                           "rank %d announced an activation that does not "
                           "follow the last one",
                           from));
    ZERO_RT_TRY(readNext(from, "an activation"));
    waits = false;
  }
  return ZERO_RT_OK;
}

void ActivationLanes::forget(InLane &lane,
                             std::map<int64_t, Arrival>::iterator arrival) {
  if (Copy *copy = arrival->second.copy)
    copy->isHeld = false;
  lane.arrivals.erase(arrival);
}

zero_rt_status ActivationLanes::queueReceive(InLane &lane, Arrival &arrival,
                                             const char *name) {
  if (arrival.bytes == 0)
    return ZERO_RT_OK;
  Device &device = step.device();
  zero_rt_stream *queue = lane.lane->getQueue();
  Copy *copy = nullptr;
  ZERO_RT_TRY(
      step.on(int32_t(Stream::ToDevice), "activation", [&]() -> zero_rt_status {
        ZERO_RT_TRY(takeCopy(step, copies, ZERO_RT_SPACE_DEVICE,
                             {nullptr, arrival.bytes, nullptr, name, false},
                             copy));
        return follow(device, device.getQueue(), queue);
      }));
  ZERO_RT_TRY(lane.lane->move(copy->block.data, arrival.bytes));
  copy->isHeld = true;
  arrival.copy = copy;
  return giveUpOn(markOn(step, queue, copy->usedUntil));
}

zero_rt_status ActivationLanes::queueUntil(InLane &lane, int64_t end,
                                           const char *name) {
  for (; lane.queued < end; ++lane.queued) {
    auto it = lane.arrivals.find(lane.queued);
    ZERO_RT_TRY(queueReceive(lane, it->second, name));
    if (it->second.isDropped)
      forget(lane, it);
  }
  return ZERO_RT_OK;
}

/// Copies what has come before the caller asked for it.
zero_rt_status ActivationLanes::takeFromCopy(Copy &copy,
                                             const Payload &payload) {
  Device &device = step.device();
  return step.on(
      int32_t(Stream::ToDevice), "activation", [&]() -> zero_rt_status {
        zero_rt_stream *own = device.getQueue();
        ZERO_RT_TRY(follow(device, payload.stream, own));
        ZERO_RT_TRY(device.precede(own, copy.usedUntil));
        ZERO_RT_TRY(device.copy(payload.data, copy.block.data, payload.bytes));
        ZERO_RT_TRY(markOn(step, own, copy.usedUntil));
        return device.precede(payload.stream, copy.usedUntil);
      });
}

zero_rt_status ActivationLanes::receive(int32_t from, const MessageName &name,
                                        const Payload &payload,
                                        const std::string &what) {
  InLane &lane = incoming.at(from);
  auto it = lane.find(name);
  for (; it == lane.arrivals.end(); it = lane.find(name))
    ZERO_RT_TRY(readNext(from, what.c_str()));
  auto &[number, arrival] = *it;
  if (arrival.bytes && number >= lane.queued &&
      step.runtime->messenger->hasLeft(from, step.id))
    return fail(ZERO_RT_TIMEOUT, "%s will not come: rank %d destroyed its step",
                what.c_str(), from);
  if (arrival.bytes != payload.bytes)
    return fail(ZERO_RT_MISMATCH, "%s has %lld bytes, and rank %d sent %lld",
                what.c_str(), (long long)payload.bytes, from,
                (long long)arrival.bytes);
  // Devices send to their own memory alone.
  ZERO_RT_TRY(queueUntil(lane, number + payload.isOnHost, payload.activation));
  if (arrival.copy) {
    ZERO_RT_TRY(takeFromCopy(*arrival.copy, payload));
  } else if (payload.bytes) {
    Device &device = step.device();
    zero_rt_stream *queue = lane.lane->getQueue();
    ZERO_RT_TRY(follow(device, payload.stream, queue));
    ZERO_RT_TRY(lane.lane->move(payload.data, payload.bytes));
    ++lane.queued;
    ZERO_RT_TRY(giveUpOn(follow(device, queue, payload.stream)));
  } else if (number == lane.queued) {
    ++lane.queued;
  }
  forget(lane, it);
  return ZERO_RT_OK;
}

bool ActivationLanes::findUnread(int64_t window, bool waits, MessageName &name,
                                 int32_t &from) {
  if (!areOpen())
    return false;
  // An error shows in the next call.
  (void)readAll(waits);
  for (auto &[source, lane] : incoming)
    for (auto &[number, arrival] : lane.arrivals)
      if (!arrival.isDropped && arrival.name.window == window) {
        name = arrival.name;
        from = source;
        return true;
      }
  return false;
}

void ActivationLanes::dropUnread(int64_t window) {
  for (auto &[source, lane] : incoming)
    for (auto it = lane.arrivals.begin(); it != lane.arrivals.end();) {
      auto arrival = it++;
      arrival->second.isDropped |= arrival->second.name.window <= window;
      // The receive of another one is yet to be queued.
      if (arrival->second.isDropped && arrival->first < lane.queued)
        forget(lane, arrival);
    }
}

//===----------------------------------------------------------------------===//
// The end
//===----------------------------------------------------------------------===//

/// Queues the receives for which others wait. Finds out whether all is done on
/// both ends of each lane.
zero_rt_status ActivationLanes::finish(bool &isDone) {
  Messenger &messenger = *step.runtime->messenger;
  isDone = true;
  for (auto &[source, lane] : incoming) {
    // Announcements come before the end.
    bool hasEnded = messenger.hasEnded(source, step.id);
    ZERO_RT_TRY(readAll(/*waits=*/false));
    ZERO_RT_TRY(queueUntil(lane, lane.announced, "activation"));
    bool isHere = false;
    ZERO_RT_TRY(lane.lane->isDone(isHere));
    if (isHere && hasEnded && !lane.isDone) {
      Notice &notice = takeNotice();
      notice.message.bytes = 0;
      notice.message.isTaken = false;
      ZERO_RT_TRY(messenger.send(source, nameNotice(step, acknowledgements),
                                 notice.message));
      lane.isDone = true;
    }
    isDone &= lane.isDone;
  }
  MessageName name;
  int32_t from = 0;
  while (messenger.findUnread(step.id, acknowledgements, /*waits=*/false, name,
                              from)) {
    ZERO_RT_TRY(messenger.receive(from, name, nullptr, 0, "the end"));
    if (auto it = outgoing.find(from); it != outgoing.end())
      it->second.isAcknowledged = true;
  }
  for (auto &[destination, lane] : outgoing) {
    bool isSent = false;
    ZERO_RT_TRY(lane.lane->isDone(isSent));
    lane.isAcknowledged &= isSent;
    isDone &= lane.isAcknowledged || messenger.hasLeft(destination, step.id);
  }
  return ZERO_RT_OK;
}

void ActivationLanes::leave() {
  if (!areOpen())
    return;
  auto end = std::chrono::steady_clock::now() +
             std::chrono::milliseconds(step.runtime->timeoutMs);
  bool isDone = false;
  for (Pause pause; !isDone && std::chrono::steady_clock::now() < end;
       pause()) {
    zero_rt_status status =
        guarded("step_destroy", [&] { return finish(isDone); });
    if (giveUpOn(status))
      break;
  }
  for (auto &[destination, lane] : outgoing)
    lane.lane->end(lane.isAcknowledged);
  for (auto &[source, lane] : incoming)
    lane.lane->end(lane.isDone);
  isEnded = true;
}

void ActivationLanes::disconnect() {
  if (!isEnded) {
    for (auto &[destination, lane] : outgoing)
      lane.lane->end(/*isDone=*/false);
    for (auto &[source, lane] : incoming)
      lane.lane->end(/*isDone=*/false);
  }
  outgoing.clear();
  incoming.clear();
}

void ActivationLanes::release() {
  for (Copy &copy : copies)
    step.runtime->memory.release(copy.block);
}
