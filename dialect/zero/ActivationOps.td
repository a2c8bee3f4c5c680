//===- ActivationOps.td - What pipeline stages send --------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_ACTIVATION_OPS_TD
#define ZERO_ACTIVATION_OPS_TD

include "mlir/IR/SymbolInterfaces.td"
include "dialect/zero/ZeroTypes.td"

def Zero_ActivationOp : Zero_Op<"activation", [Symbol]> {
  let summary = "A tensor that one pipeline stage sends to another";
  let description = [{
    For each micro-batch the ranks at coordinate `from` send the activation, and
    those at `to` send its gradient back, of the same type: each rank to the one
    that differs over the axis only. One of whole numbers (token ids, a mask as i8)
    has no gradient. The forward is the caller's, and so is the
    order of micro-batches (GPipe, 1F1B, interleaved); `send` and `receive` of the
    compiled step move the tensors.

    Both ends read the type here, so a mismatch between stages cannot be written,
    and what a caller passes is checked before it is sent. A tensor of static shape
    is sent without a header; where an extent is `?` the extents of each activation
    go before it, and those of its gradient must be the same.

    Constraints:

    - `activation_c1`: elements are f16, bf16, f32, f64, i8, i32 or i64; there is no
      encoding, and there are at most 8 dimensions and 2^40 elements, those of extent
      `?` aside;
    - `activation_c2`: `from` and `to` differ, and are not negative;
    - `activation_c3`: the axis and both coordinates are those of the mesh of each
      step of the module;
    - `activation_c4`: where one activation is over an axis, each coordinate of that
      axis sends or receives one.

    Example:

    ```mlir
    zero.activation @hidden : tensor<4x?x96xbf16> over pp from 0 to 1
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttrOf<AnyRankedTensor>:$type,
                       StrAttr:$axis, I64Attr:$from, I64Attr:$to);
  let assemblyFormat = [{
    $sym_name `:` $type `over` custom<Name>($axis) `from` $from `to` $to attr-dict
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// No op names an activation.
    bool canDiscardOnUseEmpty() { return false; }
    ::mlir::RankedTensorType getTensorType() {
      return ::llvm::cast<::mlir::RankedTensorType>(getType());
    }
  }];
}

#endif // ZERO_ACTIVATION_OPS_TD
