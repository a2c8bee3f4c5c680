//===- PlacedOps.cpp - Rules of values that move between memories ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/zero/ZeroDialect.h"

using namespace mlir;
using namespace zero;

LogicalResult TransferOp::inferReturnTypes(MLIRContext *,
                                           std::optional<Location> location,
                                           Adaptor adaptor,
                                           SmallVectorImpl<Type> &inferred) {
  auto type = cast<ValueType>(adaptor.getInput().getType());
  MemorySpace space = adaptor.getSpace();
  // transfer_c2
  if (type.isScalar())
    return emitOptionalError(location, "'", getOperationName(),
                             "' op operand is a scalar, which both sides read");
  // transfer_c1
  if (type.getSpace() == space)
    return emitOptionalError(
        location, "'", getOperationName(), "' op operand is on the ",
        stringifyMemorySpace(space), " already, got ", type);
  inferred.push_back(type.withSpace(space));
  return success();
}
