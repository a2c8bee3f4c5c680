//===- LaidOutInterface.td - Parameters in a row -----------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_LAID_OUT_INTERFACE_TD
#define ZERO_LAID_OUT_INTERFACE_TD

include "mlir/IR/OpBase.td"

def Zero_LaidOut : OpInterface<"LaidOut"> {
  let description = [{
    Parameters laid out one behind the other. Offsets and extents count elements of a row.
  }];
  let cppNamespace = "::zero";
  let methods = [
    InterfaceMethod<"The type of all rows, with the pads.",
                    "::zero::ValueType", "getValueType">,
    InterfaceMethod<"The symbols of the parameters.",
                    "::mlir::ArrayAttr", "getMembers">,
    InterfaceMethod<"The first element of each parameter.",
                    "::llvm::ArrayRef<int64_t>", "getOffsets">,
    InterfaceMethod<"The elements of each parameter and its pad.",
                    "::llvm::ArrayRef<int64_t>", "getExtents">
  ];
  let extraSharedClassDeclaration = [{
    /// The elements of a row, pads included.
    int64_t getRowLength() { return $_op.getValueType().getShape().back(); }
  }];
}

#endif // ZERO_LAID_OUT_INTERFACE_TD
