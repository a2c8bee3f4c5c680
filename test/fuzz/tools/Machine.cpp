//===- Machine.cpp - Machines of zero-explain ---------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/zero-explain/Machine.h"
#include "test/fuzz/tools/Steps.h"

#include <cmath>

using namespace zero;
using namespace zero_fuzz;

/// A machine has bandwidths to divide by.
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  llvm::StringRef text(reinterpret_cast<const char *>(data), size);
  Machine machine;
  std::string message;
  bool failed =
      mlir::failed(readMachine(text, "machine.json", machine, message));
  requireMessage(failed, message);
  if (failed)
    return 0;
  for (double bandwidth :
       {machine.deviceBandwidth, machine.hostBandwidth, machine.copyBandwidth})
    require(std::isfinite(bandwidth) && bandwidth > 0, "a bandwidth", "");
  require(!machine.links.empty(), "a link", "");
  for (int64_t ranks : {1, 8, 16384}) {
    double seconds = machine.getSeconds(ranks, 2 * ranks, 7, 1 << 20);
    require(std::isfinite(seconds) && seconds >= 0, "a time", "");
  }
  return 0;
}
