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
#include <sys/socket.h>
#include <utility>

namespace zero_rt {

using Deadline = std::chrono::steady_clock::time_point;
struct Address;

/// Waits until |descriptor| has one of |events|; false after the deadline, or
/// when |watched| can be read.
bool waitFor(int descriptor, short events, Deadline deadline, int watched = -1);

/// Whether all bytes were sent or received. Stops when |watched| can be read.
bool sendAll(int descriptor, const void *data, size_t bytes, Deadline deadline,
             int watched = -1);
bool receiveAll(int descriptor, void *data, size_t bytes, Deadline deadline,
                int watched = -1);

/// Whether the other end of a connection is closed, and nothing is left to
/// read.
bool hasHungUp(int descriptor);

/// Owns a file descriptor, in which no call blocks.
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
  int release() { return std::exchange(descriptor, -1); }
  explicit operator bool() const { return descriptor >= 0; }

  /// Listens at |address|, or at all addresses; port 0 is one that is free.
  zero_rt_status listen(const Address *address, int port);
  /// The port that it listens on.
  int port() const;
  /// A connection that waits, or null, with the reason in errno.
  Socket accept();
  /// Tries once. |why| is the reason of a failure.
  bool connect(const Address &address, int port, Deadline deadline, int watched,
               std::string &why);

private:
  int descriptor = -1;
};

} // namespace zero_rt

#endif // ZERO_RT_COMM_TCP_SOCKET_H
