//===- ZrtOps.td - All ops of the zrt dialect --------------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

include "dialect/zrt/TableOps.td"
include "dialect/zrt/KernelOps.td"
include "dialect/zrt/ProgramOps.td"
include "dialect/zrt/ProtocolOps.td"
