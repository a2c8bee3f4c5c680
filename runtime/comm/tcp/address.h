//===- address.h - Addresses of hosts ---------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_COMM_TCP_ADDRESS_H
#define ZERO_RT_COMM_TCP_ADDRESS_H

#include "comm/tcp/socket.h"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace zero_rt {

/// An address as a message. IPv4 takes the last four bytes.
struct Address {
  int32_t family = 0; // 4 or 6; 0 means none
  std::array<unsigned char, 16> bytes = {};

  /// Of a sockaddr_in or sockaddr_in6; none of another one.
  static Address of(const sockaddr *address);
  static Address loopback();
  bool isLoopback() const;
  /// The address with |port|, and its length.
  socklen_t fill(sockaddr_storage &out, int port) const;
  std::string text() const;
  bool operator==(const Address &other) const {
    return family == other.family && bytes == other.bytes;
  }
};

/// The ends of a connection.
struct Path {
  Address from; // of the rank that connects
  Address to;
  int32_t fromPort = 0;
  int32_t toPort = 0;
  /// Of a connection over loopback: its addresses are those of others, too.
  std::array<unsigned char, 16> machine = {};

  /// As this process sees them.
  static Path of(int descriptor, bool connects);
  bool operator==(const Path &other) const {
    return from == other.from && to == other.to && fromPort == other.fromPort &&
           toPort == other.toPort && machine == other.machine;
  }
};

/// The addresses of |host|, which is a name or an address. Errors:
/// invalid_argument (there is no such host), timeout.
zero_rt_status resolve(const std::string &host, Deadline deadline,
                       std::vector<Address> &out);

/// The addresses at which other machines reach this machine; none if the system
/// does not list them.
std::vector<Address> findOwnAddresses();

/// Those of one network interface; none for loopback. Error: invalid_argument
/// (it has no such address; the message names the interfaces that have).
zero_rt_status findAddressesOf(const std::string &interface,
                               std::vector<Address> &out);

/// A number of this machine and its network namespace, until the machine starts
/// again; 0 if it is not known.
std::array<unsigned char, 16> findMachine();

} // namespace zero_rt

#endif // ZERO_RT_COMM_TCP_ADDRESS_H
