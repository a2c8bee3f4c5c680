//===- Assembly.h - Custom directives of the assembly format ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// parseX/printX for each custom<X> in the op definitions, for the generated
// code in ZeroDialect.cpp.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_DIALECT_ZERO_ASSEMBLY_H
#define ZERO_DIALECT_ZERO_ASSEMBLY_H

#include "dialect/zero/ZeroDialect.h"

namespace zero {

/// `"pp" = 1, "dp" = 4`
mlir::ParseResult parseMeshAxes(mlir::OpAsmParser &parser,
                                mlir::ArrayAttr &axes);
void printMeshAxes(mlir::OpAsmPrinter &printer, mlir::Operation *op,
                   mlir::ArrayAttr axes);

/// (`flattened` `[` `"dp" = ["edp", "ep"]` ... `]`)?
mlir::ParseResult parseFlattenedAxesList(mlir::OpAsmParser &parser,
                                         mlir::ArrayAttr &flattened);
void printFlattenedAxesList(mlir::OpAsmPrinter &printer, mlir::Operation *op,
                            mlir::ArrayAttr flattened);

/// `64x64xbf16, sharded = [tp]`: a !zero.value without its brackets.
mlir::ParseResult parsePlacedType(mlir::OpAsmParser &parser,
                                  mlir::TypeAttr &type);
void printPlacedType(mlir::OpAsmPrinter &printer, mlir::Operation *op,
                     mlir::TypeAttr type);

/// A region whose names are its own. The parser would otherwise give its block
/// arguments to operations outside that use their names before they are known,
/// and these would keep them where the region does not parse.
mlir::ParseResult parseOwnNames(mlir::OpAsmParser &parser,
                                mlir::Region &region);
void printOwnNames(mlir::OpAsmPrinter &printer, mlir::Operation *op,
                   mlir::Region &region);

/// `2`, or `any`
mlir::ParseResult parseUses(mlir::OpAsmParser &parser, mlir::IntegerAttr &uses);
void printUses(mlir::OpAsmPrinter &printer, mlir::Operation *op,
               mlir::IntegerAttr uses);

/// `a`, or `"a b"`
mlir::ParseResult parseName(mlir::OpAsmParser &parser, mlir::StringAttr &name);
void printName(mlir::OpAsmPrinter &printer, mlir::Operation *op,
               mlir::StringAttr name);

/// `[a, b]`
mlir::ParseResult parseNameList(mlir::OpAsmParser &parser,
                                mlir::ArrayAttr &names);
void printNameList(mlir::OpAsmPrinter &printer, mlir::Operation *op,
                   mlir::ArrayAttr names);

/// `@a, @b`
mlir::ParseResult parseSymbolList(mlir::OpAsmParser &parser,
                                  mlir::ArrayAttr &symbols);
void printSymbolList(mlir::OpAsmPrinter &printer, mlir::Operation *op,
                     mlir::ArrayAttr symbols);

/// `(accumulation : -1, dp : -1)`
mlir::ParseResult parseScaleList(mlir::OpAsmParser &parser, ScaleAttr &scale);
void printScaleList(mlir::OpAsmPrinter &printer, mlir::Operation *op,
                    ScaleAttr scale);

/// (`epsilon` real)?, 1e-6 if absent
mlir::ParseResult parseEpsilon(mlir::OpAsmParser &parser,
                               mlir::FloatAttr &epsilon);
void printEpsilon(mlir::OpAsmPrinter &printer, mlir::Operation *op,
                  mlir::FloatAttr epsilon);

/// A real number, spelled as a float or an integer.
mlir::ParseResult parseReal(mlir::OpAsmParser &parser, mlir::FloatAttr &number);
void printReal(mlir::OpAsmPrinter &printer, mlir::Operation *op,
               mlir::FloatAttr number);

/// `%x`, or a real number
mlir::ParseResult
parseValueOrReal(mlir::OpAsmParser &parser,
                 std::optional<mlir::OpAsmParser::UnresolvedOperand> &operand,
                 mlir::FloatAttr &number);
void printValueOrReal(mlir::OpAsmPrinter &printer, mlir::Operation *op,
                      mlir::Value value, mlir::FloatAttr number);

/// `[lr, beta1 = 0.9]`
mlir::ParseResult parseHyperNames(mlir::OpAsmParser &parser,
                                  mlir::ArrayAttr &names,
                                  mlir::DictionaryAttr &defaults);
void printHyperNames(mlir::OpAsmPrinter &printer, mlir::Operation *op,
                     mlir::ArrayAttr names, mlir::DictionaryAttr defaults);

/// (`counters` `[` `beta1_t = 1.0` ... `]`)?
mlir::ParseResult parseCounters(mlir::OpAsmParser &parser,
                                mlir::ArrayAttr &names,
                                mlir::DenseF64ArrayAttr &initial);
void printCounters(mlir::OpAsmPrinter &printer, mlir::Operation *op,
                   mlir::ArrayAttr names, mlir::DenseF64ArrayAttr initial);

/// (`state` `[m, v]`)?
mlir::ParseResult parseStateNames(mlir::OpAsmParser &parser,
                                  mlir::ArrayAttr &names);
void printStateNames(mlir::OpAsmPrinter &printer, mlir::Operation *op,
                     mlir::ArrayAttr names);

/// `by` `!zero.value<f64>`
mlir::ParseResult parseNormType(mlir::OpAsmParser &parser, mlir::Type &type);
void printNormType(mlir::OpAsmPrinter &printer, mlir::Operation *op,
                   mlir::Type type);

/// `(f64, f64)`, possibly empty
mlir::ParseResult parseTypeList(mlir::OpAsmParser &parser,
                                llvm::SmallVectorImpl<mlir::Type> &types);
void printTypeList(mlir::OpAsmPrinter &printer, mlir::Operation *op,
                   mlir::TypeRange types);

/// One type, which all of |operands| have.
mlir::ParseResult
parseTypeOfAll(mlir::OpAsmParser &parser,
               llvm::SmallVectorImpl<mlir::Type> &types,
               llvm::ArrayRef<mlir::OpAsmParser::UnresolvedOperand> operands);
void printTypeOfAll(mlir::OpAsmPrinter &printer, mlir::Operation *op,
                    mlir::TypeRange types, mlir::OperandRange operands);

/// `hyper` `(` `lr = %lr, wd = 0.1` `)`
mlir::ParseResult parseHyperArguments(
    mlir::OpAsmParser &parser,
    llvm::SmallVectorImpl<mlir::OpAsmParser::UnresolvedOperand> &operands,
    mlir::ArrayAttr &names, mlir::DictionaryAttr &constants);
void printHyperArguments(mlir::OpAsmPrinter &printer, mlir::Operation *op,
                         mlir::OperandRange operands, mlir::ArrayAttr names,
                         mlir::DictionaryAttr constants);

} // namespace zero

#endif // ZERO_DIALECT_ZERO_ASSEMBLY_H
