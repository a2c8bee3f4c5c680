//===- authentication.cpp - Proofs that a rank has the secret -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "comm/tcp/authentication.h"

#include "core/status.h"

#include <cerrno>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <mutex>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace zero_rt;

static zero_rt_status load(Crypto &crypto) {
  // The library is never closed, since it has state of threads.
  void *library = dlopen("libcrypto.so.3", RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return fail(ZERO_RT_UNSUPPORTED,
                "a secret needs OpenSSL 3, which cannot be loaded: %s; install "
                "the package libssl3 or openssl-libs",
                dlerror());
  crypto.sha256 =
      reinterpret_cast<decltype(crypto.sha256)>(dlsym(library, "EVP_sha256"));
  crypto.hmac = reinterpret_cast<decltype(crypto.hmac)>(dlsym(library, "HMAC"));
  if (!crypto.sha256 || !crypto.hmac)
    return fail(ZERO_RT_UNSUPPORTED,
                "libcrypto.so.3 has no EVP_sha256 or no HMAC");
  return ZERO_RT_OK;
}

zero_rt_status zero_rt::getCrypto(const Crypto **out) {
  static std::mutex mutex;
  static Crypto crypto;
  // After a failure the next caller tries again, and gets the message, too.
  std::lock_guard<std::mutex> lock(mutex);
  if (!crypto.hmac)
    ZERO_RT_TRY(load(crypto));
  *out = &crypto;
  return ZERO_RT_OK;
}

zero_rt_status zero_rt::authenticate(const std::string &secret,
                                     const void *data, size_t bytes,
                                     Digest &out) {
  const Crypto *crypto = nullptr;
  ZERO_RT_TRY(getCrypto(&crypto));
  unsigned int length = 0;
  if (!crypto->hmac(crypto->sha256(), secret.data(), int(secret.size()),
                    static_cast<const unsigned char *>(data), bytes, out.data(),
                    &length) ||
      length != out.size())
    return fail(ZERO_RT_INTERNAL, "OpenSSL computes no HMAC-SHA256");
  return ZERO_RT_OK;
}

bool zero_rt::isEqual(const Digest &one, const Digest &other) {
  volatile unsigned char difference = 0;
  for (size_t i = 0; i < one.size(); ++i)
    difference = difference | (one[i] ^ other[i]);
  return difference == 0;
}

zero_rt_status zero_rt::drawNonce(Digest &out) {
  if (::getrandom(out.data(), out.size(), 0) != ssize_t(out.size()))
    return fail(ZERO_RT_INTERNAL, "getrandom failed: %s", std::strerror(errno));
  return ZERO_RT_OK;
}

zero_rt_status zero_rt::readSecret(const char *path, std::string &out) {
  int file = ::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0)
    return fail(ZERO_RT_INVALID_ARGUMENT, "cannot read the secret in '%s': %s",
                path, std::strerror(errno));
  struct stat status = {};
  char text[4096];
  ssize_t bytes = ::fstat(file, &status) ? -1 : 0;
  if (bytes == 0 && S_ISREG(status.st_mode))
    bytes = ::read(file, text, sizeof(text));
  ::close(file);
  if (bytes < 0 || !S_ISREG(status.st_mode))
    return fail(ZERO_RT_INVALID_ARGUMENT,
                "cannot read the secret in '%s': it is no regular file", path);
  if (status.st_mode & 077)
    return fail(ZERO_RT_INVALID_ARGUMENT,
                "the secret in '%s' has mode %04o, so other users can read it; "
                "make that 0600",
                path, unsigned(status.st_mode & 07777));
  out.assign(text, size_t(bytes));
  out.erase(out.find_last_not_of("\r\n") + 1);
  return ZERO_RT_OK;
}
