//===- status.h - Status codes and messages of the runtime ------*- C -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every call of the C ABI returns a zero_rt_status. Nothing is reported in any
// other way: no exception, no abort, no text on stderr.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_STATUS_H
#define ZERO_RT_STATUS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// The result of a call: ZERO_RT_OK or one of the codes below. Numbers are part
/// of the ABI and never reused.
typedef int32_t zero_rt_status;

enum {
  ZERO_RT_OK = 0,
  /// An argument is out of range, null, of another dtype or another size.
  ZERO_RT_INVALID_ARGUMENT = 1,
  /// The protocol does not allow this call in the step's present state.
  ZERO_RT_PROTOCOL = 2,
  /// The step was refused on every rank: a gradient that is not optional never
  /// arrived on some rank. State is untouched.
  ZERO_RT_MISSING_GRADIENT = 3,
  /// The step was refused on every rank: a gradient was not finite and the step
  /// says `nonfinite = error`. State is untouched.
  ZERO_RT_NONFINITE = 4,
  /// Ranks disagree: another plan, another collective, another number of
  /// backward passes.
  ZERO_RT_MISMATCH = 5,
  /// A collective did not finish in time; the message names who did not come.
  ZERO_RT_TIMEOUT = 6,
  /// An earlier call left the step object unusable; only destroy is allowed.
  ZERO_RT_POISONED = 7,
  ZERO_RT_OUT_OF_MEMORY = 8,
  /// This machine or this runtime lacks something the library needs (a CPU
  /// feature, an ABI version).
  ZERO_RT_UNSUPPORTED = 9,
  /// A bug in the runtime or in generated code.
  ZERO_RT_INTERNAL = 10,
  /// The device or its driver failed: a launch, a copy, memory that it may not
  /// touch. The message names the driver's call and its error.
  ZERO_RT_DEVICE_FAILED = 11
};

/// The name of |status| in lower case, e.g. "protocol". Never null; the string
/// is static.
const char *zero_rt_status_name(zero_rt_status status);

/// A null step or runtime gives invalid_argument and leaves the message of the
/// call before. What went wrong in the last failing call on this thread, or why
/// a step was skipped (see find_nonfinite), one sentence, lower case, without a
/// final period. Never null. Valid until the next call of this runtime on the
/// same thread.
const char *zero_rt_message(void);

#ifdef __cplusplus
} // extern "C"
#endif

#endif // ZERO_RT_STATUS_H
