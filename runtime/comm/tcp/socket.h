//===- socket.h - A connection that is being made ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_COMM_TCP_SOCKET_H
#define ZERO_RT_COMM_TCP_SOCKET_H

#include "zero_rt/status.h"

#include <chrono>
#include <cstddef>
#include <string>
#include <utility>

namespace zero_rt {

using Deadline = std::chrono::steady_clock::time_point;

/// Owns a file descriptor. Functions block until the deadline.
class Socket {
public:
  Socket() = default;
  explicit Socket(int descriptor) : descriptor(descriptor) {}
  ~Socket();
  Socket(Socket &&other) noexcept
      : descriptor(std::exchange(other.descriptor, -1)) {}
  Socket &operator=(Socket &&other) noexcept {
    std::swap(descriptor, other.descriptor);
    return *this;
  }

  int get() const { return descriptor; }
  explicit operator bool() const { return descriptor >= 0; }

  /// Listens on all addresses; port 0 is one that is free.
  zero_rt_status listen(int port);
  /// The port that it listens on.
  int port() const;
  /// Null after the deadline.
  Socket accept(Deadline deadline, std::string &outAddress);
  /// Tries until the deadline, since the other side may not listen yet.
  zero_rt_status connect(const std::string &host, int port, Deadline deadline);
  /// Whether all bytes were sent or received.
  bool sendAll(const void *data, size_t bytes, Deadline deadline);
  bool receiveAll(void *data, size_t bytes, Deadline deadline);

private:
  bool waitFor(short events, Deadline deadline);
  int descriptor = -1;
};

} // namespace zero_rt

#endif // ZERO_RT_COMM_TCP_SOCKET_H
