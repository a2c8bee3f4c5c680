//===- HandlerCalls.h - One zrt op, one call of the runtime -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_CODEGEN_HOST_HANDLERCALLS_H
#define ZERO_CODEGEN_HOST_HANDLERCALLS_H

#include "codegen/host/Tables.h"

namespace zero {

/// The calls of all handlers as numbers, which CallRunner.h explains.
struct HandlerCalls {
  std::vector<int64_t> words;
  std::vector<int32_t> lists;
  std::vector<zero_rt_handler_row> rows; // by handler
};

/// The calls of the handlers of |program|, whose symbols have rows in |tables|.
HandlerCalls buildHandlerCalls(zrt::ProgramOp program, const Tables &tables);

} // namespace zero

#endif // ZERO_CODEGEN_HOST_HANDLERCALLS_H
