//===- tcp_group.cpp - Process groups over TCP ----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "comm/communicator.h"
#include "comm/tcp/connections.h"
#include "comm/tcp/meeting.h"
#include "core/structs.h"
#include "zero_rt/tcp.h"

#include <atomic>
#include <cstdio>
#include <cstring>
#include <memory>
#include <sys/resource.h>

using namespace zero_rt;

/// Shorter secrets can be guessed from a recorded handshake.
static constexpr size_t leastSecret = 16;

static zero_rt_status checkOptions(const zero_rt_tcp_options &options) {
  if (options.ranks < 1 || options.ranks > mostRanks)
    return fail(ZERO_RT_INVALID_ARGUMENT,
                "options->ranks is %d, expected 1 to %d", options.ranks,
                mostRanks);
  rlimit files = {};
  getrlimit(RLIMIT_NOFILE, &files); // a connection to each other rank
  if (files.rlim_cur < rlim_t(options.ranks))
    return fail(ZERO_RT_INVALID_ARGUMENT,
                "options->ranks is %d, and this process may open %llu files; "
                "raise the limit with ulimit -n",
                options.ranks, (unsigned long long)files.rlim_cur);
  if (options.rank < 0 || options.rank >= options.ranks)
    return fail(ZERO_RT_INVALID_ARGUMENT,
                "options->rank is %d, expected 0 to %d", options.rank,
                options.ranks - 1);
  if (options.port < 1 || options.port > 65535)
    return fail(ZERO_RT_INVALID_ARGUMENT,
                "options->port is %d, expected 1 to 65535; zero_rt_tcp_listen "
                "finds a free one",
                options.port);
  if (!std::memchr(options.host, 0, sizeof(options.host)) || !options.host[0])
    return fail(ZERO_RT_INVALID_ARGUMENT, "options->host is empty or too long");
  if (!std::memchr(options.job, 0, sizeof(options.job)))
    return fail(ZERO_RT_INVALID_ARGUMENT, "options->job is too long");
  if (!std::memchr(options.secret, 0, sizeof(options.secret)))
    return fail(ZERO_RT_INVALID_ARGUMENT, "options->secret is too long");
  if (!std::memchr(options.network_interface, 0,
                   sizeof(options.network_interface)))
    return fail(ZERO_RT_INVALID_ARGUMENT,
                "options->network_interface is too long");
  size_t secret = std::strlen(options.secret);
  if (options.network_interface[0] && secret == 0)
    return fail(ZERO_RT_INVALID_ARGUMENT,
                "options->network_interface is '%s', and without a secret "
                "ranks speak over loopback only; set ZERO_RT_SECRET_FILE or "
                "ZERO_RT_SECRET",
                options.network_interface);
  if (secret > 0 && secret < leastSecret)
    return fail(ZERO_RT_INVALID_ARGUMENT,
                "options->secret has %zu characters, expected at least %zu",
                secret, leastSecret);
  std::vector<Address> addresses;
  if (options.network_interface[0])
    ZERO_RT_TRY(findAddressesOf(options.network_interface, addresses));
  const Crypto *crypto = nullptr;
  if (secret > 0)
    ZERO_RT_TRY(getCrypto(&crypto));
  if (options.timeout_ms < 0)
    return fail(ZERO_RT_INVALID_ARGUMENT,
                "options->timeout_ms is %lld, expected at least 0",
                (long long)options.timeout_ms);
  return ZERO_RT_OK;
}

/// Warns once in a process.
static void warnOfNoSecret() {
  static std::atomic<bool> hasWarned{false};
  if (!hasWarned.exchange(true))
    (void)std::fprintf(
        stderr, "warning: zero_rt_tcp_group_create without a secret: any "
                "process of this machine can join; set ZERO_RT_SECRET_FILE or "
                "ZERO_RT_SECRET\n");
}

ZERO_RT_EXPORT zero_rt_status zero_rt_tcp_listen(zero_rt_tcp_options *options) {
  zero_rt_tcp_options checked;
  ZERO_RT_TRY(readStruct(options, "options", checked));
  if (options->rank != 0)
    return fail(ZERO_RT_INVALID_ARGUMENT,
                "options->rank is %d: only rank 0 has a port that others know",
                options->rank);
  checked.port = checked.port ? checked.port : 1;
  ZERO_RT_TRY(checkOptions(checked));
  return guarded("zero_rt_tcp_listen", [&]() -> zero_rt_status {
    Address loopback = Address::loopback();
    Socket socket;
    ZERO_RT_TRY(
        socket.listen(options->secret[0] ? nullptr : &loopback, options->port));
    options->port = socket.port();
    options->listener = socket.release();
    return ZERO_RT_OK;
  });
}

ZERO_RT_EXPORT zero_rt_status zero_rt_tcp_group_create(
    const zero_rt_tcp_options *options, zero_rt_group **out_group) {
  if (!out_group)
    return fail(ZERO_RT_INVALID_ARGUMENT, "out_group is null");
  *out_group = nullptr;
  zero_rt_tcp_options given;
  ZERO_RT_TRY(readStruct(options, "options", given));
  Socket listener(given.listener > 0 ? given.listener : -1);
  ZERO_RT_TRY(checkOptions(given));
  if (!given.secret[0] && given.ranks > 1 && given.rank == 0)
    warnOfNoSecret();
  std::unique_ptr<Meeting> meeting;
  std::unique_ptr<Connections> connections;
  const char *name = "zero_rt_tcp_group_create";
  zero_rt_status status = guarded(name, [&]() -> zero_rt_status {
    meeting = std::make_unique<Meeting>(given, std::move(listener));
    ZERO_RT_TRY(meeting->meet());
    connections = std::make_unique<Connections>(given.rank, meeting->sockets);
    zero_rt_transport transport = Connections::makeTransport(connections.get());
    ZERO_RT_TRY(zero_rt_transport_group_create(&transport, out_group));
    connections.release();
    return ZERO_RT_OK;
  });
  if (meeting)
    status = guarded(name, [&] { return meeting->conclude(status); });
  if (status && *out_group) {
    std::string message = lastMessage();
    (void)zero_rt_group_destroy(std::exchange(*out_group, nullptr));
    return fail(status, "%s", message.c_str());
  }
  return status;
}
