//===- link.cpp - One process's end of a transport ------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "comm/process/link.h"

#include "comm/tag.h"
#include "core/status.h"

#include <algorithm>
#include <cstdio>

using namespace zero_rt;

Link::Link(const zero_rt_transport &transport)
    : transport(transport), met(size_t(transport.ranks)),
      listeners(size_t(transport.ranks)) {}

Link::~Link() {
  for (Listener &listener : listeners)
    if (listener.request)
      transport.cancel(transport.context, listener.request);
  // The last messages are on their way, or will not be received.
  for (void *request : sent)
    transport.cancel(transport.context, request);
  transport.destroy(transport.context);
}

/// Receives what other ranks tell about the link. A failure of the transport is
/// ignored here: the next call reports it.
void Link::listen() {
  for (int32_t r = 0; r < ranks() && failure.code == ZERO_RT_OK; ++r) {
    Listener &listener = listeners[size_t(r)];
    int32_t isDone = 0;
    if (r == rank() ||
        (!listener.request &&
         transport.receive(transport.context, r, FailureChannel,
                           &listener.notice, sizeof(Notice),
                           &listener.request)) ||
        transport.test(transport.context, listener.request, &isDone) || !isDone)
      continue;
    listener.request = nullptr;
    heardAt = std::chrono::steady_clock::now();
    failure = listener.notice;
    std::string text = makePrintable(failure.text, sizeof(failure.text) - 1);
    std::snprintf(failure.text, sizeof(failure.text), "%s", text.c_str());
    if (!isError(failure.code))
      failure.code = ZERO_RT_INTERNAL;
  }
}

zero_rt_status Link::breakWith(zero_rt_status code,
                               const std::string &message) {
  // This error may be a consequence of what other ranks have told. A rank that
  // gives up tells the others before it leaves.
  if (this->code == ZERO_RT_OK)
    listen();
  if (this->code == ZERO_RT_OK && failure.code) {
    isToldHere = true;
    setCause(failure.code, failure.text);
    return fail(this->code, "%s", brokenBy.c_str());
  }
  if (this->code == ZERO_RT_OK) {
    isToldHere = true;
    setCause(code, message);
  }
  return fail(code, "%s", message.c_str());
}

/// Tells the other ranks, too. Some of them may not have heard of the cause,
/// and would take this rank, which leaves now, for the one that is lost.
void Link::setCause(zero_rt_status code, const std::string &message) {
  this->code = code;
  brokenBy = message;
  mine.code = code;
  std::snprintf(mine.text, sizeof(mine.text), "%s", message.c_str());
  for (int32_t r = 0; r < ranks(); ++r) {
    void *request = nullptr;
    if (r != rank() && !transport.send(transport.context, r, FailureChannel,
                                       &mine, sizeof(Notice), &request))
      sent.push_back(request);
  }
}

zero_rt_status Link::check(bool waits) {
  listen();
  // A rank that waits may be in a collective that the other ranks finished
  // before they gave up. Its data is then on its way.
  constexpr auto grace = std::chrono::milliseconds(100);
  if (code == ZERO_RT_OK && failure.code &&
      (!waits || std::chrono::steady_clock::now() - heardAt > grace))
    setCause(failure.code, failure.text);
  if (code == ZERO_RT_OK)
    return ZERO_RT_OK;
  if (!isToldHere && (waits || code == ZERO_RT_MISMATCH)) {
    isToldHere = true;
    return fail(code, "%s", brokenBy.c_str());
  }
  return fail(ZERO_RT_POISONED, "the group is broken since: %s",
              brokenBy.c_str());
}

zero_rt_status Link::checkTransport(zero_rt_status status) {
  if (status == ZERO_RT_OK)
    return ZERO_RT_OK;
  if (status == ZERO_RT_TIMEOUT)
    return fail(status, "%s", transport.error(transport.context));
  return breakWith(status, "rank " + std::to_string(rank()) + ": " +
                               transport.error(transport.context));
}

void Link::noteStep(uint64_t step) {
  if (step)
    live.insert(step);
}

void Link::endStep(uint64_t step) {
  live.erase(step);
  newestOver = std::max(newestOver, step);
  ended.erase(ended.lower_bound({step, 0}),
              ended.upper_bound({step, INT32_MAX}));
}

void Link::noteEnd(int32_t rank, uint64_t step) {
  if (!isOver(step))
    ended.insert({step, rank});
}

//===----------------------------------------------------------------------===//
// Transfers
//===----------------------------------------------------------------------===//

/// Calls |begin| for each piece of a message that is not too long.
template <typename Begin>
static zero_rt_status cut(Link &link, int64_t bytes, Begin begin) {
  for (int64_t done = 0; done < bytes; done += ZERO_RT_TRANSPORT_MOST_BYTES) {
    int64_t size = std::min(ZERO_RT_TRANSPORT_MOST_BYTES, bytes - done);
    ZERO_RT_TRY(link.checkTransport(begin(done, size)));
  }
  return ZERO_RT_OK;
}

zero_rt_status Transfers::send(int32_t to, int32_t channel, const void *data,
                               int64_t bytes) {
  return cut(*link, bytes, [&](int64_t done, int64_t size) -> zero_rt_status {
    requests.reserve(requests.size() + 1);
    void *request = nullptr;
    ZERO_RT_TRY(link->transport.send(link->transport.context, to, channel,
                                     static_cast<const char *>(data) + done,
                                     size, &request));
    requests.push_back({to, /*isSend=*/true, request});
    return ZERO_RT_OK;
  });
}

zero_rt_status Transfers::receive(int32_t from, int32_t channel, void *data,
                                  int64_t bytes) {
  return cut(*link, bytes, [&](int64_t done, int64_t size) -> zero_rt_status {
    requests.reserve(requests.size() + 1);
    void *request = nullptr;
    ZERO_RT_TRY(link->transport.receive(link->transport.context, from, channel,
                                        static_cast<char *>(data) + done, size,
                                        &request));
    requests.push_back({from, /*isSend=*/false, request});
    return ZERO_RT_OK;
  });
}

zero_rt_status Transfers::poll() {
  for (size_t i = 0; i < requests.size();) {
    int32_t done = 0;
    ZERO_RT_TRY(link->checkTransport(link->transport.test(
        link->transport.context, requests[i].request, &done)));
    if (done)
      requests.erase(requests.begin() + std::ptrdiff_t(i));
    else
      ++i;
  }
  return ZERO_RT_OK;
}

bool Transfers::hasAllFrom(int32_t rank) const {
  return std::none_of(requests.begin(), requests.end(), [&](const Request &r) {
    return r.rank == rank && !r.isSend;
  });
}

bool Transfers::isDoneWith(int32_t rank) const {
  return std::none_of(requests.begin(), requests.end(),
                      [&](const Request &r) { return r.rank == rank; });
}

void Transfers::cancel() {
  for (const Request &request : requests)
    link->transport.cancel(link->transport.context, request.request);
  requests.clear();
}
