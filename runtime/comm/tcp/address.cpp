//===- address.cpp - Addresses of hosts -----------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "comm/tcp/address.h"

#include "core/status.h"

#include <algorithm>
#include <arpa/inet.h>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <ifaddrs.h>
#include <memory>
#include <mutex>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <set>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

using namespace zero_rt;

Address Address::of(const sockaddr *address) {
  Address result;
  if (address->sa_family == AF_INET) {
    sockaddr_in v4;
    std::memcpy(&v4, address, sizeof(v4));
    result.family = 4;
    std::memcpy(result.bytes.data() + 12, &v4.sin_addr, 4);
  } else if (address->sa_family == AF_INET6) {
    sockaddr_in6 v6;
    std::memcpy(&v6, address, sizeof(v6));
    // A socket for both families sees IPv4 as a part of IPv6.
    bool isV4 = IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr);
    result.family = isV4 ? 4 : 6;
    int first = isV4 ? 12 : 0;
    std::copy(v6.sin6_addr.s6_addr + first, v6.sin6_addr.s6_addr + 16,
              result.bytes.begin() + first);
  }
  return result;
}

Address Address::loopback() {
  Address result;
  result.family = 4;
  result.bytes[12] = 127;
  result.bytes[15] = 1;
  return result;
}

bool Address::isLoopback() const {
  if (family == 4)
    return bytes[12] == 127;
  return std::all_of(bytes.begin(), bytes.end() - 1,
                     [](unsigned char byte) { return byte == 0; }) &&
         bytes[15] == 1;
}

/// Of a sockaddr_in or sockaddr_in6.
static int32_t portOf(const sockaddr_storage &address) {
  // Both have it at the same place.
  sockaddr_in v4;
  std::memcpy(&v4, &address, sizeof(v4));
  return ntohs(v4.sin_port);
}

Path Path::of(int descriptor, bool connects) {
  sockaddr_storage near = {}, far = {};
  socklen_t bytes = sizeof(near);
  (void)::getsockname(descriptor, reinterpret_cast<sockaddr *>(&near), &bytes);
  bytes = sizeof(far);
  (void)::getpeername(descriptor, reinterpret_cast<sockaddr *>(&far), &bytes);
  if (!connects)
    std::swap(near, far);
  Path result;
  result.from = Address::of(reinterpret_cast<sockaddr *>(&near));
  result.to = Address::of(reinterpret_cast<sockaddr *>(&far));
  result.fromPort = portOf(near);
  result.toPort = portOf(far);
  if (result.to.isLoopback())
    result.machine = findMachine();
  return result;
}

socklen_t Address::fill(sockaddr_storage &out, int port) const {
  out = {};
  if (family == 4) {
    sockaddr_in v4 = {};
    v4.sin_family = AF_INET;
    v4.sin_port = htons(uint16_t(port));
    std::memcpy(&v4.sin_addr, bytes.data() + 12, 4);
    std::memcpy(&out, &v4, sizeof(v4));
    return sizeof(v4);
  }
  sockaddr_in6 v6 = {};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(uint16_t(port));
  std::memcpy(&v6.sin6_addr, bytes.data(), 16);
  std::memcpy(&out, &v6, sizeof(v6));
  return sizeof(v6);
}

std::string Address::text() const {
  char text[INET6_ADDRSTRLEN] = "";
  ::inet_ntop(family == 4 ? AF_INET : AF_INET6,
              bytes.data() + (family == 4 ? 12 : 0), text, sizeof(text));
  return text;
}

namespace {

/// A look-up, which may take longer than anybody waits for it.
struct Lookup {
  std::mutex mutex;
  std::condition_variable changed;
  bool isDone = false;
  int code = 0;
  std::vector<Address> found;
};

} // namespace

static int lookUp(const char *host, int flags, std::vector<Address> &out) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo *found = nullptr;
  if (int code = ::getaddrinfo(host, nullptr, &hints, &found))
    return code;
  for (addrinfo *one = found; one; one = one->ai_next) {
    Address address = Address::of(one->ai_addr);
    if (address.family)
      out.push_back(address);
  }
  ::freeaddrinfo(found);
  return out.empty() ? EAI_NONAME : 0;
}

zero_rt_status zero_rt::resolve(const std::string &host, Deadline deadline,
                                std::vector<Address> &out) {
  if (lookUp(host.c_str(), AI_NUMERICHOST, out) == 0)
    return ZERO_RT_OK;
  // getaddrinfo has no deadline, so a thread calls it, and nobody joins it.
  auto lookup = std::make_shared<Lookup>();
  std::thread([lookup, host] {
    std::vector<Address> found;
    int code = EAI_MEMORY;
    (void)guarded("resolve", [&]() -> zero_rt_status {
      code = lookUp(host.c_str(), 0, found);
      return ZERO_RT_OK;
    });
    std::lock_guard<std::mutex> lock(lookup->mutex);
    lookup->code = code;
    lookup->found = std::move(found);
    lookup->isDone = true;
    lookup->changed.notify_all();
  }).detach();
  std::unique_lock<std::mutex> lock(lookup->mutex);
  if (!lookup->changed.wait_until(lock, deadline,
                                  [&] { return lookup->isDone; }))
    return fail(ZERO_RT_TIMEOUT, "cannot find host '%s' in time", host.c_str());
  if (lookup->code)
    return fail(ZERO_RT_INVALID_ARGUMENT, "cannot find host '%s': %s",
                host.c_str(), ::gai_strerror(lookup->code));
  out = lookup->found;
  return ZERO_RT_OK;
}

/// Calls |function| with the name and the address of each interface that is up.
template <typename Function> static void visitInterfaces(Function function) {
  ifaddrs *interfaces = nullptr;
  if (::getifaddrs(&interfaces))
    return;
  for (ifaddrs *one = interfaces; one; one = one->ifa_next) {
    if (!one->ifa_addr || !(one->ifa_flags & IFF_UP))
      continue;
    Address address = Address::of(one->ifa_addr);
    // The name of an address of IPv4 may have a label: "eth0:1".
    std::string name(one->ifa_name, std::strcspn(one->ifa_name, ":"));
    if (address.family)
      function(name, address);
  }
  ::freeifaddrs(interfaces);
}

/// Whether other machines may find |address|.
static bool isOfNetwork(const Address &address) {
  // fe80:: is of one link only.
  bool isOfLink = address.family == 6 && address.bytes[0] == 0xfe &&
                  (address.bytes[1] & 0xc0) == 0x80;
  return !address.isLoopback() && !isOfLink;
}

std::vector<Address> zero_rt::findOwnAddresses() {
  std::vector<Address> result;
  visitInterfaces([&](const std::string &, const Address &address) {
    if (isOfNetwork(address))
      result.push_back(address);
  });
  return result;
}

zero_rt_status zero_rt::findAddressesOf(const std::string &interface,
                                        std::vector<Address> &out) {
  out.clear();
  bool isLoopback = false;
  std::set<std::string> names;
  visitInterfaces([&](const std::string &name, const Address &address) {
    isLoopback |= name == interface && address.isLoopback();
    if (!isOfNetwork(address))
      return;
    names.insert(name);
    if (name == interface)
      out.push_back(address);
  });
  // All ranks may be on this machine.
  if (isLoopback || !out.empty())
    return ZERO_RT_OK;
  std::string known;
  for (const std::string &name : names)
    known += (known.empty() ? "" : ", ") + name;
  return fail(ZERO_RT_INVALID_ARGUMENT,
              "options->network_interface is '%s', which has no address that "
              "other machines can reach; interfaces with one: %s",
              interface.c_str(), known.empty() ? "none" : known.c_str());
}

std::array<unsigned char, 16> zero_rt::findMachine() {
  std::array<unsigned char, 16> result = {};
  // Without an allocation, which may fail.
  char text[64] = "";
  Socket file(::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
  if (!file || ::read(file.get(), text, sizeof(text) - 1) <= 0)
    return result;
  struct stat space = {};
  if (::stat("/proc/self/ns/net", &space))
    return result;
  size_t digits = 0;
  for (const char *c = text; *c && digits < 32; ++c) {
    unsigned digit = 0;
    if (std::sscanf(std::string(1, *c).c_str(), "%1x", &digit) == 1)
      result[digits++ / 2] |= (unsigned char)(digits % 2 ? digit : digit << 4);
  }
  const uint64_t number[] = {space.st_ino, space.st_dev};
  const auto *bytes = reinterpret_cast<const unsigned char *>(number);
  for (size_t i = 0; i < result.size(); ++i)
    result[i] ^= bytes[i];
  return result;
}
