//===- status.cpp - How this runtime reports failures ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "core/status.h"

#include <cstdarg>
#include <cstdio>
#include <cstring>

/// Fixed, so that reporting an error never allocates; longer text is cut.
static constexpr size_t messageSize = 1024;
static thread_local char message[messageSize] = "";

zero_rt_status zero_rt::fail(zero_rt_status code, const char *format, ...) {
  char text[messageSize];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  std::memcpy(message, text, sizeof(text));
  return code;
}

const char *zero_rt::lastMessage() { return message; }

ZERO_RT_EXPORT const char *zero_rt_message(void) { return message; }

ZERO_RT_EXPORT const char *zero_rt_status_name(zero_rt_status status) {
  switch (status) {
  case ZERO_RT_OK:
    return "ok";
  case ZERO_RT_INVALID_ARGUMENT:
    return "invalid_argument";
  case ZERO_RT_PROTOCOL:
    return "protocol";
  case ZERO_RT_MISSING_GRADIENT:
    return "missing_gradient";
  case ZERO_RT_NONFINITE:
    return "nonfinite";
  case ZERO_RT_MISMATCH:
    return "mismatch";
  case ZERO_RT_TIMEOUT:
    return "timeout";
  case ZERO_RT_POISONED:
    return "poisoned";
  case ZERO_RT_OUT_OF_MEMORY:
    return "out_of_memory";
  case ZERO_RT_UNSUPPORTED:
    return "unsupported";
  case ZERO_RT_DEVICE_FAILED:
    return "device_failed";
  case ZERO_RT_INTERNAL:
    return "internal";
  }
  return "unknown";
}
