//===- main.cpp - zero-run on ranks that are threads ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/zero-run/Main.h"

int main(int argc, char **argv) {
  return zero::runTool(argc, argv, /*processes=*/nullptr);
}
