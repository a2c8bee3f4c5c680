//===- socket.cpp - A connection that is being made -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "comm/tcp/socket.h"

#include "comm/tcp/address.h"
#include "core/status.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <unistd.h>

using namespace zero_rt;

bool zero_rt::waitFor(int descriptor, short events, Deadline deadline,
                      int watched) {
  while (true) {
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
                    deadline - std::chrono::steady_clock::now())
                    .count();
    pollfd entries[] = {{descriptor, events, 0}, {watched, POLLIN, 0}};
    int ready =
        ::poll(entries, 2, left > 0 ? int(std::min<long>(left, 60000)) : 0);
    if (ready > 0)
      return entries[0].revents != 0;
    if (ready < 0 && errno != EINTR)
      return false;
    if (ready == 0 && left <= 0)
      return false;
  }
}

bool zero_rt::sendAll(int descriptor, const void *data, size_t bytes,
                      Deadline deadline, int watched) {
  auto *from = static_cast<const char *>(data);
  while (bytes) {
    ssize_t done = ::send(descriptor, from, bytes, MSG_NOSIGNAL);
    if (done < 0 && errno != EAGAIN && errno != EINTR)
      return false;
    if (done < 0 && !waitFor(descriptor, POLLOUT, deadline, watched))
      return false;
    from += done > 0 ? done : 0;
    bytes -= size_t(done > 0 ? done : 0);
  }
  return true;
}

bool zero_rt::receiveAll(int descriptor, void *data, size_t bytes,
                         Deadline deadline, int watched) {
  auto *to = static_cast<char *>(data);
  while (bytes) {
    ssize_t done = ::recv(descriptor, to, bytes, 0);
    if (done == 0 || (done < 0 && errno != EAGAIN && errno != EINTR))
      return false;
    if (done < 0 && !waitFor(descriptor, POLLIN, deadline, watched))
      return false;
    to += done > 0 ? done : 0;
    bytes -= size_t(done > 0 ? done : 0);
  }
  return true;
}

bool zero_rt::hasHungUp(int descriptor) {
  char next;
  ssize_t got = ::recv(descriptor, &next, 1, MSG_PEEK | MSG_DONTWAIT);
  return got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
}

Socket::~Socket() {
  if (descriptor >= 0)
    ::close(descriptor);
}

/// Messages are short, so they are not delayed.
static void prepare(int descriptor) {
  int on = 1;
  ::setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

static Socket open(int family) {
  return Socket(
      ::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

/// Listens at |address|; errno says why it does not.
static Socket listenAt(const sockaddr_storage &address, socklen_t size) {
  Socket socket = open(address.ss_family);
  if (!socket)
    return socket;
  int on = 1, off = 0;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (address.ss_family == AF_INET6)
    ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
  if (::bind(socket.get(), reinterpret_cast<const sockaddr *>(&address),
             size) ||
      ::listen(socket.get(), SOMAXCONN)) {
    int why = errno;
    socket = Socket();
    errno = why;
  }
  return socket;
}

zero_rt_status Socket::listen(const Address *address, int port) {
  Address any;
  sockaddr_storage place;
  socklen_t size = 0;
  // IPv6 has IPv4, too. Some machines have IPv4 only, and say so in various
  // calls.
  for (int32_t family : {6, 4}) {
    any.family = family;
    size = (address ? address : &any)->fill(place, port);
    *this = listenAt(place, size);
    if (*this || address || errno == EADDRINUSE || errno == EACCES)
      break;
  }
  if (*this)
    return ZERO_RT_OK;
  return fail(ZERO_RT_INTERNAL, "cannot listen at port %d: %s", port,
              std::strerror(errno));
}

int Socket::port() const {
  sockaddr_storage address = {};
  socklen_t size = sizeof(address);
  ::getsockname(descriptor, reinterpret_cast<sockaddr *>(&address), &size);
  // Both address families have the port at the same place.
  return ntohs(reinterpret_cast<sockaddr_in *>(&address)->sin_port);
}

Socket Socket::accept() {
  Socket peer(
      ::accept4(descriptor, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (peer)
    prepare(peer.get());
  return peer;
}

bool Socket::connect(const Address &address, int port, Deadline deadline,
                     int watched, std::string &why) {
  sockaddr_storage place;
  socklen_t bytes = address.fill(place, port);
  Socket socket = open(place.ss_family);
  int error = socket ? 0 : errno;
  if (!error &&
      ::connect(socket.get(), reinterpret_cast<sockaddr *>(&place), bytes)) {
    error = errno;
    socklen_t size = sizeof(error);
    if (error == EINPROGRESS) {
      error = ETIMEDOUT;
      if (waitFor(socket.get(), POLLOUT, deadline, watched))
        ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    }
  }
  if (error) {
    why = std::strerror(error);
    return false;
  }
  prepare(socket.get());
  *this = std::move(socket);
  return true;
}
