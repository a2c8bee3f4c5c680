//===- socket.cpp - A connection that is being made -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "comm/tcp/socket.h"

#include "core/status.h"

#include <arpa/inet.h>
#include <cerrno>
#include <cstring>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

using namespace zero_rt;

Socket::~Socket() {
  if (descriptor >= 0)
    ::close(descriptor);
}

/// Messages are short, so they are not delayed. No call blocks once ranks are
/// connected.
static void prepare(int descriptor) {
  int on = 1;
  ::setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

static zero_rt_status failed(const char *what, int port) {
  return fail(ZERO_RT_INTERNAL, "cannot %s at port %d: %s", what, port,
              std::strerror(errno));
}

zero_rt_status Socket::listen(int port) {
  // Both IPv6 and IPv4 where there are both.
  int family = AF_INET6;
  descriptor = ::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (descriptor < 0) {
    family = AF_INET;
    descriptor =
        ::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  }
  if (descriptor < 0)
    return failed("listen", port);
  int on = 1, off = 0;
  ::setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  sockaddr_storage address = {};
  socklen_t size;
  if (family == AF_INET6) {
    ::setsockopt(descriptor, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
    auto *v6 = reinterpret_cast<sockaddr_in6 *>(&address);
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(uint16_t(port));
    size = sizeof(*v6);
  } else {
    auto *v4 = reinterpret_cast<sockaddr_in *>(&address);
    v4->sin_family = AF_INET;
    v4->sin_port = htons(uint16_t(port));
    size = sizeof(*v4);
  }
  if (::bind(descriptor, reinterpret_cast<sockaddr *>(&address), size) ||
      ::listen(descriptor, SOMAXCONN))
    return failed("listen", port);
  return ZERO_RT_OK;
}

int Socket::port() const {
  sockaddr_storage address = {};
  socklen_t size = sizeof(address);
  ::getsockname(descriptor, reinterpret_cast<sockaddr *>(&address), &size);
  // Both address families have the port at the same place.
  return ntohs(reinterpret_cast<sockaddr_in *>(&address)->sin_port);
}

bool Socket::waitFor(short events, Deadline deadline) {
  while (true) {
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
                    deadline - std::chrono::steady_clock::now())
                    .count();
    pollfd entry = {descriptor, events, 0};
    int ready =
        ::poll(&entry, 1, left > 0 ? int(std::min<long>(left, 60000)) : 0);
    if (ready > 0)
      return true;
    if (ready < 0 && errno != EINTR)
      return false;
    if (ready == 0 && left <= 0)
      return false;
  }
}

Socket Socket::accept(Deadline deadline, std::string &outAddress) {
  while (waitFor(POLLIN, deadline)) {
    sockaddr_storage address = {};
    socklen_t size = sizeof(address);
    Socket peer(::accept4(descriptor, reinterpret_cast<sockaddr *>(&address),
                          &size, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!peer)
      continue; // it gave up in the meantime
    prepare(peer.get());
    char text[NI_MAXHOST] = {};
    ::getnameinfo(reinterpret_cast<sockaddr *>(&address), size, text,
                  sizeof(text), nullptr, 0, NI_NUMERICHOST);
    outAddress = text;
    return peer;
  }
  return Socket();
}

zero_rt_status Socket::connect(const std::string &host, int port,
                               Deadline deadline) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo *found = nullptr;
  if (int code = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(),
                               &hints, &found))
    return fail(ZERO_RT_INVALID_ARGUMENT, "cannot find host '%s': %s",
                host.c_str(), ::gai_strerror(code));
  std::string why = "timeout";
  do {
    for (addrinfo *one = found; one; one = one->ai_next) {
      Socket socket(::socket(one->ai_family,
                             SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
      if (!socket)
        continue;
      int error = 0;
      socklen_t size = sizeof(error);
      if (::connect(socket.get(), one->ai_addr, one->ai_addrlen)) {
        error = errno;
        if (error == EINPROGRESS && socket.waitFor(POLLOUT, deadline))
          ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size);
      }
      if (error == 0) {
        prepare(socket.get());
        *this = std::move(socket);
        ::freeaddrinfo(found);
        return ZERO_RT_OK;
      }
      why = std::strerror(error);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  } while (std::chrono::steady_clock::now() < deadline);
  ::freeaddrinfo(found);
  return fail(ZERO_RT_TIMEOUT, "nobody listens at %s port %d: %s", host.c_str(),
              port, why.c_str());
}

bool Socket::sendAll(const void *data, size_t bytes, Deadline deadline) {
  auto *from = static_cast<const char *>(data);
  while (bytes) {
    ssize_t done = ::send(descriptor, from, bytes, MSG_NOSIGNAL);
    if (done < 0 && errno != EAGAIN && errno != EINTR)
      return false;
    if (done < 0 && !waitFor(POLLOUT, deadline))
      return false;
    from += done > 0 ? done : 0;
    bytes -= size_t(done > 0 ? done : 0);
  }
  return true;
}

bool Socket::receiveAll(void *data, size_t bytes, Deadline deadline) {
  auto *to = static_cast<char *>(data);
  while (bytes) {
    ssize_t done = ::recv(descriptor, to, bytes, 0);
    if (done == 0 || (done < 0 && errno != EAGAIN && errno != EINTR))
      return false;
    if (done < 0 && !waitFor(POLLIN, deadline))
      return false;
    to += done > 0 ? done : 0;
    bytes -= size_t(done > 0 ? done : 0);
  }
  return true;
}
