//===- authentication.h - Proofs that a rank has the secret -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// HMAC-SHA256 of OpenSSL, which is loaded by dlopen: only jobs with a secret
// need it, and the build needs nothing of it.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_COMM_TCP_AUTHENTICATION_H
#define ZERO_RT_COMM_TCP_AUTHENTICATION_H

#include "zero_rt/status.h"

#include <array>
#include <cstddef>
#include <string>

struct evp_md_st; // of OpenSSL

namespace zero_rt {

using Digest = std::array<unsigned char, 32>;

/// The declarations of openssl/hmac.h and openssl/evp.h.
struct Crypto {
  using Algorithm = ::evp_md_st;
  const Algorithm *(*sha256)(void) = nullptr;
  unsigned char *(*hmac)(const Algorithm *algorithm, const void *key,
                         int keyBytes, const unsigned char *data, size_t bytes,
                         unsigned char *out, unsigned int *outBytes) = nullptr;
};

/// Loads the library once. Errors: unsupported (the message names the package).
zero_rt_status getCrypto(const Crypto **out);

/// The HMAC of |bytes| bytes with |secret|.
zero_rt_status authenticate(const std::string &secret, const void *data,
                            size_t bytes, Digest &out);

/// Whether the two are equal. Takes the same time wherever they differ.
bool isEqual(const Digest &one, const Digest &other);

/// Fills |out| with random bytes of the kernel.
zero_rt_status drawNonce(Digest &out);

/// Reads the secret in the file |path|, which other users must not be able to
/// read. Errors: invalid_argument.
zero_rt_status readSecret(const char *path, std::string &out);

} // namespace zero_rt

#endif // ZERO_RT_COMM_TCP_AUTHENTICATION_H
