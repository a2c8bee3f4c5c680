//===- status.h - Status codes and messages of the runtime ------*- C -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every call of the C ABI returns a zero_rt_status. The runtime reports
// failures in no other way: it throws no exception, does not abort, and writes
// nothing to stderr. Exception: a warning about a job without a secret (tcp.h).
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_STATUS_H
#define ZERO_RT_STATUS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// The result of a call: ZERO_RT_OK or one of the codes below. The numbers are
/// part of the ABI and are never reused.
typedef int32_t zero_rt_status;

enum {
  ZERO_RT_OK = 0,
  /// An argument is out of range, null, of another dtype or another size.
  ZERO_RT_INVALID_ARGUMENT = 1,
  /// The protocol does not allow this call in the present state of the step.
  ZERO_RT_PROTOCOL = 2,
  /// All ranks refused the step because a gradient that is not optional did not
  /// arrive on some rank. The state is unchanged.
  ZERO_RT_MISSING_GRADIENT = 3,
  /// All ranks refused the step because a gradient was not finite and the step
  /// says `nonfinite = error`. The state is unchanged.
  ZERO_RT_NONFINITE = 4,
  /// Ranks disagree about the plan, a collective or the number of backward
  /// passes.
  ZERO_RT_MISMATCH = 5,
  /// A collective did not finish in time. The message names the ranks that did
  /// not come.
  ZERO_RT_TIMEOUT = 6,
  /// An earlier call left the step unusable. Only destroy is allowed.
  ZERO_RT_POISONED = 7,
  ZERO_RT_OUT_OF_MEMORY = 8,
  /// This machine or this runtime lacks something that the library needs, such
  /// as a CPU feature or an ABI version.
  ZERO_RT_UNSUPPORTED = 9,
  /// A bug in the runtime or in generated code.
  ZERO_RT_INTERNAL = 10,
  /// The device or its driver failed, for example in a launch, a copy or an
  /// invalid memory access. The message names the call of the driver and its
  /// error.
  ZERO_RT_DEVICE_FAILED = 11
};

/// The name of |status| in lower case, for example "protocol". The string is
/// static and never null.
const char *zero_rt_status_name(zero_rt_status status);

/// Why the last failing call on this thread failed, or why a step was skipped
/// (see find_nonfinite). The message is one sentence in lower case, without a
/// final period. It is never null, and valid until the next call of this
/// runtime on the same thread. Exception: a call with a null step or runtime
/// returns invalid_argument and keeps the message of the call before.
const char *zero_rt_message(void);

#ifdef __cplusplus
} // extern "C"
#endif

#endif // ZERO_RT_STATUS_H
