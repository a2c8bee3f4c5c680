//===- ProgramBuilder.h - Adds symbols and calls to a program ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_PASSES_LOWER_PROGRAMBUILDER_H
#define ZERO_PASSES_LOWER_PROGRAMBUILDER_H

#include "dialect/zrt/ZrtDialect.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/STLExtras.h"

namespace zero {

/// Appends calls to one zrt.handler.
class HandlerBuilder {
public:
  explicit HandlerBuilder(zrt::HandlerOp handler)
      : builder(mlir::OpBuilder::atBlockEnd(&handler.getBody().front())),
        loc(handler.getLoc()) {}

  /// The location of the calls from here on. It begins as the location of the
  /// handler.
  void setLoc(mlir::Location from) { loc = from; }

  template <typename OpT, typename... Args> void call(Args &&...args) {
    if constexpr (llvm::is_detected<StreamOf, OpT>::value)
      // `zrt-schedule` may choose another stream.
      builder.create<OpT>(loc, std::forward<Args>(args)..., zrt::StreamAttr());
    else
      builder.create<OpT>(loc, std::forward<Args>(args)...);
  }

private:
  template <typename OpT>
  using StreamOf = decltype(std::declval<OpT>().getStreamAttr());

  mlir::OpBuilder builder;
  mlir::Location loc;
};

/// Creates the tables of a zrt.program; every function returns the symbol.
class ProgramBuilder {
public:
  explicit ProgramBuilder(zrt::ProgramOp program);

  mlir::FlatSymbolRefAttr slots(const llvm::Twine &name,
                                llvm::ArrayRef<double> initial);
  /// Slots that live across steps, one for each of |counters|. |rule| names a
  /// loss scale or schedule; without it the counters are those of an optimizer.
  mlir::FlatSymbolRefAttr lastingSlots(llvm::StringRef name,
                                       mlir::ArrayAttr counters,
                                       llvm::ArrayRef<double> initial,
                                       CounterRule rule = nullptr);
  /// The slot of an argument of the step.
  mlir::FlatSymbolRefAttr input(mlir::BlockArgument argument, bool isTokens,
                                mlir::StringAttr hyper, bool isPositive);
  /// A buffer for values of |type|, in its space.
  mlir::FlatSymbolRefAttr buffer(const llvm::Twine &name, ValueType type,
                                 zrt::Role role);
  /// Segments of |ends|, each with the slots |scalars|[|rows|[i]].
  mlir::FlatSymbolRefAttr
  segments(const llvm::Twine &name, llvm::ArrayRef<int64_t> ends,
           llvm::ArrayRef<int64_t> rows = {},
           llvm::ArrayRef<mlir::Attribute> scalars = {});
  zrt::HandlerOp handler(const llvm::Twine &name);
  mlir::FlatSymbolRefAttr sequence(const llvm::Twine &name,
                                   llvm::ArrayRef<mlir::Attribute> buckets,
                                   llvm::ArrayRef<mlir::Attribute> handlers);
  /// An empty scalar program.
  zrt::ScalarsOp scalarProgram(const llvm::Twine &name);

  /// A kernel that converts gradients of |arrival| type to |kept|. It
  /// overwrites the target or adds to it.
  mlir::FlatSymbolRefAttr storeKernel(mlir::Type arrival, mlir::Type kept);
  mlir::FlatSymbolRefAttr addKernel(mlir::Type arrival, mlir::Type kept);
  /// Sums squares of |type| elements in f64.
  mlir::FlatSymbolRefAttr squaresKernel(mlir::Type type);
  /// The fused update: gradient of |gradient| type, times a factor if |scaled|;
  /// master and state of |optimizer|; then the cast to |storage|, unless the
  /// parameters are the master weights. Scalars: outcome, factor, the
  /// optimizer's.
  mlir::FlatSymbolRefAttr updateKernel(OptimizerOp optimizer,
                                       mlir::Type gradient, mlir::Type storage,
                                       bool scaled);

  zrt::BufferOp getBuffer(mlir::FlatSymbolRefAttr symbol) {
    return symbols.lookup<zrt::BufferOp>(symbol.getValue());
  }
  mlir::Type getElementType(mlir::FlatSymbolRefAttr buffer) {
    return getBuffer(buffer).getValueType().getElementType();
  }
  zrt::HandlerOp getHandler(mlir::FlatSymbolRefAttr symbol) {
    return symbols.lookup<zrt::HandlerOp>(symbol.getValue());
  }
  mlir::OpBuilder &getBuilder() { return builder; }

  /// The location of everything that is created from here on.
  void setLoc(mlir::Location from) { loc = from; }
  mlir::Location getLoc() const { return loc; }

private:
  /// Appends |op| and makes its name unique.
  mlir::FlatSymbolRefAttr append(mlir::Operation *op);
  zrt::KernelOp kernel(llvm::StringRef name, llvm::ArrayRef<mlir::Type> types,
                       llvm::ArrayRef<zrt::Access> accesses, int64_t scalars,
                       bool predicated, bool sums);
  /// The kernel called |name|, if it exists.
  mlir::FlatSymbolRefAttr findKernel(llvm::StringRef name);

  zrt::ProgramOp program;
  mlir::OpBuilder builder;
  mlir::SymbolTable symbols;
  mlir::Location loc;
};

} // namespace zero

#endif // ZERO_PASSES_LOWER_PROGRAMBUILDER_H
