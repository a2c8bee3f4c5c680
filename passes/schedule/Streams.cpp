//===- Streams.cpp - The stream of each call ------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/schedule/Streams.h"

using namespace mlir;
using namespace zero;
using zrt::Stream;

/// Whether the groups over |axes| have one rank each. The sum in place is then
/// the addend itself.
static bool isAlone(ArrayAttr axes, MeshOp mesh) {
  return mesh.getNumRanks(llvm::to_vector(axes.getAsRange<StringAttr>())) == 1;
}

/// The buffers of unsharded parameters to which slices are copied from the
/// host.
static llvm::DenseSet<Attribute>
findCopiedFromHost(zrt::ProgramOp program, const zrt::ProgramSymbols &symbols) {
  llvm::DenseSet<Attribute> copied;
  program.walk([&](zrt::CopyOp copy) {
    auto source = symbols.lookup<zrt::BufferOp>(copy.getSourceAttr());
    if (source.getSpace() == zrt::Space::host &&
        symbols.isUnsharded(copy.getTargetAttr()))
      copied.insert(copy.getTargetAttr());
  });
  return copied;
}

static Stream chooseStream(Operation *call, const zrt::ProgramSymbols &symbols,
                           const llvm::DenseSet<Attribute> &copiedFromHost,
                           MeshOp mesh) {
  if (auto reduce = dyn_cast<zrt::AllReduceOp>(call))
    return !reduce.getTargetAttr() && isAlone(reduce.getAxes(), mesh)
               ? Stream::compute
               : Stream::collective;
  if (auto reduce = dyn_cast<zrt::AllReduceScalarsOp>(call))
    return isAlone(reduce.getAxes(), mesh) ? Stream::compute
                                           : Stream::collective;
  if (isa<zrt::Collective>(call))
    return Stream::collective;
  auto spaceOf = [&](FlatSymbolRefAttr buffer) {
    return symbols.lookup<zrt::BufferOp>(buffer).getSpace();
  };
  // Memory of unsharded parameters goes from collective to collective. Or it
  // waits for slices from the host, and not for what is reduced meanwhile.
  for (StringRef name : {"buffer", "target"})
    if (auto buffer = call->getInherentAttr(name);
        buffer && *buffer &&
        symbols.isUnsharded(cast<FlatSymbolRefAttr>(*buffer)))
      return copiedFromHost.contains(*buffer) ? Stream::to_device
                                              : Stream::collective;
  // So does memory through which they pass.
  if (isa<zrt::AllocateOp, zrt::ReleaseOp>(call) &&
      symbols
          .lookup<zrt::BufferOp>(
              cast<FlatSymbolRefAttr>(*call->getInherentAttr("buffer")))
          .getShares())
    return Stream::collective;
  if (auto copy = dyn_cast<zrt::CopyOp>(call)) {
    zrt::Space target = spaceOf(copy.getTargetAttr());
    if (spaceOf(copy.getSourceAttr()) == target)
      return target == zrt::Space::host ? Stream::host : Stream::compute;
    return target == zrt::Space::host ? Stream::to_host : Stream::to_device;
  }
  auto launch = dyn_cast<zrt::LaunchOp>(call);
  if (launch && !launch.getBuffers().empty() &&
      spaceOf(cast<FlatSymbolRefAttr>(launch.getBuffers()[0])) ==
          zrt::Space::host)
    return Stream::host;
  return Stream::compute;
}

void zero::assignStreams(zrt::ProgramOp program,
                         const zrt::ProgramSymbols &symbols) {
  auto module = program->getParentOfType<ModuleOp>();
  auto mesh = module.lookupSymbol<MeshOp>(program.getMeshAttr());
  llvm::DenseSet<Attribute> copied = findCopiedFromHost(program, symbols);
  for (auto handler : program.getOps<zrt::HandlerOp>())
    for (Operation &call : handler.getBody().front()) {
      Stream stream = chooseStream(&call, symbols, copied, mesh);
      if (stream != Stream::compute)
        call.setAttr("stream", zrt::StreamAttr::get(call.getContext(), stream));
    }
}
