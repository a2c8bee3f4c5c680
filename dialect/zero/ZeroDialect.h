//===- ZeroDialect.h - The zero dialect: types, attributes, ops -*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_DIALECT_ZERO_ZERODIALECT_H
#define ZERO_DIALECT_ZERO_ZERODIALECT_H

#include "dialect/zero/Placement.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialect/zero/ZeroDialect.h.inc"
#include "dialect/zero/ZeroEnums.h.inc"

#define GET_TYPEDEF_CLASSES
#include "dialect/zero/ZeroTypes.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialect/zero/ZeroAttrs.h.inc"

namespace zero {

/// The order of communication. Collectives write this resource.
struct CommResource : mlir::SideEffects::Resource::Base<CommResource> {
  llvm::StringRef getName() final { return "zero.comm"; }
};

/// `accumulation : -1, loss_scale : 1` between the delimiters. Keeps
/// duplicates, so that a verifier can report them.
mlir::ParseResult parseScaleFactors(mlir::AsmParser &parser, Scale &scale,
                                    mlir::AsmParser::Delimiter delimiter);
/// The same. Refuses duplicates and exponents of zero.
mlir::ParseResult parseMonomial(mlir::AsmParser &parser, Scale &scale,
                                mlir::AsmParser::Delimiter delimiter);
void printScaleFactors(mlir::AsmPrinter &printer,
                       llvm::ArrayRef<ScaleFactor> scale);

/// The text between the angle brackets of a !zero.value.
mlir::ParseResult parseValueBody(mlir::AsmParser &parser, ValueType &type);
void printValueBody(mlir::AsmPrinter &printer, ValueType type);

} // namespace zero

#include "dialect/zero/CounterInterface.h.inc"
#include "dialect/zero/LaidOutInterface.h.inc"

#define GET_OP_CLASSES
#include "dialect/zero/ZeroOps.h.inc"

namespace zero {

/// The elements that a rank holds of |parameter|, a member of |layout|.
int64_t getNumHeld(LaidOut layout, ParameterOp parameter);

} // namespace zero

#endif // ZERO_DIALECT_ZERO_ZERODIALECT_H
