//===- SetMesh.cpp - Overrides the sizes of mesh axes ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/layout/Passes.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

namespace zero {
#define GEN_PASS_DEF_SETMESHPASS
#include "passes/layout/Passes.h.inc"
} // namespace zero

using namespace mlir;
using namespace zero;

/// "edp, ep, tp"
static std::string describeAxes(MeshOp mesh) {
  return llvm::join(
      llvm::map_range(mesh.getAxes().getAsRange<MeshAxisAttr>(),
                      [](MeshAxisAttr axis) { return axis.getName().str(); }),
      ", ");
}

/// Sets |axis| of the module's meshes to |size|.
static LogicalResult setAxis(ModuleOp module, StringRef axis, int64_t size) {
  bool found = false;
  for (auto mesh : module.getOps<MeshOp>()) {
    SmallVector<Attribute> axes;
    for (auto old : mesh.getAxes().getAsRange<MeshAxisAttr>()) {
      bool matches = old.getName().getValue() == axis;
      found |= matches;
      axes.push_back(
          matches ? MeshAxisAttr::get(module.getContext(), old.getName(), size)
                  : old);
    }
    mesh.setAxesAttr(ArrayAttr::get(module.getContext(), axes));
  }
  if (found)
    return success();
  if (module.getOps<MeshOp>().empty())
    return module.emitError() << "module has no zero.mesh, and so no axis '"
                              << axis << "' to set the size of";
  InFlightDiagnostic diag = module.emitError()
                            << "mesh has no axis '" << axis << "'";
  for (auto mesh : module.getOps<MeshOp>())
    diag.attachNote(mesh.getLoc())
        << "its axes are declared here: " << describeAxes(mesh);
  return diag;
}

namespace {
struct SetMeshPass : zero::impl::SetMeshPassBase<SetMeshPass> {
  using SetMeshPassBase::SetMeshPassBase;

  void runOnOperation() override {
    SmallVector<StringRef> parts;
    StringRef(mesh).split(parts, ':', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
    llvm::StringSet<> seen;
    for (StringRef part : parts) {
      auto [axis, text] = part.split('=');
      if (!seen.insert(axis).second) {
        emitError(getOperation().getLoc())
            << "axis '" << axis << "' is given two sizes, got '" << mesh << "'";
        return signalPassFailure();
      }
      int64_t size = 0;
      if (text.getAsInteger(10, size) || size < 1) {
        emitError(getOperation().getLoc())
            << "expected an axis and its size of at "
               "least 1, such as dp=4 (several "
               "are separated by ':'), got '"
            << part << "'";
        return signalPassFailure();
      }
      if (failed(setAxis(getOperation(), axis, size)))
        return signalPassFailure();
    }
  }
};
} // namespace
