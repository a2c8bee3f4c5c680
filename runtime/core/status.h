//===- status.h - How this runtime reports failures -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A failure has a status code and a thread-local message. Exceptions stop at
// `guarded` and never cross the C ABI.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_CORE_STATUS_H
#define ZERO_RT_CORE_STATUS_H

#include "zero_rt/abi.h"

#include <cstdint>
#include <new>

/// Marks a definition as part of the C ABI. All other symbols are hidden.
#define ZERO_RT_EXPORT extern "C" __attribute__((visibility("default")))

/// Leaves the enclosing function with the status of |EXPRESSION| if it failed.
#define ZERO_RT_TRY(EXPRESSION)                                                \
  do {                                                                         \
    if (zero_rt_status tryStatus = (EXPRESSION))                               \
      return tryStatus;                                                        \
  } while (false)

namespace zero_rt {

/// Stores the message of this thread and returns |code|. The arguments may
/// refer to the present message.
zero_rt_status fail(zero_rt_status code, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/// Whether |code|, which another process may have sent, is one of an error.
inline bool isError(int32_t code) {
  return code > ZERO_RT_OK && code <= ZERO_RT_DEVICE_FAILED;
}

/// The ending of a noun after |count|, for messages.
inline const char *plural(int64_t count) { return count == 1 ? "" : "s"; }

/// The message that the last `fail` on this thread stored.
const char *lastMessage();

/// Runs |body| and turns an exception of the standard library into a status.
template <typename Body>
zero_rt_status guarded(const char *name, Body &&body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc &) {
    return fail(ZERO_RT_OUT_OF_MEMORY, "%s: out of memory", name);
  } catch (...) {
    return fail(ZERO_RT_INTERNAL, "%s: unexpected exception", name);
  }
}

} // namespace zero_rt

#endif // ZERO_RT_CORE_STATUS_H
