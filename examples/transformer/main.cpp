//===- main.cpp - The program char_model ----------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "examples/transformer/CharModel.h"

int main(int argc, char **argv) { return transformer::runTool(argc, argv); }
