//===- Input.h - What the targets of the runtime share ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TEST_FUZZ_RUNTIME_INPUT_H
#define ZERO_TEST_FUZZ_RUNTIME_INPUT_H

#include "test/fuzz/Input.h"

#include "core/status.h"

namespace zero_rt::fuzz {

using zero_fuzz::InputFile;

inline void require(bool holds, const char *what) {
  zero_fuzz::require(holds, what, lastMessage());
}

/// Requires an answer that a damaged file may have.
inline void requireAnswer(zero_rt_status status) {
  require(status == ZERO_RT_OK || status == ZERO_RT_INVALID_ARGUMENT ||
              status == ZERO_RT_UNSUPPORTED,
          "ok, invalid_argument or unsupported");
}

} // namespace zero_rt::fuzz

#endif // ZERO_TEST_FUZZ_RUNTIME_INPUT_H
