//===- checksum.h - Finds damaged bytes of a checkpoint ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_CHECKPOINT_CHECKSUM_H
#define ZERO_RT_CHECKPOINT_CHECKSUM_H

#include <string>
#include <string_view>

namespace zero_rt {

/// The digits of a checksum as text.
constexpr size_t checksumDigits = 32;

/// XXH3 with 128 bits, of bytes that come one piece after the other. It finds
/// damage, and is no protection against an attacker.
class Checksum {
public:
  Checksum();
  ~Checksum();
  Checksum(const Checksum &) = delete;
  Checksum &operator=(const Checksum &) = delete;

  void add(const void *data, size_t bytes);
  /// As `xxhsum -H2` prints it.
  std::string text() const;

  static std::string of(std::string_view bytes);

private:
  void *state; // XXH3_state_t, whose name xxhash.h chooses
};

} // namespace zero_rt

#endif // ZERO_RT_CHECKPOINT_CHECKSUM_H
