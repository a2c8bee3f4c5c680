//===- Plugins.h - Files that hold passes or dialects -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_ZERO_OPT_PLUGINS_H
#define ZERO_TOOLS_ZERO_OPT_PLUGINS_H

#include <string>

namespace zero {

/// Loads the plugins of a command line. Returns the error of the first one that
/// cannot be loaded, or "". MLIR ignores such a plugin, and later reports its
/// passes as unknown.
std::string findMissingPlugin(int argc, char **argv);

} // namespace zero

#endif // ZERO_TOOLS_ZERO_OPT_PLUGINS_H
