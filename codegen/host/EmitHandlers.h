//===- EmitHandlers.h - One zrt op, one call of the runtime -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_CODEGEN_HOST_EMITHANDLERS_H
#define ZERO_CODEGEN_HOST_EMITHANDLERS_H

#include "codegen/host/GlobalBuilder.h"
#include "codegen/host/Tables.h"

namespace zero {

/// The name of the function of |handler|.
std::string getHandlerName(zrt::HandlerOp handler,
                           const GlobalBuilder &globals);

/// Emits |handler| as a zero_rt_handler_fn, which makes its calls in order and
/// returns at the first failure.
void emitHandler(zrt::HandlerOp handler, const Tables &tables,
                 GlobalBuilder &globals);

} // namespace zero

#endif // ZERO_CODEGEN_HOST_EMITHANDLERS_H
