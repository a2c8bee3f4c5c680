//===- ActivationOps.td - Tensors between pipeline stages --*- tablegen -*-===//
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
    For each micro-batch, the ranks at coordinate `from` send the activation to the ranks at
    `to`. The ranks at `to` send back its gradient, which has the same type. A rank sends to
    the rank that differs from it over this axis only. An activation of integers (token ids,
    a mask as i8) has no gradient.

    The caller runs the forward pass and chooses the order of micro-batches (GPipe, 1F1B,
    interleaved). The functions `send` and `receive` of the compiled step move the tensors.

    Both stages read the type here, so their types cannot differ. The compiled step checks
    what a caller passes before it sends anything. A tensor of static shape has no header. If
    an extent is `?`, the extents of each activation travel before its elements. The gradient
    must have the extents of its activation.

    Constraints:

    - `activation_c1`: elements are f16, bf16, f32, f64, i8, i32 or i64; the type has no
      encoding, at most 8 dimensions, and at most 2^40 elements (dimensions of extent `?`
      are not counted);
    - `activation_c2`: `from` and `to` differ and are not negative;
    - `activation_c3`: the mesh of each step of the module has the axis and both coordinates;
    - `activation_c4`: if one activation is over an axis, each coordinate of this axis sends
      or receives at least one.

    Example:

    ```mlir
    zero.activation @hidden : tensor<4x?x96xbf16> over pp from 0 to 1
    ```
  }];
  let arguments = (ins Zero_SymbolNameAttr:$sym_name, TypeAttrOf<AnyRankedTensor>:$type,
                       Zero_NameAttr:$axis, I64Attr:$from, I64Attr:$to);
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
