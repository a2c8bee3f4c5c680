//===- tcp_group.cpp - How ranks find each other over TCP -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// All ranks connect to rank 0, which sends them the addresses of the others.
// Then each rank connects to the ranks below it.
//
//===----------------------------------------------------------------------===//

#include "comm/communicator.h"
#include "comm/tag.h"
#include "comm/tcp/connections.h"
#include "core/status.h"
#include "zero_rt/tcp.h"

#include <cstring>
#include <memory>

using namespace zero_rt;

static constexpr uint64_t magic = 0x7a65726f2d746370; // and version 1
static constexpr int64_t defaultTimeoutMs = 60000;

namespace {

/// The first message on a connection.
struct Hello {
  uint64_t magic = ::magic;
  int32_t rank = 0;
  int32_t ranks = 0;
  int32_t port = 0; // where it listens
  int32_t reserved = 0;
};

struct Address {
  char host[64] = {};
  int32_t port = 0;
};

class Meeting {
public:
  explicit Meeting(const zero_rt_tcp_options &options);
  zero_rt_status run();
  std::vector<Socket> sockets; // by rank

private:
  zero_rt_status lead();
  zero_rt_status follow();
  zero_rt_status takeIn(Socket &listener, int32_t first,
                        std::vector<Address> *addresses);
  zero_rt_status callOn(const std::string &host, int port, int32_t rank,
                        int listensAt);

  const zero_rt_tcp_options &options;
  int64_t timeoutMs;
  Deadline deadline;
};

} // namespace

Meeting::Meeting(const zero_rt_tcp_options &options)
    : sockets(size_t(options.ranks)), options(options),
      timeoutMs(options.timeout_ms ? options.timeout_ms : defaultTimeoutMs),
      deadline(std::chrono::steady_clock::now() +
               std::chrono::milliseconds(timeoutMs)) {}

/// Accepts all ranks from |first| on, and notes their addresses.
zero_rt_status Meeting::takeIn(Socket &listener, int32_t first,
                               std::vector<Address> *addresses) {
  int32_t count = options.ranks - first;
  while (count > 0) {
    std::string from;
    Socket socket = listener.accept(deadline, from);
    if (!socket) {
      std::vector<int32_t> missing;
      for (int32_t r = first; r < options.ranks; ++r)
        if (!sockets[size_t(r)])
          missing.push_back(r);
      Tag tag = {"tcp_group_create", nullptr, 0, 0, 0, 0};
      return fail(ZERO_RT_TIMEOUT, "%s",
                  describeMissing(tag, timeoutMs, missing).c_str());
    }
    // A process that sends another message is no rank. Ranks send at once.
    Hello hello;
    Deadline soon = std::min(deadline, std::chrono::steady_clock::now() +
                                           std::chrono::seconds(2));
    if (!socket.receiveAll(&hello, sizeof(hello), soon) || hello.magic != magic)
      continue;
    if (hello.ranks != options.ranks)
      return fail(ZERO_RT_MISMATCH,
                  "rank %d says that there are %d ranks, rank %d that there "
                  "are %d",
                  hello.rank, hello.ranks, options.rank, options.ranks);
    if (hello.rank < first || hello.rank >= options.ranks ||
        sockets[size_t(hello.rank)])
      return fail(ZERO_RT_MISMATCH, "two processes say that they are rank %d",
                  hello.rank);
    if (addresses) {
      Address &address = (*addresses)[size_t(hello.rank)];
      std::snprintf(address.host, sizeof(address.host), "%s", from.c_str());
      address.port = hello.port;
    }
    sockets[size_t(hello.rank)] = std::move(socket);
    --count;
  }
  return ZERO_RT_OK;
}

/// Connects to |rank|, and sends that this rank listens at |listensAt|.
zero_rt_status Meeting::callOn(const std::string &host, int port, int32_t rank,
                               int listensAt) {
  Socket &socket = sockets[size_t(rank)];
  ZERO_RT_TRY(socket.connect(host, port, deadline));
  Hello hello;
  hello.rank = options.rank;
  hello.ranks = options.ranks;
  hello.port = listensAt;
  if (!socket.sendAll(&hello, sizeof(hello), deadline))
    return fail(ZERO_RT_TIMEOUT, "rank %d at %s port %d hung up", rank,
                host.c_str(), port);
  return ZERO_RT_OK;
}

zero_rt_status Meeting::lead() {
  Socket listener;
  ZERO_RT_TRY(listener.listen(options.port));
  std::vector<Address> addresses(static_cast<size_t>(options.ranks));
  ZERO_RT_TRY(takeIn(listener, 1, &addresses));
  for (int32_t r = 1; r < options.ranks; ++r)
    if (!sockets[size_t(r)].sendAll(
            addresses.data(), addresses.size() * sizeof(Address), deadline))
      return fail(ZERO_RT_TIMEOUT, "rank %d hung up", r);
  return ZERO_RT_OK;
}

zero_rt_status Meeting::follow() {
  Socket listener;
  ZERO_RT_TRY(listener.listen(0));
  ZERO_RT_TRY(callOn(options.host, options.port, 0, listener.port()));
  std::vector<Address> addresses(static_cast<size_t>(options.ranks));
  if (!sockets[0].receiveAll(addresses.data(),
                             addresses.size() * sizeof(Address), deadline))
    return fail(ZERO_RT_TIMEOUT,
                "rank 0 at %s port %d did not say within %lld ms where the "
                "other ranks are",
                options.host, options.port, (long long)timeoutMs);
  for (int32_t r = 1; r < options.rank; ++r) {
    const Address &address = addresses[size_t(r)];
    ZERO_RT_TRY(callOn(address.host, address.port, r, 0));
  }
  return takeIn(listener, options.rank + 1, nullptr);
}

zero_rt_status Meeting::run() {
  if (options.ranks == 1)
    return ZERO_RT_OK;
  return options.rank == 0 ? lead() : follow();
}

static zero_rt_status checkOptions(const zero_rt_tcp_options &options) {
  if (options.ranks < 1 || options.ranks > mostRanks)
    return fail(ZERO_RT_INVALID_ARGUMENT,
                "options->ranks is %d, expected 1 to %d", options.ranks,
                mostRanks);
  if (options.rank < 0 || options.rank >= options.ranks)
    return fail(ZERO_RT_INVALID_ARGUMENT,
                "options->rank is %d, expected 0 to %d", options.rank,
                options.ranks - 1);
  if (options.port < 1 || options.port > 65535)
    return fail(ZERO_RT_INVALID_ARGUMENT,
                "options->port is %d, expected 1 to 65535", options.port);
  if (!std::memchr(options.host, 0, sizeof(options.host)) || !options.host[0])
    return fail(ZERO_RT_INVALID_ARGUMENT, "options->host is empty or too long");
  if (options.timeout_ms < 0)
    return fail(ZERO_RT_INVALID_ARGUMENT,
                "options->timeout_ms is %lld, expected at least 0",
                (long long)options.timeout_ms);
  return ZERO_RT_OK;
}

ZERO_RT_EXPORT zero_rt_status zero_rt_tcp_group_create(
    const zero_rt_tcp_options *options, zero_rt_group **out_group) {
  if (!out_group)
    return fail(ZERO_RT_INVALID_ARGUMENT, "out_group is null");
  *out_group = nullptr;
  ZERO_RT_TRY(checkStruct(options, "options"));
  ZERO_RT_TRY(checkOptions(*options));
  return guarded("zero_rt_tcp_group_create", [&]() -> zero_rt_status {
    Meeting meeting(*options);
    ZERO_RT_TRY(meeting.run());
    auto connections = std::make_unique<Connections>(
        options->rank, std::move(meeting.sockets));
    zero_rt_transport transport = Connections::makeTransport(connections.get());
    ZERO_RT_TRY(zero_rt_transport_group_create(&transport, out_group));
    connections.release();
    return ZERO_RT_OK;
  });
}
