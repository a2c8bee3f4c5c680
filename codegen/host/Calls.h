//===- Calls.h - The calls of handlers, from their C prototypes -*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_CODEGEN_HOST_CALLS_H
#define ZERO_CODEGEN_HOST_CALLS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>

namespace zero {

/// A row of the runtime's table of calls that handlers call.
enum class Call {
#define ZERO_RT_PROGRAM_CALL(NAME, ARGUMENTS) NAME,
#include "zero_rt/calls.def"
};

/// The number of rows.
inline constexpr size_t kNumCalls = 0
#define ZERO_RT_PROGRAM_CALL(NAME, ARGUMENTS) +1
#include "zero_rt/calls.def"
    ;

/// The call of |name|.
Call getProgramCall(llvm::StringRef name);

/// What an argument of a call is.
enum class ArgumentForm {
  step,
  event, ///< the event that runs the handler
  list,  ///< the address of numbers of 32 bits
  number32,
  number64,
};

/// Whether the table of calls has a number for an argument.
inline bool isInTable(ArgumentForm form) {
  return form != ArgumentForm::step && form != ArgumentForm::event;
}

/// The arguments of |call|, derived from its C prototype.
llvm::ArrayRef<ArgumentForm> getCallForms(Call call);

/// The offset of |call| in zero_rt_calls, in bytes.
int64_t getCallOffset(Call call);

} // namespace zero

#endif // ZERO_CODEGEN_HOST_CALLS_H
