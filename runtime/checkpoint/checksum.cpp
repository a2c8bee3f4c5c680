//===- checksum.cpp - Finds damaged bytes of a checkpoint -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "checkpoint/checksum.h"

#include <cstdio>
#include <new>

#define XXH_INLINE_ALL
#include <xxhash.h>

using namespace zero_rt;

static XXH3_state_t *xxhOf(void *state) {
  return static_cast<XXH3_state_t *>(state);
}

Checksum::Checksum() : state(XXH3_createState()) {
  if (!state)
    throw std::bad_alloc();
  XXH3_128bits_reset(xxhOf(state));
}

Checksum::~Checksum() { XXH3_freeState(xxhOf(state)); }

void Checksum::add(const void *data, size_t bytes) {
  XXH3_128bits_update(xxhOf(state), data, bytes);
}

std::string Checksum::text() const {
  XXH128_hash_t hash = XXH3_128bits_digest(xxhOf(state));
  char digits[checksumDigits + 1];
  std::snprintf(digits, sizeof(digits), "%016llx%016llx",
                (unsigned long long)hash.high64,
                (unsigned long long)hash.low64);
  return digits;
}

std::string Checksum::of(std::string_view bytes) {
  Checksum checksum;
  checksum.add(bytes.data(), bytes.size());
  return checksum.text();
}
