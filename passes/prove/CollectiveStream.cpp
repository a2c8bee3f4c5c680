//===- CollectiveStream.cpp - The stream of collectives -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each process group has a communicator of its own. A GPU may have room for
// some of the collectives that are under way, and then ranks that begin with
// different ones wait for each other. So all collectives are on one stream,
// whose order is that of the calls. On streams that events order, each rank
// would have to have all of these events.
//
//===----------------------------------------------------------------------===//

#include "passes/prove/Order.h"

using namespace zero;
using namespace zero::prove;

void prove::checkCollectiveStream(Proof &proof, zrt::ProgramOp program) {
  mlir::Operation *first = nullptr;
  program.walk([&](zrt::Collective op) {
    auto getStream = [](mlir::Operation *call) {
      return zrt::stringifyStream(
          mlir::cast<zrt::RuntimeCall>(call).getStream());
    };
    if (!first)
      first = op;
    if (getStream(op) == getStream(first))
      return mlir::WalkResult::advance();
    mlir::InFlightDiagnostic diagnostic = proof.report.opError(op);
    diagnostic << "is on stream '" << getStream(op)
               << "' and another collective on stream '" << getStream(first)
               << "', so ranks may run them in different orders and wait for "
                  "each other; put all collectives on one stream";
    diagnostic.attachNote(first->getLoc()) << "the other one";
    return mlir::WalkResult::interrupt();
  });
}
