//===- EachCall.h - Calls of the runtime by their ops -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_DIALECT_ZRT_EACHCALL_H
#define ZERO_DIALECT_ZRT_EACHCALL_H

#include "dialect/zrt/ZrtDialect.h"

namespace zrt {

template <typename... OpTs> struct OpList {};
using AllOps = OpList<
#define GET_OP_LIST
#include "dialect/zrt/ZrtOps.cpp.inc"
    >;

template <typename OpT>
constexpr bool isCall = OpT::template hasTrait<RuntimeCall::Trait>();

/// Visits |call| as an OpT, if that is what it is.
template <typename OpT, typename Fn>
bool visitAs(mlir::Operation *call, Fn &visit) {
  if constexpr (isCall<OpT>)
    if (auto op = llvm::dyn_cast<OpT>(call)) {
      visit(op);
      return true;
    }
  return false;
}

template <typename Fn, typename... OpTs>
void visitCall(RuntimeCall call, Fn &visit, OpList<OpTs...>) {
  (void)(visitAs<OpTs>(call, visit) || ...);
}

/// Visits |call| as the op that it is. |visit| takes each op that is a call of
/// the runtime. If it does not take one of them, it does not compile.
template <typename Fn> void visitCall(RuntimeCall call, Fn visit) {
  visitCall(call, visit, AllOps());
}

} // namespace zrt

#endif // ZERO_DIALECT_ZRT_EACHCALL_H
