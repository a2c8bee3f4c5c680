//===- Row.h - Parameters one behind the other ------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_PASSES_LAYOUT_ROW_H
#define ZERO_PASSES_LAYOUT_ROW_H

#include "dialect/zero/ZeroDialect.h"

#include "mlir/IR/Builders.h"
#include "llvm/Support/MathExtras.h"

namespace zero {

/// Where a parameter may begin, in elements: one lane of every reduction, and a
/// cache line of the narrowest type.
inline constexpr int64_t kAlignment = 32;

/// Parameters one behind the other, in a row that each rank holds.
struct Row {
  llvm::SmallVector<ParameterOp> members;
  llvm::SmallVector<int64_t> offsets;
  llvm::SmallVector<int64_t> extents;
  int64_t elements = 0;

  static int64_t getExtent(ParameterOp parameter, MeshOp mesh) {
    return llvm::alignTo(mesh.getNumHeld(parameter.getValueType()), kAlignment);
  }
  void add(ParameterOp parameter, MeshOp mesh) {
    int64_t extent = getExtent(parameter, mesh);
    members.push_back(parameter);
    offsets.push_back(elements);
    extents.push_back(extent);
    elements += extent;
  }
  /// The last member takes the pad that makes the slices of all |owners| equal.
  /// A row is never empty, even if all its parameters are.
  void pad(int64_t owners) {
    int64_t padded =
        llvm::alignTo(std::max<int64_t>(elements, 1), owners * kAlignment);
    extents.back() += padded - elements;
    elements = padded;
  }
  mlir::ArrayAttr getMembers(mlir::OpBuilder &builder) const {
    return builder.getArrayAttr(
        llvm::map_to_vector(members, [](ParameterOp op) -> mlir::Attribute {
          return mlir::FlatSymbolRefAttr::get(op);
        }));
  }
  /// |type| with the elements of the row.
  ValueType withElements(ValueType type) const {
    llvm::SmallVector<int64_t> shape(type.getShape());
    shape.back() = elements;
    return type.withShape(shape);
  }
};

} // namespace zero

#endif // ZERO_PASSES_LAYOUT_ROW_H
