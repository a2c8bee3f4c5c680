//===- ZeroTypes.td - Types and attributes of zero ---------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TYPES_TD
#define ZERO_TYPES_TD

include "mlir/IR/AttrTypeBase.td"
include "dialect/zero/ZeroDialect.td"

def Zero_ValueType : TypeDef<Zero_Dialect, "Value"> {
  let mnemonic = "value";
  let summary = "A value over all ranks, with its placement and scale";
  let description = [{
    A float array that exists on the ranks of a mesh. The shape is *global*. Over each mesh
    axis, and over the axis of time `micro` (the backward passes of one step), the value has
    exactly one placement:

    - replicated (not listed): every rank holds the value;
    - `sharded = [dp]`: rank i holds slice i of dimension 0 (`[tp : 1]`: of dimension 1). If
      several axes shard one dimension, they do so in the order of the mesh, and the first
      axis has the largest slices;
    - `partial = [dp]`: the value is the sum of what the ranks hold (also `partial_max`,
      `partial_min`, `partial_or`);
    - `varying = [dp]`: the value differs per rank and is not an addend.

    An axis may also be `reduced`: autograd has already summed over this axis.
    `on = [pp : 0, pp : 3]` says that the value exists only at these coordinates.

    `scaled = [dp : 1, loss_scale : 1]` is a monomial. The value divided by this monomial is
    the value that the step declares. The square of a value has twice its exponents, and the
    root has half of them. The step says which `zero.loss_scale` `loss_scale` stands for. A
    type names no symbol, because passes that rename or erase symbols do not look into the
    types of results.

    `space = host` says that the value is in the memory of the host. All other values are in
    the memory of the device, where gradients arrive and collectives run.

    Constraints:

    - `value_c1`: the element type is f16, bf16, f32 or f64;
    - `value_c2`: an axis has one placement;
    - `value_c3`: the dimension of a sharded axis exists;
    - `value_c4`: no exponent is zero, and no scale symbol is listed twice;
    - `value_c5`: `micro` is not sharded, varying or reduced;
    - `value_c6`: a scalar has no space. Reason: host and device both read scalars;
    - `value_c7`: a reduced axis is sharded or replicated;
    - `value_c8`: a coordinate is listed once, and its axis is not sharded; if an axis has one
      coordinate only, the value is replicated over the axis;
    - `value_c9`: the value has at most 2^40 elements. Empty dimensions count as 1 here.

    Example:

    ```mlir
    !zero.value<64x64xf32, partial = [dp, micro], scaled = [loss_scale : 1]>
    ```
  }];
  let parameters = (ins
    ArrayRefParameter<"int64_t">:$shape,
    "::mlir::Type":$elementType,
    ArrayRefParameter<"::zero::AxisPlacement">:$placements,
    ArrayRefParameter<"::zero::AxisCoordinate">:$present,
    ArrayRefParameter<"::zero::ScaleFactor">:$scale,
    "::zero::MemorySpace":$space);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Sorts the lists into the one order in which equal types are equal.
    static ValueType getSorted(::mlir::MLIRContext *context,
                               ::llvm::ArrayRef<int64_t> shape,
                               ::mlir::Type elementType,
                               ::llvm::SmallVector<::zero::AxisPlacement> placements = {},
                               ::llvm::SmallVector<::zero::AxisCoordinate> present = {},
                               ::llvm::SmallVector<::zero::ScaleFactor> scale = {},
                               ::zero::MemorySpace space = ::zero::MemorySpace::device);

    /// Like getSorted. If the verifier fails, emits its error and returns null.
    static ValueType getSortedChecked(
        ::llvm::function_ref<::mlir::InFlightDiagnostic()> emitError,
        ::mlir::MLIRContext *context, ::llvm::ArrayRef<int64_t> shape,
        ::mlir::Type elementType,
        ::llvm::SmallVector<::zero::AxisPlacement> placements,
        ::llvm::SmallVector<::zero::AxisCoordinate> present,
        ::llvm::SmallVector<::zero::ScaleFactor> scale,
        ::zero::MemorySpace space);

    /// The placement over |axis|; replicated if it is not listed.
    ::zero::AxisPlacement getPlacement(::mlir::StringAttr axis) const;

    /// This type with another placement over one axis, element type, shape,
    /// scale or space.
    ValueType withPlacement(::zero::AxisPlacement placement) const;
    ValueType withElementType(::mlir::Type type) const;
    ValueType withShape(::llvm::ArrayRef<int64_t> shape) const;
    ValueType withScale(::llvm::ArrayRef<::zero::ScaleFactor> scale) const;
    ValueType withSpace(::zero::MemorySpace space) const;

    /// The axes with this kind of placement, in sorted order.
    ::llvm::SmallVector<::mlir::StringAttr> getAxes(::zero::PlacementKind kind) const;
    bool has(::zero::PlacementKind kind) const;
    /// The axes that shard dimension |dim|, in sorted order.
    ::llvm::SmallVector<::mlir::StringAttr> getAxesOfDim(int64_t dim) const;
    /// Whether a rank has the same row of this and of |other|: the shapes are
    /// equal, the pipeline stages are the same, and all dimensions but the last
    /// are sharded alike.
    bool hasRowsOf(ValueType other) const;
    bool isScaled() const { return !getScale().empty(); }
    bool isScaledBy(::llvm::StringRef symbol) const {
      return ::zero::getExponent(getScale(), symbol) != 0;
    }
    /// Whether a rank has the number itself or an addend of it: the value has no
    /// scale and is not that of one backward pass.
    bool isShare() const;
    /// The axes of its pipeline stages, in sorted order.
    ::llvm::SmallVector<::mlir::StringAttr> getStageAxes() const;
    /// The coordinates over |axis| at which the value exists; empty: all.
    ::llvm::SmallVector<int64_t> getCoordinates(::mlir::StringAttr axis) const;
    /// This type on every coordinate over |axis|, or on |coordinates| only.
    ValueType withoutStages(::mlir::StringAttr axis) const;
    ValueType withStages(::llvm::ArrayRef<::zero::AxisCoordinate> coordinates) const;
    /// Its stages: one coordinate for each axis of stages. One without
    /// coordinates if it is on all.
    ::llvm::SmallVector<::llvm::SmallVector<::zero::AxisCoordinate>> getStages() const;
    /// Whether it is on |stage|, a coordinate for some axes.
    bool isOnStage(::llvm::ArrayRef<::zero::AxisCoordinate> stage) const;
    /// The first of its stages: one coordinate for each axis of stages.
    ::llvm::SmallVector<::zero::AxisCoordinate> getFirstStage() const;
    bool isScalar() const { return getShape().empty(); }
    bool isOnHost() const { return getSpace() == ::zero::MemorySpace::host; }
    /// Equal placement over every axis, presence and space included.
    bool hasPlacementOf(ValueType other) const;
    int64_t getNumElements() const;
  }];
}

def Zero_ScaleAttr : AttrDef<Zero_Dialect, "Scale"> {
  let mnemonic = "scale";
  let summary = "A monomial in step symbols, e.g. `<accumulation : -1, dp : -1>`";
  let description = [{
    A product of powers of these symbols:

    - `accumulation`, the number of backward passes in this step;
    - the name of a mesh axis, which stands for its size;
    - `tokens`;
    - `loss_scale`, the loss scale of the step.

    An empty monomial is 1.

    Example:

    ```mlir
    #zero.scale<accumulation : -1, dp : -1>
    ```
  }];
  let parameters = (ins ArrayRefParameter<"::zero::ScaleFactor">:$factors);
  let hasCustomAssemblyFormat = 1;
}

def Zero_MeshAxisAttr : AttrDef<Zero_Dialect, "MeshAxis"> {
  let mnemonic = "axis";
  let summary = "A named axis of the mesh and its size";
  let description = [{
    `zero.mesh` writes its axes without `#zero.axis`.

    Example:

    ```mlir
    #zero.axis<"dp" = 4>
    ```
  }];
  let parameters = (ins "::mlir::StringAttr":$name, "int64_t":$size);
  // The page shows no C++ types in place of the syntax.
  let hasCustomAssemblyFormat = 1;
}

def Zero_FlattenedAxesAttr : AttrDef<Zero_Dialect, "FlattenedAxes"> {
  let mnemonic = "flattened";
  let summary = "A flattened axis: a name for several axes of the mesh together";
  let description = [{
    `zero.mesh` writes its flattened axes without `#zero.flattened`.

    Example:

    ```mlir
    #zero.flattened<"dp" = ["edp", "ep"]>
    ```
  }];
  let parameters = (ins "::mlir::StringAttr":$name, "::mlir::ArrayAttr":$axes);
  let hasCustomAssemblyFormat = 1;
}

def Zero_MeshAxisArrayAttr
    : TypedArrayAttrBase<Zero_MeshAxisAttr, "axes of a mesh">;
def Zero_FlattenedAxesArrayAttr
    : TypedArrayAttrBase<Zero_FlattenedAxesAttr, "flattened axes of a mesh">;

def Zero_Value : Type<CPred<"::llvm::isa<::zero::ValueType>($_self)">,
                      "value with a placement">;
def Zero_Scalar
    : Type<And<[Zero_Value.predicate,
                CPred<"::llvm::cast<::zero::ValueType>($_self).isScalar()">,
                CPred<"::llvm::cast<::zero::ValueType>($_self).getElementType().isF64()">]>,
           "f64 scalar value with a placement">;
def Zero_FinalScalar
    : Type<CPred<"$_self == ::zero::getScalarType($_self.getContext())">,
           "replicated and unscaled f64 scalar">,
      BuildableType<"::zero::getScalarType($_builder.getContext())">;

#endif // ZERO_TYPES_TD
